"""Any tree, written and read again in both forms."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from anonlib.hierarchy import Hierarchy, read_hierarchy, write_hierarchy
from anonlib.hierarchy.files import NamedTree, parse_csv, parse_yaml, to_csv, to_yaml

#: What files trip over, and anything else that is text.
HARD = st.sampled_from(
    [
        *(
            "*",
            "yes",
            "~",
            "01",
            "1.0",
            "2020-01-31",
            "#",
            "'",
            '"',
            ";",
            ",",
            "[",
            "{",
            "&a",
            "!x",
        ),
        *("|", ">", "%", "@", "`", "?", ":", "-", "---", "...", "=", "<<", "\\", "é"),
        *("- a", "a: b", " ", " a ", "a ", "\r", "\n", "\r\n", "\t", "\x00", "\x7f", "\x85"),
        *("\u2028", "\ufeff", "\ufeffa", "\U0001f600"),
    ]
)
NAMES = HARD | st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)


@st.composite
def trees(draw: st.DrawFn) -> NamedTree:
    """Trees of any shape with distinct names; one leaf may be the empty text."""
    names = draw(st.lists(NAMES, min_size=2, max_size=25, unique=True))
    nodes = NamedTree()
    for i, name in enumerate(names):
        nodes.add(name, None if i == 0 else draw(st.integers(max(0, i - 6), i - 1)))
    if draw(st.booleans()):
        nodes.names[-1] = ""  # the last node has none below it
    return nodes


def same(one: Hierarchy, other: Hierarchy) -> bool:
    fields = ("parent", "low", "high", "loss")
    trees = [[getattr(each.tree, field).tolist() for field in fields] for each in (one, other)]
    return one.names == other.names and trees[0] == trees[1]


@given(trees())
def test_both_forms_read_back_as_the_same(nodes: NamedTree) -> None:
    hierarchy = Hierarchy.of(nodes)
    with TemporaryDirectory() as folder:
        for name in ("h.csv", "h.yaml", "h.yml"):
            path = Path(folder) / name
            write_hierarchy(hierarchy, path)
            assert same(read_hierarchy(path), hierarchy)


@given(trees())
def test_nodes_are_those_of_the_hierarchy(nodes: NamedTree) -> None:
    hierarchy = Hierarchy.of(nodes)
    assert same(Hierarchy.of(hierarchy.nodes()), hierarchy)
    again = hierarchy.nodes()
    assert sorted(again.names) == sorted(nodes.names)
    above = {nodes.names[i]: nodes.names[nodes.parent[i]] for i in range(1, len(nodes.names))}
    assert above == {again.names[i]: again.names[again.parent[i]] for i in range(1, len(above) + 1)}


@given(trees())
def test_other_readers_of_yaml_see_texts_too(nodes: NamedTree) -> None:
    """What is quoted is what YAML would read as something else."""

    def texts(value: object) -> list[object]:
        if isinstance(value, dict):
            return [text for key, held in value.items() for text in [key, *texts(held)]]
        if isinstance(value, list):
            return [text for held in value for text in texts(held)]
        return [value]

    loaded = texts(yaml.safe_load(to_yaml(nodes)))
    assert sorted(map(repr, loaded)) == sorted(map(repr, nodes.names))


@pytest.mark.parametrize("length", [1_000, 1_100, 3_000])
def test_names_longer_than_yaml_likes(length: int) -> None:
    nodes = NamedTree()
    for i, name in enumerate(["r" * length, "g" * length, "é'" * length, "v"]):
        nodes.add(name, None if i == 0 else i - 1)
    for text, read in ((to_yaml(nodes), parse_yaml), (to_csv(nodes), parse_csv)):
        assert read(text).names == nodes.names

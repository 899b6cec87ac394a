"""Hierarchies: reading, validation, the trees that blocks carry, and where they are named."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from anonlib.config.reading import load
from anonlib.config.resolve import read_protected_hierarchies, resolve
from anonlib.errors import ConfigError, InputError
from anonlib.hierarchy import Hierarchy, parse_csv, read_hierarchy
from anonlib.hierarchy.tree import Tree
from anonlib.local.cell_grouping import cells
from anonlib.privacy.t_closeness import TCloseness
from anonlib.table.coverage import find_coverage
from anonlib.table.schema import Field
from tests.oracles_generic import lost
from tests.support import data_dir

ANIMALS = """\
cat;pet;animal;*
wolf;wild;animal;*
dog;pet;animal;*
oak;plant;*
"""


def written(folder: Path, text: str, name: str = "h.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def leaves(hierarchy: Hierarchy) -> list[str]:
    return list(hierarchy.names[: hierarchy.tree.high[-1]])


def wrong(folder: Path, text: str) -> str:
    with pytest.raises(InputError) as caught:
        read_hierarchy(written(folder, text))
    return str(caught.value)


def test_leaves_stand_depth_first_in_the_order_of_the_file(tmp_path: Path) -> None:
    hierarchy = read_hierarchy(written(tmp_path, ANIMALS))
    assert leaves(hierarchy) == ["cat", "dog", "wolf", "oak"]
    names, tree = hierarchy.names, hierarchy.tree
    below = {names[i]: leaves(hierarchy)[tree.low[i] : tree.high[i]] for i in range(len(names))}
    assert below["pet"] == ["cat", "dog"]
    assert below["animal"] == ["cat", "dog", "wolf"]
    assert below["*"] == leaves(hierarchy)
    assert names[-1] == "*"
    assert (tree.parent[:-1] > np.arange(len(names) - 1)).all()
    assert tree.parent[-1] == len(names) - 1
    loss = dict(zip(names, tree.loss.tolist(), strict=True))
    assert (loss["cat"], loss["pet"], loss["animal"], loss["*"]) == (0, 1 / 3, 2 / 3, 1)
    assert loss["plant"] == 0  # no more than the oak, its only leaf


@pytest.mark.parametrize(
    "text",
    [
        ANIMALS.replace(";", ","),
        "\ufeff" + ANIMALS,
        ANIMALS.replace("\n", "\r\n") + "\r\n",
        ANIMALS.replace("oak;plant;*", "oak;plant;*;;"),
        ANIMALS.replace("oak;plant;*", "oak;oak;plant;plant;*;*"),
        ANIMALS.replace("cat;pet", '"cat";"pet"'),
    ],
    ids=["commas", "mark", "lines", "empty ends", "repeats", "quotes"],
)
def test_forms_of_the_same(tmp_path: Path, text: str) -> None:
    one = read_hierarchy(written(tmp_path, ANIMALS))
    other = read_hierarchy(written(tmp_path, text))
    assert other.names == one.names
    for field in ("parent", "low", "high", "loss"):
        assert (getattr(other.tree, field) == getattr(one.tree, field)).all()


def test_intervals_with_commas_or_semicolons(tmp_path: Path) -> None:
    text = '1,"[0; 5[",*\n2,"[0; 5[",*\n7,"[5; 9[",*\n'
    assert leaves(read_hierarchy(written(tmp_path, text))) == ["1", "2", "7"]
    assert leaves(read_hierarchy(written(tmp_path, "1;a,b;*\n2;a,b;*\n"))) == ["1", "2"]


def test_one_value(tmp_path: Path) -> None:
    hierarchy = read_hierarchy(written(tmp_path, "only;*\n"))
    assert hierarchy.tree.loss.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "has no rows"),
        ("\n\n", "has no rows"),
        ("secret;*\n*\n", "line 2: has no group above the value"),
        ("a;*\nb;*\nsecret;x\nd;y\n", "line 3 and 1 more: have another root than most"),
        ("secret;g;*\nb;g;*\nsecret;g;*\n", "line 3: has a value of an earlier row"),
        ("secret;;*\nb;*\n", "line 1: has an empty name between others"),
        (
            "a;g;*\nb;h;*\nc;g;h;*\n",
            "line 3: has a name that is also elsewhere in the tree; rename one",
        ),
        ("a;secret;*\nsecret;*\n", "line 2: has a value that is a group of others"),
        (
            "secret;all\na;*\nb;*\n",
            "line 1: has another root than most; if it is a header, remove it",
        ),
        (
            "secret\t*\na\t*\n",
            (
                "line 1 and 1 more: have no group above the value; separate names by commas, not "
                "by tabs; line 2: has another root than most"
            ),
        ),
        (
            "*;a\n*;a\n*;secret\n",
            (
                "line 3: has another root than most; the root stands last in each line, and the "
                "value first; line 2 and 1 more: have a value of an earlier row"
            ),
        ),
    ],
)
def test_what_is_wrong_is_said_by_line(tmp_path: Path, text: str, expected: str) -> None:
    said = wrong(tmp_path, text)
    assert said == f"hierarchy {tmp_path}/h.csv: {expected}"
    assert "secret" not in said


def test_several_problems_together(tmp_path: Path) -> None:
    said = wrong(tmp_path, "a;*\na;*\nb\n")
    assert "has no group" in said
    assert "an earlier row" in said
    assert "another root" in said


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="can't be read"):
        read_hierarchy(tmp_path / "absent.csv")
    with pytest.raises(InputError, match="can't be read"):
        read_hierarchy(tmp_path)
    (tmp_path / "h.csv").write_bytes(b"\xff\xfe;*\n")
    with pytest.raises(InputError, match="not UTF-8"):
        read_hierarchy(tmp_path / "h.csv")
    assert "not CSV" in wrong(tmp_path, f"{'x' * 200_000};*\n")


def test_places(tmp_path: Path) -> None:
    hierarchy = read_hierarchy(written(tmp_path, ANIMALS))
    assert hierarchy.places(pa.array(["oak", "fish", "cat"])).tolist() == [3, -1, 0]
    numbers = read_hierarchy(written(tmp_path, "1;*\n20;*\n"))
    assert numbers.places(pa.array([20, 1, 3])).tolist() == [1, 0, -1]


def test_levels_by_height(tmp_path: Path) -> None:
    """A branch that ends early: its leaves are at height 0 all the same."""
    hierarchy = read_hierarchy(written(tmp_path, ANIMALS))
    names = hierarchy.names
    heights = dict(zip(names, hierarchy.heights.tolist(), strict=True))
    assert [heights[name] for name in ("cat", "pet", "animal", "oak", "plant", "*")] == [
        *(0, 1, 2, 0, 1, 3)
    ]
    levels = hierarchy.levels(hierarchy.places(pa.array(["oak", "cat", "wolf"])))
    assert [[names[node] for node in row] for row in levels] == [
        ["oak", "cat", "wolf"],
        ["plant", "pet", "wild"],
        ["plant", "animal", "animal"],
    ]
    flat = read_hierarchy(written(tmp_path, "a;*\nb;*\n"))
    assert flat.levels(np.array([1, 0])).tolist() == [[1, 0]]


def test_folded(tmp_path: Path) -> None:
    folded = read_hierarchy(written(tmp_path, ANIMALS.replace("cat", " Cat "))).folded()
    assert folded.places(pa.array(["cat", "Cat"])).tolist() == [0, -1]
    twins = read_hierarchy(written(tmp_path, "secret;*\nSecret ;*\nother;*\n"))
    with pytest.raises(
        InputError, match=r"^1 values differ from others in case or white"
    ) as caught:
        twins.folded()
    assert "ecret" not in str(caught.value)


def check_tree(tree: Tree) -> None:
    nodes, c = len(tree.parent), tree.high[-1]
    assert tree.low[:c].tolist() == list(range(c))
    assert tree.high[:c].tolist() == list(range(1, c + 1))
    assert (tree.parent[:-1] > np.arange(nodes - 1)).all()
    assert (tree.parent[:-1] >= c).all()
    assert tree.parent[-1] == nodes - 1
    assert tree.low[-1] == 0
    assert tree.loss[-1] == 1


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("places", [[], [0], [3], [1, 2], [0, 1, 2, 3]])
def test_over_some_of_the_leaves(tmp_path: Path, places: list[int], missing: bool) -> None:
    hierarchy = read_hierarchy(written(tmp_path, ANIMALS))
    tree = hierarchy.over(np.array(places, np.int64), missing=missing)
    check_tree(tree)
    c = len(places)
    assert tree.high[-1] == c + missing
    for i, place in enumerate(places):
        for j, other in enumerate(places):
            assert lost(tree, i, j) == lost(hierarchy.tree, place, other)
        if missing:
            assert lost(tree, i, c) == 1


@pytest.mark.parametrize(
    "pattern", ["arx/adult_hierarchy_*.csv", "anjana/*.csv", "basic_mondrian/*"]
)
def test_distances_in_files_of_others(pattern: str) -> None:
    """The leaves under the lowest common ancestor, counted in the rows of the file."""
    files = sorted((data_dir() / "adult_hierarchies").glob(pattern))
    assert len(files) >= 7
    for path in files:
        separator = "," if "anjana" in pattern else ";"
        table = pd.read_csv(path, sep=separator, header=None, dtype=str, names=range(8))
        rows = {row[0]: [x for x in row[1:] if isinstance(x, str)] for row in table.to_numpy()}
        hierarchy = read_hierarchy(path)
        assert sorted(leaves(hierarchy)) == sorted(rows)
        check_tree(hierarchy.tree)
        for i, one in enumerate(leaves(hierarchy)[::3]):
            for other in leaves(hierarchy)[1::5]:
                if one != other:
                    common = next(name for name in rows[one] if name in rows[other])
                    under = sum(common in above for above in rows.values())
                    expected = (under - 1) / (len(rows) - 1)
                    place = leaves(hierarchy).index(other)
                    assert lost(hierarchy.tree, 3 * i, place) == pytest.approx(expected)


class TestCells:
    """`anonlib.cells` with hierarchies."""

    TABLE = pd.DataFrame({"kind": ["oak", "wolf", "cat", "dog"] * 3})

    def test_mondrian_cuts_by_the_order_of_the_leaves(self, tmp_path: Path) -> None:
        given: dict[str, Any] = {"scales": {"kind": "nominal"}, "k": 6, "kernel": "mondrian"}
        path = written(tmp_path, ANIMALS)
        # By name: cat and dog, oak and wolf. By leaves: cat and dog, wolf and oak.
        assert cells(self.TABLE, **given).tolist() == [0, 0, 1, 1] * 3
        swapped = written(tmp_path, "cat;a;*\noak;a;*\ndog;b;*\nwolf;b;*\n", "other.csv")
        by_tree = cells(self.TABLE, hierarchies={"kind": str(swapped)}, **given)
        assert by_tree.tolist() == [0, 1, 0, 1] * 3
        assert cells(self.TABLE, hierarchies={"kind": read_hierarchy(path)}, **given).max() == 1

    def test_distances_reach_the_kernel(self, tmp_path: Path) -> None:
        path = written(tmp_path, "oak;a;*\ndog;a;*\nwolf;b;*\ncat;b;*\n")
        given: dict[str, Any] = {"scales": {"kind": "nominal"}, "k": 6, "kernel": "mdav_generic"}
        ids = cells(self.TABLE, hierarchies={"kind": path}, nominal="hierarchy", **given)
        assert ids.tolist() == [0, 1, 1, 0] * 3

    def test_of_a_column_that_a_model_names(self, tmp_path: Path) -> None:
        """The two kinds of animals lie in cells of their own, unless they are far apart."""
        table = pd.DataFrame({"x": [0.0, 1, 10, 11] * 3, "kind": ["Cat", "dog ", "wolf", "?"] * 3})
        path = written(tmp_path, ANIMALS)
        scales = {"x": "continuous"}
        near, far = (
            cells(
                table,
                k=2,
                scales=scales,
                hierarchies={"kind": path},
                models=[TCloseness(t=t, distance="hierarchical", attribute="kind")],
            )
            for t in (1.0, 0.3)
        )
        assert near.max() > far.max()

    def test_model_without_what_it_needs(self, tmp_path: Path) -> None:
        table = pd.DataFrame({"x": [0.0, 1, 2], "kind": ["cat", "dog", "fish"]})
        models = [TCloseness(t=0.3, distance="hierarchical", attribute="kind")]
        given: dict[str, Any] = {"k": 2, "scales": {"x": "continuous"}, "models": models}
        with pytest.raises(InputError, match="models: t_closeness: kind needs a hierarchy"):
            cells(table, **given)
        path = written(tmp_path, ANIMALS)
        with pytest.raises(InputError, match="hierarchies: kind: lacks 1 of the distinct values"):
            cells(table, hierarchies={"kind": path}, **given)
        with pytest.raises(InputError, match="hierarchies: x: not a column with the scale nominal"):
            cells(table, hierarchies={"x": path}, **given)

    def test_what_is_wrong(self, tmp_path: Path) -> None:
        path = written(tmp_path, ANIMALS.replace("oak", "elm"))
        with pytest.raises(
            InputError, match="column kind: its hierarchy lacks 1 of the distinct values"
        ):
            cells(self.TABLE, k=2, scales={"kind": "nominal"}, hierarchies={"kind": path})
        with pytest.raises(InputError, match="hierarchies: kind: not a column with the scale"):
            cells(self.TABLE, k=2, scales={"kind": "ordinal"}, hierarchies={"kind": path})


CONFIG = """
source: {format: csv, path: people.csv}
attributes:
  kind: {role: quasi_identifier, scale: nominal, hierarchy: trees/h.csv}
one_row_per_person: true
privacy: {models: [{type: k_anonymity, k: 5}]}
release: {path: out/people}
"""


class TestConfig:
    def test_path_is_relative_to_the_config(self, tmp_path: Path) -> None:
        (tmp_path / "trees").mkdir()
        path = written(tmp_path / "trees", ANIMALS)
        config = load(written(tmp_path, CONFIG, "conf.yaml"))
        assert config.attributes["kind"].hierarchy == str(path)
        schema = resolve(config, [Field("kind", "string", pa.string())])
        assert schema["kind"].hierarchy is not None
        assert leaves(schema["kind"].hierarchy) == ["cat", "dog", "wolf", "oak"]
        override = f"attributes.kind.hierarchy={path}"
        assert load(tmp_path / "conf.yaml", [override]).attributes["kind"].hierarchy == str(path)

    def test_what_is_wrong_with_the_file_is_a_problem_of_the_config(self, tmp_path: Path) -> None:
        (tmp_path / "trees").mkdir()
        for text, said in ((None, "can't be read"), ("a;*\na;*\n", "line 2: has a value of")):
            if text is not None:
                written(tmp_path / "trees", text)
            with pytest.raises(ConfigError) as caught:
                load(written(tmp_path, CONFIG, "conf.yaml"))
            (problem,) = caught.value.problems
            assert problem.where == "attributes.kind.hierarchy"
            assert said in problem.text

    @pytest.mark.parametrize("scale", ["continuous", "ordinal"])
    def test_only_nominal_columns_have_one(self, tmp_path: Path, scale: str) -> None:
        text = CONFIG.replace("nominal", scale)
        with pytest.raises(ConfigError, match="only nominal columns have a hierarchy"):
            load(written(tmp_path, text, "conf.yaml"))

    def test_columns_that_are_not_anonymized_have_none(self, tmp_path: Path) -> None:
        more = "one_row"
        for role in ("{role: insensitive, ", "{role: target, public: true, ", "{role: drop, "):
            text = CONFIG.replace(more, f"  other: {role}hierarchy: h.csv}}\n{more}", 1)
            with pytest.raises(
                ConfigError, match="only quasi-identifiers, sensitive columns and a"
            ):
                load(written(tmp_path, text, "conf.yaml"))


MEASURED = """
source: {format: csv, path: people.csv}
attributes:
  age: {role: quasi_identifier, scale: continuous}
  kind: {role: ROLE, hierarchy: h.csv}
  other: {role: sensitive}
one_row_per_person: true
privacy:
  models:
    - {type: k_anonymity, k: 5}
    - {type: t_closeness, t: 0.2, distance: hierarchical, attribute: kind}
release: {path: out/people}
"""


class TestProtected:
    """Hierarchies of columns that models measure distances in."""

    @pytest.mark.parametrize("role", ["sensitive", "target"])
    def test_they_are_folded(self, tmp_path: Path, role: str) -> None:
        written(tmp_path, ANIMALS.replace("cat", "CAT "))
        config = load(written(tmp_path, MEASURED.replace("ROLE", role), "conf.yaml"))
        found = read_protected_hierarchies(config.all_models, config.attributes)
        assert list(found) == ["kind"]
        assert leaves(found["kind"]) == ["cat", "dog", "wolf", "oak"]
        fields = [("age", "int", pa.int32()), ("kind", "string", pa.string())]
        resolve(config, [Field(*field) for field in [*fields, ("other", "string", pa.string())]])
        fields[1] = ("kind", "double", pa.float64())
        with pytest.raises(
            ConfigError, match="type double can't have a hierarchy; a protected column"
        ):
            resolve(config, [Field(*field) for field in [*fields, ("other", "int", pa.int32())]])

    def test_one_that_no_model_measures_by_is_left_alone(self, tmp_path: Path) -> None:
        written(tmp_path, ANIMALS)
        text = MEASURED.replace("ROLE", "sensitive").replace("hierarchical", "equal")
        config = load(written(tmp_path, text, "conf.yaml"))
        assert read_protected_hierarchies(config.all_models, config.attributes) == {}

    def test_what_is_missing_is_said(self, tmp_path: Path) -> None:
        text = MEASURED.replace("ROLE, hierarchy: h.csv", "sensitive")
        for more, names in (("", ["kind"]), (", attribute: kind", ["kind", "other"])):
            # Without `attribute`, all sensitive columns are measured.
            with pytest.raises(ConfigError) as caught:
                load(written(tmp_path, text.replace(more, ""), "conf.yaml"))
            places = [problem.where for problem in caught.value.problems]
            assert places == [f"attributes.{name}.hierarchy" for name in names]
            assert "required by t_closeness" in caught.value.problems[0].text

    def test_values_that_are_one_when_folded(self, tmp_path: Path) -> None:
        written(tmp_path, "secret;*\nSECRET;*\n")
        with pytest.raises(ConfigError, match="1 values differ from others in case") as caught:
            load(written(tmp_path, MEASURED.replace("ROLE", "sensitive"), "conf.yaml"))
        assert "secret" not in str(caught.value).lower()


def test_tokens_of_a_protected_column_of_numbers_mean_values() -> None:
    """A token is missing by what it means, as in a release."""
    codes = Hierarchy.of(parse_csv("1;*\n2;*\n"))
    values = pa.array([1, 2, 100, None], pa.int32())
    found = find_coverage(codes, values, np.array([5, 4, 3, 2]), (" 1e2", "?"))
    assert (found.n_values, found.n_missing_rows, found.lacking) == (2, 5, ())
    assert find_coverage(codes, values, np.array([5, 4, 3, 2]), ("?",)).lacking == ("100",)

"""Hierarchies in files: the nested YAML form, and what is written."""

from pathlib import Path

import pyarrow as pa
import pytest

from anonlib.errors import InputError
from anonlib.hierarchy import Hierarchy, read_hierarchy, write_hierarchy

ANIMALS = """\
"*":
  animal:
    pet: [cat, dog]
    wild:
      - wolf
  plant: oak
"""


def written(folder: Path, text: str, name: str = "h.yaml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def rows(hierarchy: Hierarchy) -> list[list[str]]:
    """Each leaf and the names above it."""
    found = []
    for leaf in range(int(hierarchy.tree.high[-1])):
        way = [leaf]
        while way[-1] != len(hierarchy.names) - 1:
            way.append(int(hierarchy.tree.parent[way[-1]]))
        found.append([hierarchy.names[node] for node in way])
    return found


def wrong(folder: Path, text: str) -> str:
    with pytest.raises(InputError) as caught:
        read_hierarchy(written(folder, text))
    said = str(caught.value)
    assert said.startswith(f"hierarchy {folder}/h.yaml: ")
    return said.removeprefix(f"hierarchy {folder}/h.yaml: ")


def test_nested(tmp_path: Path) -> None:
    assert rows(read_hierarchy(written(tmp_path, ANIMALS))) == [
        ["cat", "pet", "animal", "*"],
        ["dog", "pet", "animal", "*"],
        ["wolf", "wild", "animal", "*"],
        ["oak", "plant", "*"],
    ]


def test_same_as_csv(tmp_path: Path) -> None:
    text = "cat;pet;animal;*\ndog;pet;animal;*\nwolf;wild;animal;*\noak;plant;*\n"
    one = read_hierarchy(written(tmp_path, text, "h.csv"))
    for name in ("h.yaml", "h.YML"):
        other = read_hierarchy(written(tmp_path, ANIMALS, name))
        assert other.names == one.names
        assert (other.tree.parent == one.tree.parent).all()
    by_other_name = read_hierarchy(written(tmp_path, text, "h.txt"))
    assert by_other_name.names == one.names


def test_ragged_lists(tmp_path: Path) -> None:
    text = '"*":\n- oak\n- animal:\n  - cat\n  - wild: {far: wolf, near: [fox]}\n- elm\n'
    assert rows(read_hierarchy(written(tmp_path, text))) == [
        ["oak", "*"],
        ["cat", "animal", "*"],
        ["wolf", "far", "wild", "animal", "*"],
        ["fox", "near", "wild", "animal", "*"],
        ["elm", "*"],
    ]


def test_texts_are_what_is_written(tmp_path: Path) -> None:
    """Whatever else YAML would make of them."""
    texts = ["01234", "1.0", "1.00", "yes", "No", "null", "~", "2020-01-31", "0x1F", "1_000", "1e3"]
    texts += [".inf", "12:30", "=", "<<", "true", "-5", "1.", "0o7", "2020-01-31 10:00:00"]
    text = "".join(f"- {each}\n" for each in texts)
    hierarchy = read_hierarchy(written(tmp_path, f"1990:\n- off: [on]\n{text}- ''\n- 'a''b'\n"))
    assert rows(hierarchy)[0] == ["on", "off", "1990"]
    assert [row[0] for row in rows(hierarchy)[1:]] == [*texts, "", "a'b"]
    places = hierarchy.places(pa.array(["01234", "1234", "1.00", "", "true"]))
    assert (places >= 0).tolist() == [True, False, True, True, True]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "has no root"),
        ("# nothing\n", "has no root"),
        ("secret", 'line 1: has no root; begin with one, such as "*":'),
        ("- secret\n", 'line 1: has no root; begin with one, such as "*":'),
        ("''", 'line 1: has no root; begin with one, such as "*":'),
        ("{}", "has no root"),
        ("a: [b]\n---\na: [b]\n", "line 2: has another document"),
        ("a: [b]\nsecret: [d]\n", "line 2: has another root"),
        ("a: {secret: }", "line 1: has a group without a value"),
        ("a:", "line 1: has a group without a value"),
        ("a: []", "line 1: has a group without a value"),
        ("a:\n  b: {}\n  c: [secret]\n  d:\n", "line 2 and 1 more: have a group without a value"),
        ("a:\n- b\n-\n", "line 3: has an empty item; write '' for an empty text"),
        ("a:\n- '': [secret]\n", "line 2: has a group without a name"),
        ("a:\n- [secret]\n", "line 2: has a list in a list; give the inner one a name"),
        ("a:\n  ? [secret]\n  : b\n", "line 2: has a name that is not a text"),
        (
            "a:\n- secret\n- {b: [secret]}\n",
            "line 3: has a name that is also elsewhere in the tree",
        ),
        ("a: {secret: [b], c: [secret]}", "line 1: has a name that is also elsewhere in the tree"),
        (
            "a: {b: [secret], b: [c]}",
            "line 1: has a name that is also elsewhere in the tree; rename one",
        ),
        ("a: [a]", "line 1: has a name that is also elsewhere in the tree; rename one"),
        ("a: &x [secret]", "line 1: has an anchor or alias, which is not allowed"),
        ("a:\n- *secret\n", "line 2: has an anchor or alias, which is not allowed"),
        ("a: [!!str secret]", "line 1: has a tag, which is not allowed"),
        ("a: !secret [b]", "line 1: has a tag, which is not allowed"),
        ("a: ['secret", "line 1: is not valid YAML"),
        ("a: [secret", "line 1: is not valid YAML"),
        ("a:\n\t- secret\n", "line 2: is not valid YAML"),
        ("a: [\x00]", "not valid YAML"),
    ],
)
def test_what_is_wrong_is_said_by_line(tmp_path: Path, text: str, expected: str) -> None:
    said = wrong(tmp_path, text)
    assert said.startswith(expected)
    assert "secret" not in said


def test_several_problems_together(tmp_path: Path) -> None:
    said = wrong(tmp_path, "a:\n  b:\n  '': [c]\n  d: [c]\n")
    assert said == (
        "line 2: has a group without a value; line 3: has a group without a name; "
        "line 4: has a name that is also elsewhere in the tree; rename one"
    )


def test_deep_chains(tmp_path: Path) -> None:
    """Deeper than Python's stack."""
    ways = [[f"v{i}", *(f"g{j}" for j in range(i, 1200)), "*"] for i in range(0, 1200, 100)]
    one = read_hierarchy(written(tmp_path, "".join(";".join(w) + "\n" for w in ways), "h.csv"))
    for name in ("deep.csv", "deep.yaml"):
        write_hierarchy(one, tmp_path / name)
        other = read_hierarchy(tmp_path / name)
        assert other.names == one.names
        assert (other.tree.parent == one.tree.parent).all()
    assert one.heights[-1] == 1201


def test_written_yaml_is_for_reading(tmp_path: Path) -> None:
    path = tmp_path / "out.yaml"
    write_hierarchy(read_hierarchy(written(tmp_path, ANIMALS)), path)
    assert path.read_text() == (
        '"*":\n  animal:\n    pet:\n      - cat\n      - dog\n    wild:\n      - wolf\n'
        "  plant:\n    - oak\n"
    )
    mixed = read_hierarchy(written(tmp_path, '"*": [{a: ["1", "01"]}, "no", c d]\n'))
    write_hierarchy(mixed, path)
    assert path.read_text() == '"*":\n  - a:\n      - "1"\n      - "01"\n  - "no"\n  - c d\n'


def test_written_csv_is_arxs(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    hierarchy = read_hierarchy(written(tmp_path, '"*": [{"a;b": ["x\\"y", "a,b"]}, c]\n'))
    write_hierarchy(hierarchy, path)
    assert path.read_text() == '"x""y";"a;b";*\n"a,b";"a;b";*\nc;*\n'


def test_what_can_not_be_written(tmp_path: Path) -> None:
    hierarchy = read_hierarchy(written(tmp_path, ANIMALS))
    with pytest.raises(InputError, match=r"the name must end in \.csv, \.yaml, \.yml"):
        write_hierarchy(hierarchy, tmp_path / "out.txt")
    with pytest.raises(InputError, match="there is no folder"):
        write_hierarchy(hierarchy, tmp_path / "absent" / "out.csv")


def test_quotes_that_only_one_separator_can_read(tmp_path: Path) -> None:
    """Read by commas, the second field never ends, and is too long for a field."""
    text = 'x;",";*\n' + "".join(f"v{i:06};g;*\n" for i in range(20_000))
    assert len(text) > 131_072
    hierarchy = read_hierarchy(written(tmp_path, text, "h.csv"))
    assert rows(hierarchy)[0] == ["x", ",", "*"]

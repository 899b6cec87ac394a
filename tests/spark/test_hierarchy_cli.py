"""`anonlib hierarchy` on a table: one aggregate of a column, and what is said of it."""

from pathlib import Path

import pytest

from anonlib.hierarchy import read_hierarchy
from tests.spark.support import MARKER, Shell, people, write_people

pytestmark = pytest.mark.spark

CONF = """
source: {{format: {kind}, path: {path}{options}}}
attributes:
  city: {{role: quasi_identifier, scale: nominal}}
  wage: {{role: quasi_identifier, scale: nominal, type: {type}}}
"""


def config(folder: Path, kind: str, name: str, options: str = "", type: str = "bigint") -> str:
    path = folder / "conf.yaml"
    path.write_text(CONF.format(kind=kind, path=folder / name, options=options, type=type))
    return str(path)


def test_built_from_a_table_and_checked(shell: Shell, tmp_path: Path) -> None:
    write_people(tmp_path)
    conf = config(tmp_path, "parquet", "people.parquet")
    out = tmp_path / "city.yaml"
    of = ["--conf", conf, "--column", "city"]
    for kind in (["frequency"], ["target", "--target", "illness"]):
        said = shell("hierarchy", "build", *kind, *of, "--out", str(out), "--force")
        assert said.code == 0, said.err
        tree = read_hierarchy(out)
        leaves = tree.names[: tree.tree.high[-1]]
        assert set(leaves) == {*people()["city"]}
    said = shell("hierarchy", "check", str(out), *of)
    assert said.code == 0, said.err
    assert "60 rows" in said.out
    out.write_text("all: [somewhere, elsewhere]")
    said = shell("hierarchy", "check", str(out), *of)
    assert said.code == 2
    assert "(60 rows); add them" in said.error
    assert MARKER not in said.out + said.err


def test_values_that_can_not_be_read(shell: Shell, tmp_path: Path) -> None:
    """They are no missing values: a release would refuse them."""
    (tmp_path / "people.csv").write_text(f"city,wage\na,1\nb,{MARKER}\nc,{MARKER}\n")
    (tmp_path / "wage.csv").write_text("1;any\n2;any\n")
    conf = config(tmp_path, "csv", "people.csv", ', options: {header: "true"}', "int")
    said = shell(
        "hierarchy", "check", str(tmp_path / "wage.csv"), "--conf", conf, "--column", "wage"
    )
    assert said.code == 2
    assert "can't read 2 values as int" in said.error
    assert MARKER not in said.out + said.err

"""One search over the whole table, through Spark."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.spark.support import MARKER, Shell, left, multiset, people, settings, write_people

pytestmark = pytest.mark.spark

CITIES = "".join(f"{MARKER}-city-{i};{'north' if i < 2 else 'south'};anywhere\n" for i in range(4))


def config(folder: Path, kernel: str, **changes: Any) -> Any:
    """Wages of six values and cities, both along hierarchies."""
    (folder / "city.csv").write_text(CITIES)
    wages = "".join(f"{w};{w // 2 * 2}-{w // 2 * 2 + 1};any\n" for w in range(6))
    (folder / "wage.csv").write_text(wages)
    quasi = {"role": "quasi_identifier", "scale": "nominal"}
    attributes = {
        "wage": {**quasi, "hierarchy": str(folder / "wage.csv")},
        "city": {**quasi, "hierarchy": str(folder / "city.csv")},
        "name": {"role": "identifier", "pseudonym": True},
    }
    return settings(
        folder,
        attributes=attributes,
        kernel={"type": kernel},
        pseudonyms={"key_env": "ANONLIB_KEY"},
        **{"partition": {"steps": [{"type": "tuples"}]}, "recode": {"nominal": "lca"}, **changes},
    )


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANONLIB_KEY", "PSEUDONYMKEY-0123456789abcdef")


def frame(n: int = 90) -> pd.DataFrame:
    found = people(n)
    found["wage"] = [i * i % 11 % 6 for i in range(n)]
    found.loc[4, "city"] = None
    return found


def released(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.read.format("delta").load(str(folder / "out" / "table"))


def test_one_level_per_column(shell: Shell, spark: SparkSession, tmp_path: Path) -> None:
    write_people(tmp_path, frame())
    given = config(tmp_path, "full_domain")
    given["privacy"]["suppression_limit"] = 0.1
    given["evaluate"] = {"measures": ["linkage"]}
    said = shell.release(given, "--run-id", "one")
    assert said.code == 0, said.err
    table = released(spark, tmp_path).toPandas()
    classes = table.groupby(["wage", "city"], dropna=False)
    assert classes.size().min() >= 3
    assert classes["illness"].nunique().min() >= 2
    assert 81 <= len(table) <= 90
    assert table["name"].str.fullmatch("[0-9a-f]{64}").all()
    assert table["name"].nunique() == len(table)
    names = [{"0-1", "2-3", "4-5"}, set("012345"), {"any"}]
    assert any(set(table["wage"]) <= level for level in names)
    manifest = json.loads((tmp_path / "out/table/_anonlib/manifest.json").read_text())
    assert manifest["partition"] == {"steps": ["tuples"], "split_columns": []}
    assert set(manifest["hierarchies"]) == {"wage", "city"}
    [record] = (tmp_path / "out/table.private").glob("*.json")
    found = json.loads(record.read_text())
    linkage = found["evaluation"]["measures"]["linkage"]["figures"]
    assert {each["name"] for each in linkage if each["value"] is not None} >= {"cell", "record"}
    note = "full_domain: an exact search: these levels lose least of all 9 choices"
    assert found["notes"].count(note) == 1
    plan = found["plan"]
    assert plan["levels"].keys() == {"wage", "city"}
    told = {column["name"]: column.get("parameters", {}) for column in manifest["columns"]}
    assert {name: told[name].get("level", 0) for name in plan["levels"]} == plan["levels"]
    assert plan["n_tuples"] <= 25
    assert left(tmp_path / "out") == {"table", "table.private"}


def test_levels_of_batches(shell: Shell, tmp_path: Path) -> None:
    """Each batch has its own: the manifest tells the least, which all rows have at least."""
    chosen, told = [], {}
    for first, n, mode in ((0, 90, "error"), (90, 9, "append"), (99, 90, "append")):
        write_people(tmp_path, frame(first + n).iloc[first:])
        release = {"mode": mode, "acknowledge_returning": mode == "append"}
        given = config(tmp_path, "full_domain", release=release)
        given["attributes"]["name"] = {"role": "identifier"}
        said = shell.release(given, "--run-id", f"from{first}")
        assert said.code == 0, said.err
        record = json.loads((tmp_path / f"out/table.private/from{first}.json").read_text())
        chosen.append(record["plan"]["levels"])
        manifest = json.loads((tmp_path / "out/table/_anonlib/manifest.json").read_text())
        told = {each["name"]: each.get("parameters", {}) for each in manifest["columns"]}
        for name in ("wage", "city"):
            assert told[name].get("level", 0) == min(levels[name] for levels in chosen), chosen
    assert chosen[0] != chosen[1]


def test_the_same_whatever_the_order(shell: Shell, spark: SparkSession, tmp_path: Path) -> None:
    found = []
    for i, rows in enumerate([frame(), frame().sample(frac=1.0, random_state=3)]):
        folder = tmp_path / str(i)
        folder.mkdir()
        write_people(folder, rows)
        given = config(
            folder, "greedy", recode={"columns": {"wage": "proportional"}, "nominal": "lca"}
        )
        given["pseudonyms"]["scope"] = "stable"
        said = shell.release(given)
        assert said.code == 0, said.err
        found.append(multiset(released(spark, folder)))
        assert sum(found[-1].values()) == 90
    assert found[0] == found[1]


def test_a_batch_is_added(shell: Shell, spark: SparkSession, tmp_path: Path) -> None:
    rows = frame(120)
    for mode, part in (("error", rows[:60]), ("append", rows[60:])):
        write_people(tmp_path, part)
        changes = {"release": {"mode": mode, "acknowledge_returning": mode == "append"}}
        said = shell.release(config(tmp_path, "peel", **changes))
        assert said.code == 0, said.err
    table = released(spark, tmp_path).toPandas()
    assert len(table) == 120
    assert table.groupby(["wage", "city"], dropna=False).size().min() >= 3
    manifest = json.loads((tmp_path / "out/table/_anonlib/manifest.json").read_text())
    for name in ("wage", "city"):
        named = {each for each in manifest["hierarchies"][name]["names"] if each is not None}
        assert {*table[name].dropna()} <= named  # those of both batches

    changed = config(tmp_path, "peel", **changes)
    (tmp_path / "city.csv").write_text(f"{MARKER}-city-00;north;anywhere\n" + CITIES)
    said = shell.release(changed)
    assert said.code == 2
    assert "the hierarchy of column city differs from the table's" in said.error


def test_what_does_not_go_with_it(shell: Shell, spark: SparkSession, tmp_path: Path) -> None:
    write_people(tmp_path, frame())
    wrong = config(tmp_path, "mdav", recode={"nominal": "mode"})
    wrong["privacy"]["suppress"] = "costliest"
    said = shell.release(wrong)
    assert said.code == 2
    for text in (
        "kernel.type: kernel mdav does not work with tuples; these do: full_domain, greedy, peel",
        "recode.columns.wage: recoder mode does not work with tuples; these do: lca, ",
        "privacy.suppress: costliest does not work with tuples",
    ):
        assert text in said.error
    few = config(tmp_path, "greedy", partition={"steps": [{"type": "tuples", "max_tuples": 5}]})
    said = shell.release(few)
    assert said.code != 0
    assert "more than max_tuples = 5 distinct combinations" in said.error
    assert MARKER not in said.err
    assert not (tmp_path / "out" / "table").exists()

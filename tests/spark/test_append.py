"""Batches added to a published table: what is audited, who is recognised, what is refused."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession

import anonlib
from anonlib.run import publish
from anonlib.run.ledger import Ledger
from anonlib.source.resolved_source import Source
from anonlib.table.schema import Schema
from tests.spark.support import (
    MARKER,
    Said,
    Shell,
    holding,
    left,
    multiset,
    people,
    settings,
    start_from,
)

pytestmark = pytest.mark.spark

KEY = "LEDGERKEY-0123456789abcdef"


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANONLIB_LEDGER_KEY", KEY)


def batch(first: int, n: int) -> pd.DataFrame:
    """The people of these numbers, each with a name of their own."""
    return people(first + n).iloc[first:].reset_index(drop=True)


def config(folder: Path, frame: pd.DataFrame, mode: str = "append", **changes: Any) -> Any:
    """Releases `frame` to the table of `folder`, with a ledger."""
    frame.to_parquet(folder / "people.parquet", index=False)
    release = {"mode": mode, "ledger": {"key_env": "ANONLIB_LEDGER_KEY"}}
    return settings(folder, **{**changes, "release": {**release, **changes.get("release", {})}})


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("append")


@pytest.fixture
def started(shell: Shell, place: Path) -> Path:
    """The folder of a table of 30 persons."""
    start_from(shell, place, config(place, batch(0, 30), "error"))
    return place


def table(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.read.format("delta").load(str(folder / "out" / "table"))


def refused(said: Said, code: int, *texts: str) -> None:
    assert said.code == code, said.err
    for text in texts:
        assert text in said.error


@pytest.mark.cluster
@pytest.mark.usefixtures("noted")
def test_append_twice(shell: Shell, spark: SparkSession, tmp_path: Path) -> None:
    refused(shell.release(config(tmp_path, batch(0, 9))), 2, "no table is at", "to append to")
    assert shell.release(config(tmp_path, batch(0, 60), "error"), "--run-id", "one").code == 0
    first = multiset(table(spark, tmp_path))
    columns = table(spark, tmp_path).columns
    # In another order of columns, with nulls among them.
    added = batch(60, 30)[["illness", "city", "name", "wage"]]
    added.loc[3, "city"] = None
    assert shell.release(config(tmp_path, added), "--run-id", "two").code == 0
    second = table(spark, tmp_path)
    assert second.columns == columns
    found = multiset(second)
    assert sum(found.values()) == 90
    assert not first - found  # published rows stay as they are
    classes = second.toPandas().groupby(["wage", "city"], dropna=False)
    assert classes.size().min() >= 3
    assert classes["illness"].nunique().min() >= 2
    manifest = json.loads((tmp_path / "out/table/_anonlib/manifest.json").read_text())
    assert (manifest["run_id"], manifest["rows_released"], manifest["rows_added"]) == (
        "two",
        90,
        30,
    )

    said = shell.release(config(tmp_path, batch(90, 12)), "--run-id", "three")
    assert "rows    12 in, 12 out" in said.out.replace("  rows", "rows"), said.out
    again = shell.release(config(tmp_path, batch(90, 12)), "--run-id", "two")
    assert "Run two is done already" in again.out
    assert table(spark, tmp_path).count() == 102
    person = tmp_path / "person.json"
    for number, runs in ((70, ["two"]), (1, ["one"]), (200, [])):
        person.write_text(json.dumps({"name": f"{MARKER}-name-{number}"}))
        said = shell("runs", str(tmp_path / "config.yaml"), "--person", str(person), "--json")
        found = json.loads(said.out)
        assert [run_id for run_id, released in found.items() if released == "released"] == runs
        assert {*found} == {"one", "two", "three"}
        assert MARKER not in said.out + said.err
    # The purge after it removes the log of the runs before.
    anew = config(tmp_path, batch(1, 60), "overwrite", release={"acknowledge_overwrite": True})
    assert shell.release(anew, "--run-id", "four").code == 0
    person.write_text(json.dumps({"name": f"{MARKER}-name-0"}))
    said = shell("runs", str(tmp_path / "config.yaml"), "--person", str(person), "--json")
    assert json.loads(said.out)["one"] == "released, replaced by run four"
    person.write_text('{"city": "x"}')
    said = shell("runs", str(tmp_path / "config.yaml"), "--person", str(person))
    refused(said, 2, "the ledger knows persons by: name; name these columns")
    assert left(tmp_path / "out") == {"table", "table.private"}
    assert holding(MARKER + "-name", tmp_path / "out") == []
    assert holding(KEY, tmp_path / "out") == []


def test_returning_persons(shell: Shell, spark: SparkSession, started: Path) -> None:
    again = config(started, batch(27, 30))
    refused(
        shell.release(again), 2, "release.acknowledge_returning: 3 persons of the source were rel"
    )
    accepted = ("--set", "release.acknowledge_returning=true")
    assert shell.release(again, *accepted).code == 0
    assert table(spark, started).count() == 60
    # Those of the batch are known now, too.
    refused(shell.release(config(started, batch(56, 9))), 2, "1 persons of the source were")
    # Lost tokens would be persons that are not recognised.
    tokens = (started / "out" / "table.private" / "ledger").glob("run-*/tokens/*.parquet")
    next(tokens).unlink()
    refused(shell.release(config(started, batch(57, 9))), 1, "release.ledger: ", "tokens are there")


def test_persons_that_can_not_be_recognised(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = config(tmp_path, batch(0, 30), "error")
    where = "release.acknowledge_returning: "
    unknown = {**first, "release": {**first["release"], "ledger": None}}
    assert shell.release(unknown).code == 0
    later = config(tmp_path, batch(30, 9))
    refused(shell.release(later), 2, f"{where}the ledger lacks 1 of the 1 runs")
    later["release"]["path"] += "2"
    assert shell.release({**later, "release": {**later["release"], "mode": "error"}}).code == 0
    later = config(tmp_path, batch(39, 9), release={"path": later["release"]["path"]})
    monkeypatch.setenv("ANONLIB_LEDGER_KEY", KEY + "-other")
    refused(shell.release(later), 2, f"{where}the ledger was written with another key")
    monkeypatch.setenv("ANONLIB_LEDGER_KEY", KEY)
    other = {**later, "one_row_per_person": "city"}
    other["attributes"] = {
        **later["attributes"],
        "city": {"role": "identifier"},
        "name": {"role": "drop"},
    }
    refused(shell.release(other), 2, "the batch has no column city")


def test_a_table_that_is_reached_by_a_link(shell: Shell, started: Path) -> None:
    """The ledger knows it by another path, and says so: no word of accepting who returns."""
    for name in ("table", "table.private"):
        (started / "out" / f"linked{name[5:]}").symlink_to(started / "out" / name)
    linked = {"path": str(started / "out" / "linked")}
    said = shell.release(config(started, batch(20, 19), release=linked))
    refused(said, 2, "the ledger has runs of this table under another path, file:", "out/table: it")
    assert "set this to true" not in said.error


def test_another_key_of_the_ledger(
    shell: Shell, spark: SparkSession, started: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Persons of the old key can't be found any more; those of the new one are."""
    monkeypatch.setenv("ANONLIB_LEDGER_KEY", KEY + "2")
    said = shell.release(config(started, batch(30, 9)))
    refused(said, 2, "the ledger was written with another key; set this to `unknown`")
    unknown = {"acknowledge_returning": "unknown"}
    said = shell.release(config(started, batch(30, 9), release=unknown))
    assert said.code == 0, said.err
    assert "can't be recognised: the ledger was written with another key" in " ".join(
        said.out.split()
    )
    again = shell.release(config(started, batch(38, 9), release=unknown))
    refused(again, 2, "1 persons of the source were released before")
    assert "another key" not in again.error
    assert table(spark, started).count() == 39


def test_rows_of_others(shell: Shell, spark: SparkSession, started: Path) -> None:
    """Rows that somebody else added are audited, and their persons are not known."""
    path = str(started / "out" / "table")
    table(spark, started).limit(4).write.format("delta").mode("append").save(path)
    later = config(started, batch(30, 9))
    refused(shell.release(later), 2, "the table is not as any run of the ledger left it")
    unknown = {"acknowledge_returning": "unknown"}
    assert shell.release(config(started, batch(30, 9), release=unknown)).code == 0
    # The table that this run left takes batches; what is unknown of it is told ever after.
    said = shell.release(config(started, batch(39, 9)))
    assert said.code == 0, said.err
    assert "can't be recognised: others had changed" in " ".join(said.out.split())
    # Its rows may be of the same persons: no class can be counted once others changed it again.
    spark.sql(f"ALTER TABLE delta.`{path}` ALTER COLUMN illness FIRST")
    later = config(started, batch(48, 9))
    for how in ((), ("--set", "release.acknowledge_returning=true")):
        refused(shell.release(later, *how), 2, "persons may be in several batches of")
    assert table(spark, started).count() == 52


def test_other_columns(shell: Shell, spark: SparkSession, started: Path) -> None:
    frame = batch(30, 9).astype({"wage": float}).rename(columns={"city": "town"})
    later = config(started, frame, release={"partition_by": ["illness"]})
    later["attributes"]["town"] = later["attributes"].pop("city")
    refused(
        shell.release(later),
        2,
        "nothing can be appended to",
        "it lacks column town",
        "the batch has no column city",
        "column wage is bigint in the table, and double in the batch",
        "its files are laid out by no column",
    )


def test_overtaken(
    shell: Shell, spark: SparkSession, started: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody appends between the audit and the commit, which did not see those rows."""
    adopt = publish.Target._adopt

    def overtaken(*how: Any) -> Any:
        actions = adopt(*how)
        rows = table(spark, started).limit(1)
        rows.write.format("delta").mode("append").save(str(started / "out" / "table"))
        return actions

    with monkeypatch.context() as patch:
        patch.setattr(publish.Target, "_adopt", overtaken)
        said = shell.release(config(started, batch(30, 9)))
    refused(said, 1, "changed")
    assert table(spark, started).count() == 31
    referenced = {Path(file).name for file in table(spark, started).inputFiles()}
    assert {path.name for path in (started / "out/table").glob("*.parquet")} == referenced


@pytest.mark.cluster
def test_rows_that_a_restore_took_back(shell: Shell, spark: SparkSession, started: Path) -> None:
    """A run is done while its rows are there. What holds of the table is what the run before it
    said; its persons were released all the same."""
    path, second = started / "out" / "table", config(started, batch(30, 9))
    assert shell.release(second, "--run-id", "two").code == 0
    page = anonlib.certify(next((started / "out" / "table.private").glob("[!t]*.json")))
    spark.sql(f"RESTORE TABLE delta.`{path}` TO VERSION AS OF 0")
    # The manifest beside the table is still that of the second run.
    states = {line.name: line.state for line in anonlib.verify(page, path)}
    assert states["run"] == "confirmed", states
    assert "contradicted" not in states.values(), states
    gone = "run two was published as version 1, and version 2 restored the table to version 0: its"
    refused(shell.release(second, "--run-id", "two"), 2, "release.run_id: ", gone)
    manifest = json.loads((path / "_anonlib" / "manifest.json").read_text())
    assert (manifest["rows_released"], table(spark, started).count()) == (30, 30)
    refused(shell.release(second, "--run-id", "three"), 2, "9 persons of the source were released")
    accepted = ("--set", "release.acknowledge_returning=true")
    assert shell.release(second, "--run-id", "three", *accepted).code == 0
    assert table(spark, started).count() == 39
    # By a time, its files tell which version came back.
    stamp = spark.sql(f"describe history delta.`{path}`").where("version = 0").first()
    spark.sql(f"RESTORE TABLE delta.`{path}` TO TIMESTAMP AS OF '{stamp.timestamp}'")
    said = shell.release(second, "--run-id", "three", *accepted)
    refused(said, 2, "version 4 restored the table to version 2: its rows are not there")
    weak = {"models": [{"type": "k_anonymity", "k": 2}]}
    asked = settings(started, privacy=weak)
    assert "k_anonymity k=3 was promised" in anonlib.audit(path, asked).shortfalls[0]
    spark.sql(f"RESTORE TABLE delta.`{path}` TO VERSION AS OF 3")
    said = shell.release(second, "--run-id", "three", *accepted)
    assert "Run three is done already" in said.out, said.err


def ill(first: int, n: int, share: float) -> pd.DataFrame:
    """People of whom this share is ill, evenly over the wages."""
    frame = batch(first, n)
    frame["illness"] = ["flu" if i % 10 < 10 * share else "none" for i in range(n)]
    return frame


def test_relative_models(shell: Shell, spark: SparkSession, tmp_path: Path) -> None:
    """The reference is that of the whole: of what is there and of the batch."""
    models = [
        {"type": "k_anonymity", "k": 5},
        {"type": "t_closeness", "t": 0.2, "attribute": "illness"},
    ]
    private = {"privacy": {"models": models}}
    start = config(tmp_path, ill(0, 60, 0.5), "error", **private)
    assert shell.release(start).code == 0
    # On its own, a batch of the ill is as close to itself as can be; against the whole it is not.
    said = shell.release(config(tmp_path, ill(60, 20, 1.0), **private))
    refused(said, 2, "privacy.models.t_closeness: column illness does not hold it in all rows")
    # So many of them that they hold, but what is there does not hold any more.
    said = shell.release(config(tmp_path, ill(60, 240, 0.9), **private))
    refused(said, 3, "the audit of the table with the batch failed", "published rows do not any mo")
    assert table(spark, tmp_path).count() == 60
    assert shell.release(config(tmp_path, ill(60, 60, 0.6), **private)).code == 0
    assert table(spark, tmp_path).count() == 120


def test_units(shell: Shell, spark: SparkSession, tmp_path: Path) -> None:
    """Persons with several rows can't be counted in what is published: the ledger vouches for it,
    if just those rows were audited by just those models."""

    def visits(first: int, n: int) -> pd.DataFrame:
        return pd.concat([batch(first, n), batch(first, n)], ignore_index=True)

    def of_unit(first: int, n: int, mode: str = "append", k: int = 3) -> Any:
        made = config(tmp_path, visits(first, n), mode, one_row_per_person=False, unit=["name"])
        made["privacy"] = {"models": [{"type": "k_anonymity", "k": k}]}
        return made

    assert shell.release(of_unit(0, 30, "error")).code == 0
    refused(shell.release(of_unit(30, 12, k=4)), 2, "unit: ", "no run of the ledger had these")
    said = shell.release(of_unit(30, 12))
    assert said.code == 0, said.err
    assert table(spark, tmp_path).count() == 84
    assert shell.release(of_unit(42, 6)).code == 0
    # Rows from elsewhere: nobody counted the persons in them.
    path = str(tmp_path / "out" / "table")
    table(spark, tmp_path).limit(1).write.format("delta").mode("append").save(path)
    accepted = ("--set", "release.acknowledge_returning=true")
    refused(shell.release(of_unit(48, 6), *accepted), 2, "left exactly these rows")


def test_a_unit_in_another_order(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Persons are known by the same columns. So are those whose tokens an earlier version made in
    the order of its config."""

    def of_unit(first: int, n: int, mode: str = "append", **release: Any) -> Any:
        frame = batch(first, n).assign(house="a")
        unit = {"one_row_per_person": False, "unit": ["house", "name"]}
        made = config(tmp_path, frame, mode, release=release, **unit)
        made["attributes"]["house"] = {"role": "identifier"}
        return made

    def as_earlier(ledger: Ledger, schema: Schema) -> Any:
        return (("name", "string"), ("house", "string"))

    def tokens_as_earlier(ledger: Ledger, source: Source) -> Any:
        return make_tokens(ledger, source, [("name", "house")])

    make_tokens = Ledger._tokens
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "_persons", as_earlier)
        patch.setattr(Ledger, "_tokens", tokens_as_earlier)
        assert shell.release({**of_unit(0, 30, "error"), "unit": ["name", "house"]}).code == 0
    unknown = {"acknowledge_returning": "unknown"}
    refused(shell.release(of_unit(20, 30, **unknown)), 2, "10 persons of the source were released")
    said = shell.release(of_unit(30, 12))
    assert said.code == 0, said.err
    for unit in (["name", "house"], ["house", "name"]):
        again = shell.release({**of_unit(25, 30), "unit": unit})
        refused(again, 2, "17 persons of the source were released")

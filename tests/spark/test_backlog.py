"""Batches that can not hold the models alone: they wait, encrypted, and go with a later one."""

import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession

import anonlib
from anonlib.errors import ConfigError, InputError, StorageError
from anonlib.run.publish import Target
from anonlib.run.run_table import list_past_runs
from anonlib.run.scan import scan
from anonlib.source.resolved_source import open_source
from anonlib.spark.storage import Storage
from anonlib.spark.values import find_spark_type
from tests.spark.support import MARKER, Shell, holding, left, settings, start_from
from tests.spark.test_append import KEY, batch, config, refused, table

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("noted")]

RECORDS = (".json", ".html")


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANONLIB_LEDGER_KEY", KEY)


def waiting(folder: Path, frame: pd.DataFrame, mode: str = "append", **changes: Any) -> Any:
    """With a backlog of the ledger's master key."""
    backlog = {"backlog": {"key_env": "ANONLIB_LEDGER_KEY"}}
    return config(folder, frame, mode, release=backlog, **changes)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("backlog")


@pytest.fixture
def started(shell: Shell, place: Path) -> Path:
    """The folder of a table of 30 persons, by the run `zero`."""
    start_from(shell, place, waiting(place, batch(0, 30), "error"), "--run-id", "zero")
    return place


def sealed(folder: Path) -> set[str]:
    """The runs whose rows are in the backlog."""
    place = folder / "out" / "table.private" / "backlog"
    return {path.parent.name for path in place.glob("*/rows")}


@pytest.mark.cluster
def test_waits_and_goes(
    shell: Shell, spark: SparkSession, started: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs, few = started / "out" / "table.private" / "runs", waiting(started, batch(30, 2))
    for again in (False, True):
        if again:  # the driver died before it noted the run
            shutil.rmtree(runs)
            with pytest.raises(InputError, match="is a released table, and its runs are not in"):
                list_past_runs(str(started / "out" / "table"))
        said = shell.release(few, "--run-id", "one")
        assert said.code == 0, said.err
        assert "has changed since" not in said.out
        assert "Run one published nothing: 2 rows wait in the backlog" in said.out
        assert ("privacy.models.k_anonymity: asks for 3 rows" in said.out) != again
        # Its rows wait: no stage has failed.
        assert ("scan: stopped after" in said.err) != again
        assert "failed" not in said.err
        noted = list_past_runs(str(runs))[0]
        assert list_past_runs(str(started / "out" / "table"))[0] == noted
        assert (noted["run_id"], noted["outcome"], noted["rows_waiting"]) == ("one", "waiting", 2)
    # What is not read is said, and a run with another config is another run.
    other = shell.release(waiting(started, batch(30, 2), seed=8), "--run-id", "one")
    refused(other, 2, "run one left its rows in the backlog with another config; choose another")
    changed = shell.release(waiting(started, batch(30, 9)), "--run-id", "one")
    assert "2 rows wait in the backlog" in changed.out, changed.err
    assert "the source has changed since: files were added, removed or written" in changed.out
    # Persons who were released do not get in.
    returning = shell.release(waiting(started, batch(29, 1)), "--run-id", "no")
    refused(returning, 2, "1 persons of the source were released before")
    assert sealed(started) == {"run-one"}
    monkeypatch.setenv("ANONLIB_LEDGER_KEY", KEY + "2")
    other = shell.release(waiting(started, batch(32, 9)))
    refused(other, 2, "release.backlog: it was written with another key")
    monkeypatch.setenv("ANONLIB_LEDGER_KEY", KEY)
    changed = waiting(started, batch(32, 9).astype({"wage": float}))
    refused(shell.release(changed), 2, "wage is bigint in waiting rows, and double in the source")
    for name in ("name", "city", "illness"):
        found = holding(f"{MARKER}-{name}", started / "out" / "table.private")
        # Records name what is released of a column, where k persons have it.
        assert not [each for each in found if name == "name" or not each.endswith(RECORDS)]
    assert table(spark, started).count() == 30

    # A run that dies before its commit has taken nothing; one that dies after it, all.
    def stopped(*args: Any, **named: Any) -> int:
        raise StorageError("stopped")

    two = waiting(started, batch(32, 1))
    with monkeypatch.context() as patch:
        patch.setattr(Target, "publish", stopped)
        refused(shell.release(two, "--run-id", "two"), 1, "stopped")
    assert table(spark, started).count() == 30
    delete = Storage.delete

    def kept(storage: Storage, path: str) -> None:
        if path.endswith("/rows"):
            raise StorageError("stopped")
        delete(storage, path)

    with monkeypatch.context() as patch:
        patch.setattr(Storage, "delete", kept)
        refused(shell.release(two, "--run-id", "two"), 1, "stopped")
    assert table(spark, started).count() == 33
    assert sealed(started) == {"run-one"}
    assert "Run two is done already" in shell.release(two, "--run-id", "two").out
    assert sealed(started) == set()
    assert table(spark, started).count() == 33
    # The run that waited is done with it, and does not wait again.
    again = shell.release(waiting(started, batch(30, 2)), "--run-id", "one")
    assert "published by run two" in again.out
    assert (sealed(started), table(spark, started).count()) == (set(), 33)
    refused(shell.release(waiting(started, batch(30, 9))), 2, "3 persons of the source were")
    assert left(started / "out") == {"table", "table.private"}


def test_a_batch_whose_controllers_fail_waits(
    shell: Shell, spark: SparkSession, started: Path
) -> None:
    apart = {"steps": [{"type": "controller", "column": "city"}]}
    said = shell.release(waiting(started, batch(30, 8), partition=apart), "--run-id", "one")
    assert said.code == 0, said.err
    assert "Run one published nothing: 8 rows wait in the backlog" in said.out
    assert "can't hold their models alone" in said.out
    assert "stopped after" in said.err
    assert "failed" not in said.err
    assert sealed(started) == {"run-one"}
    assert table(spark, started).count() == 30


def test_texts_that_wait_are_read_as_they_were(
    shell: Shell, spark: SparkSession, tmp_path: Path
) -> None:
    """By another layout, the same texts are other days and numbers."""

    def made(first: int, n: int, layout: str, mode: str = "append") -> Any:
        frame = batch(first, n)
        frame["wage"] = [f"1.{100 + i}" for i in range(n)]
        frame["day"] = [f"0{1 + i % 9}/02/2020" for i in range(n)]
        given = waiting(tmp_path, frame, mode)
        frame.to_csv(tmp_path / "people.csv", index=False)
        path = str(tmp_path / "people.csv")
        given["source"] = {"format": "csv", "path": path, "options": {"header": "true"}}
        number = "1.234,5" if layout.startswith("dd") else "1,234.5"
        given["attributes"]["wage"] |= {"type": "double", "layout": number}
        day = {"role": "insensitive", "type": "date", "layout": layout}
        given["attributes"]["day"] = day
        given["privacy"] |= {"acknowledge_unique": ["day"]}
        return given

    said = shell.release(made(0, 30, "dd/MM/yyyy", "error"))
    assert said.code == 0, said.err
    said = shell.release(made(30, 2, "dd/MM/yyyy"), "--run-id", "one")
    assert "2 rows wait in the backlog" in said.out, said.err
    refused(
        shell.release(made(32, 9, "MM/dd/yyyy")),
        2,
        "attributes.wage: rows of run one wait in the backlog that were read as double written as "
        "1.234,5, and would be read as double written as 1,234.5 now",
        "attributes.day: rows of run one wait in the backlog that were read as date written as dd/",
    )
    assert table(spark, tmp_path).count() == 30
    said = shell.release(made(32, 9, "dd/MM/yyyy"))
    assert said.code == 0, said.err
    found = table(spark, tmp_path).selectExpr("min(wage)", "max(month(day))").first()
    assert (found[0] >= 1100, found[1], sealed(tmp_path)) == (True, 2, set())


@pytest.mark.parametrize(("fresh", "waits"), [("int", "bigint"), ("bigint", "int")])
def test_whole_numbers_of_another_width_that_wait(
    spark: SparkSession, tmp_path: Path, fresh: str, waits: str
) -> None:
    """They are the same numbers: a batch reads them as its own type, if they fit."""

    def rows(first: int, type: str, wage: str = "id") -> DataFrame:
        wages = [f"'{first}' || id AS name", f"CAST({wage} AS {type}) AS wage"]
        return spark.range(9).selectExpr(*wages, "'x' AS city", "string(id % 3) AS illness")

    parsed = anonlib.parse(settings(tmp_path))
    with closing(open_source(spark, parsed, rows(1, fresh), {"one": rows(2, waits)})) as source:
        assert find_spark_type(source.schema["wage"].type).simpleString() == fresh
        assert scan(source, parsed).n_rows == 18
        wage = source.rows().select(source.schema["wage"].id)
        assert wage.schema[0].dataType.simpleString() == fresh
        assert sorted(row[0] for row in wage.collect()) == sorted([*range(9)] * 2)
    large = {"one": rows(2, "bigint", "id + 2147483645")}
    source = open_source(spark, parsed, rows(1, "int"), large)
    with closing(source), pytest.raises(ConfigError, match="6 values can't be read as int"):
        scan(source, parsed)
    with pytest.raises(InputError, match="wage is double in waiting rows, and int in the source"):
        open_source(spark, parsed, rows(1, "int"), {"one": rows(2, "double")})

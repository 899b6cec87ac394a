"""A release in place of another: who must agree, and what is left of the old one."""

import json
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import anonlib
from anonlib import pipeline
from anonlib.config.reading import parse
from anonlib.errors import StorageError
from anonlib.run import publish, steps
from anonlib.spark.storage import Storage
from tests.spark.support import (
    Shell,
    Step,
    forget_cached,
    holding,
    left,
    multiset,
    process,
    start_from,
    write_config,
)
from tests.spark.test_append import KEY, batch, config, refused, table

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("usual")]

ACCEPTED = ("--set", "release.acknowledge_overwrite=true")


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANONLIB_LEDGER_KEY", KEY)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("overwrite")


@pytest.fixture
def started(shell: Shell, place: Path) -> Path:
    """The folder of a table of 30 persons."""
    start_from(shell, place, config(place, batch(0, 30), "error"), "--run-id", "one")
    return place


def test_acknowledged_unless_nobody_comes_again(shell: Shell, started: Path) -> None:
    unknown = config(started, batch(30, 30), "overwrite", release={"ledger": None})
    where = "release.acknowledge_overwrite: a table exists already, and "
    refused(shell.release(unknown), 2, f"{where}without a ledger it is unknown who is in it")
    again = config(started, batch(28, 30), "overwrite")
    refused(shell.release(again), 2, f"{where}2 persons of the source are in it")
    assert shell.release(config(started, batch(30, 30), "overwrite")).code == 0
    # Those of the version that is gone were released all the same.
    refused(shell.release(config(started, batch(0, 30), "overwrite")), 2, "30 persons")
    assert shell.release(config(started, batch(0, 30), "overwrite"), *ACCEPTED).code == 0


def test_a_table_that_was_dropped_was_released(
    shell: Shell, spark: SparkSession, started: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ledger knows its persons; which of its runs were committed, no log says any more."""
    shutil.rmtree(started / "out" / "table")
    forget_cached(spark)
    where = "release.acknowledge_overwrite: no table is at "
    for mode in ("error", "overwrite"):
        again = config(started, batch(28, 30), mode)
        refused(shell.release(again), 2, where, "2 persons of the source are in it")
        assert anonlib.check(again).obstacles[0].startswith(where)
    gone = "is the record of a run that published to a table that is not there any more"
    refused(shell.release(again, "--run-id", "one", *ACCEPTED), 2, "release.run_id: ", gone)
    monkeypatch.setenv("ANONLIB_LEDGER_KEY", KEY + "2")
    refused(shell.release(again), 2, where, "the ledger was written with another key")
    monkeypatch.setenv("ANONLIB_LEDGER_KEY", KEY)
    new = config(started, batch(30, 30), "error")
    with monkeypatch.context() as patch:
        patch.setattr(publish.Target, "publish", stop)
        assert shell.release(new, "--run-id", "two").code == 1
    refused(shell.release(new), 2, where, "30 persons of the source are in it")
    assert shell.release(new, "--run-id", "two").code == 0


def stop(*args: object) -> None:
    raise StorageError("stopped")


def test_a_table_that_only_grows_is_not_replaced(
    shell: Shell, spark: SparkSession, started: Path
) -> None:
    """Told before the source is read, not by Delta at the commit."""
    path = started / "out" / "table"
    for value in ("true", "false"):
        spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.appendOnly' = '{value}')")
        again = shell.release(config(started, batch(30, 30), "overwrite"))
        if value == "true":
            refused(again, 2, "has the property delta.appendOnly, which forbids")
    assert again.code == 0


class Stopped:
    """A storage whose n-th deletion below a folder fails, once: of a file, or an empty folder."""

    def __init__(self, patch: pytest.MonkeyPatch, folder: Path):
        self.left = 0
        for name in ("delete", "delete_empty"):
            patch.setattr(Storage, name, self._stop(getattr(Storage, name), f"{folder}/"))

    def _stop(self, delete: Callable[..., None], below: str) -> Callable[..., None]:
        def stopping(storage: Storage, path: str) -> None:
            if below in path:
                self.left -= 1
                if self.left == 0:
                    raise StorageError("stopped")
            delete(storage, path)

        return stopping


@pytest.mark.cluster  # half a minute
def test_nothing_is_left_of_the_old_version(
    shell: Shell, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither its files, nor folders named by its values, nor statistics - however often the purge
    is stopped; and readers and writers go on."""
    release = {"partition_by": ["illness"], "acknowledge_overwrite": True}
    old = batch(0, 30).replace("illness-", "illness-before-", regex=True)
    first = config(tmp_path, old, "error", release=release)
    assert shell.release(first, "--run-id", "one").code == 0
    path = tmp_path / "out" / "table"
    assert len(list(path.glob("illness=*before*"))) == 5
    assert holding("before", path)

    after = batch(0, 30).replace("illness-", "illness-after-", regex=True)
    stopped = Stopped(monkeypatch, path)
    second = config(tmp_path, after, "overwrite", release=release)
    for n in (3, 7, 12):  # files, folders, the log; from the second on by the run that is done
        stopped.left = n
        said = shell.release(second, "--run-id", "two")
        assert (said.code, stopped.left) == (1, 0)
        forget_cached(spark)
        assert table(spark, tmp_path).count() == 30
    again = shell.release(second, "--run-id", "two")
    assert again.code == 0
    assert "Run two is done already" in again.out

    forget_cached(spark)
    found = multiset(table(spark, tmp_path))
    assert sum(n for row, n in found.items() if "after" in row) == 30
    assert holding("before", path) == []
    assert [place for place in path.rglob("*") if "before" in place.name] == []
    history = spark.sql(f"describe history delta.`{path}`").collect()
    for version in range(history[-1]["version"]):
        with pytest.raises(Exception, match=r"time travel|VERSION"):
            spark.read.format("delta").option("versionAsOf", version).load(str(path)).count()
    assert '"run_id": "two"' in history[0]["userMetadata"]
    properties = spark.sql(f"describe detail delta.`{path}`").collect()[0]["properties"]
    assert "delta.deletedFileRetentionDuration" not in properties

    # A run of which the log says nothing any more is done all the same; others go on.
    assert "Run one is done already" in shell.release(first, "--run-id", "one").out
    assert multiset(table(spark, tmp_path)) == found
    assert shell.release(config(tmp_path, batch(30, 30), release=release)).code == 0
    forget_cached(spark)
    assert table(spark, tmp_path).count() == 60
    assert shell.release(config(tmp_path, after, "overwrite", release=release)).code == 0
    assert table(spark, tmp_path).count() == 30


@pytest.mark.cluster
def test_nothing_is_left_of_a_table_of_others(
    shell: Shell, spark: SparkSession, tmp_path: Path
) -> None:
    """Which has what our tables have not: checkpoints in parts, and rows that are deleted by
    vectors. Files that are not Delta's stay."""
    path = tmp_path / "out" / "table"
    marked = batch(0, 30).replace("illness-", "illness-before-", regex=True)
    old = spark.createDataFrame(marked).coalesce(1)
    options = {
        "delta.checkpointPolicy": "v2",
        "delta.checkpointInterval": "1",
        "delta.enableDeletionVectors": "true",
    }
    old.write.format("delta").options(**options).save(str(path))
    old.write.format("delta").mode("append").save(str(path))
    spark.sql(f"DELETE FROM delta.`{path}` WHERE name LIKE '%-1'")
    parts, vectors = path / "_delta_log" / "_sidecars", [*path.glob("deletion_vector_*.bin")]
    assert holding("before", parts)
    assert len(vectors) == 1
    others = [parts / "mine.parquet", path / "deletion_vector_mine.bin"]
    for each in others:
        each.write_text("mine")

    said = shell.release(config(tmp_path, batch(0, 30), "overwrite"), *ACCEPTED)
    assert said.code == 0, said.err
    assert holding("before", path) == []
    assert not vectors[0].exists()
    assert all(each.exists() for each in others)
    forget_cached(spark)
    assert table(spark, tmp_path).count() == 30
    said = shell.release(
        config(tmp_path, batch(30, 9)), "--set", "release.acknowledge_returning=true"
    )
    assert said.code == 0, said.err
    forget_cached(spark)
    assert table(spark, tmp_path).count() == 39


def update(spark: SparkSession, path: Path) -> None:
    spark.sql(f"UPDATE delta.`{path}` SET city = 'nowhere' WHERE illness LIKE '%-1'")


def insert(spark: SparkSession, path: Path) -> None:
    row = "SELECT 1L AS wage, 'nowhere' AS city, 'flu' AS illness"
    spark.sql(row).write.format("delta").mode("append").save(str(path))


@pytest.mark.parametrize("change", [None, update, insert])
def test_what_others_commit_before_the_purge(
    shell: Shell,
    spark: SparkSession,
    started: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[SparkSession, Path], None] | None,
) -> None:
    """The run has not audited it: the next one does, and says what it finds."""
    path = started / "out" / "table"
    purge = steps.purge

    def purge_late(*how: Any) -> None:
        if change is not None:
            change(spark, path)
        purge(*how)

    monkeypatch.setattr(steps, "purge", purge_late)
    release = {"acknowledge_overwrite": True}
    replacing = config(started, batch(30, 30), "overwrite", release=release)
    assert shell.release(replacing, "--run-id", "two").code == 0
    kept = json.loads((started / "out" / "table.private" / "two.json").read_text())
    there = table(spark, started).where("city = 'nowhere'").count()
    assert (there > 0, kept["table_version"]) == (change is not None, 1 if change else 3)
    said = shell.release(
        config(started, batch(60, 9)), "--set", "release.acknowledge_returning=true"
    )
    if change is None:
        assert (said.code, "so they were not read again" in said.out) == (0, True), said.err
    else:
        refused(said, 3, "the audit of the table with the batch failed", "k_anonymity k=3: ")


class Killed(BaseException):
    """An end that no code expects."""


def test_the_next_run_does_what_a_dead_one_owes(
    shell: Shell, spark: SparkSession, started: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever run that is, here one that is refused: the record in its place, the manifest and
    the dictionary of the new table, and nothing of the old one."""
    path, private = started / "out" / "table", started / "out" / "table.private"
    models = [{"type": "k_anonymity", "k": 5}]
    other = config(started, batch(30, 40), "overwrite", privacy={"models": models})

    def die(*args: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(steps, "write_manifest", die)
        said = shell.release(other, "--run-id", "second")
        assert (said.code, "unexpected Killed" in said.err) == (1, True), said.err
    assert not (private / "second.json").exists()

    refused(shell.release(config(started, batch(0, 30), "error")), 2, "a table is already at")
    manifest = json.loads((path / "_anonlib" / "manifest.json").read_text())
    assert (manifest["run_id"], manifest["rows_released"]) == ("second", 40)
    assert [each["model"] for each in manifest["verdicts"]] == ["k_anonymity k=5"]
    assert "k=5" in (path / "_anonlib" / "dictionary.md").read_text()
    record = json.loads((private / "second.json").read_text())
    assert (record["outcome"], record["n_rows_out"]) == ("published", 40)
    newest = spark.sql(f"describe history delta.`{path}` limit 1").collect()[0]["version"]
    assert record["table_version"] == newest == 3  # which the purge left, and not the run
    assert (private / "second.html").exists()
    forget_cached(spark)
    assert table(spark, started).count() == 40
    assert len([*path.glob("*.parquet")]) == len(table(spark, started).inputFiles())
    assert left(started / "out") == {"table", "table.private"}
    again = shell.release(other, "--run-id", "second")
    assert "Run second is done already" in again.out
    assert "is not there" not in again.out


@pytest.mark.cluster
def test_killed_while_purging(shell: Shell, spark: SparkSession, tmp_path: Path) -> None:
    """SIGKILL once the new version is committed: whichever run is next removes the old one."""
    release = {"acknowledge_overwrite": True}
    old = batch(0, 30).replace("illness-", "illness-before-", regex=True)
    assert shell.release(config(tmp_path, old, "error", release=release)).code == 0
    path = tmp_path / "out" / "table"
    replacing = write_config(tmp_path, config(tmp_path, batch(0, 30), "overwrite", release=release))
    seen = [str(path / "_delta_log"), "*.checkpoint.parquet"]
    step = Step(["release", replacing], "publish started", signal.SIGKILL, seen)
    codes, _, _ = process(tmp_path / "process", [step])
    assert codes == []
    forget_cached(spark)
    assert table(spark, tmp_path).where("illness like '%before%'").count() == 0
    assert holding("before", path)

    assert shell.release(config(tmp_path, batch(30, 9))).code == 0
    assert holding("before", path) == []
    assert table(spark, tmp_path).count() == 39
    assert pipeline.audit_delta(str(path), parse(config(tmp_path, batch(30, 9)))).passed
    assert left(tmp_path / "out") == {"table", "table.private"}

"""Batches added to rows that a run has audited: these are read again only if that is in doubt."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import anonlib
from tests.spark.support import Shell, people, settings, start_from, write_config

pytestmark = pytest.mark.spark

KEY = "LEDGERKEY-0123456789abcdef"
REREAD = "so they were not read again"


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANONLIB_LEDGER_KEY", KEY)


def config(folder: Path, first: int, n: int, mode: str = "append", **changes: Any) -> Any:
    frame = people(first + n).iloc[first:].reset_index(drop=True)
    frame.to_parquet(folder / "people.parquet", index=False)
    release = {"mode": mode, "ledger": {"key_env": "ANONLIB_LEDGER_KEY"}}
    return settings(folder, release=release, **changes)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("known")


@pytest.fixture
def started(shell: Shell, place: Path) -> Path:
    """The folder of a table of 30 persons."""
    start_from(shell, place, config(place, 0, 30, "error"))
    return place


def remove_rows(folder: Path) -> None:
    """Removes the data of the table: who reads it, fails."""
    for path in (folder / "out" / "table").glob("*.parquet"):
        path.unlink()


def record_of(folder: Path) -> dict[str, Any]:
    newest = json.loads((folder / "out/table/_anonlib/manifest.json").read_text())["run_id"]
    found: dict[str, Any] = json.loads((folder / f"out/table.private/{newest}.json").read_text())
    return found


def test_known_rows_are_not_read(shell: Shell, started: Path) -> None:
    """Twice, so that what is known of a table with a batch is known again."""
    for first, n in ((30, 9), (39, 12)):
        remove_rows(started)
        said = shell.release(config(started, first, n))
        assert said.code == 0, said.err
        assert REREAD in said.out
    audit = record_of(started)["audit"]
    assert (audit["n_rows"], audit["by_batch"], audit["passed"]) == (51, True, True)
    assert [v["holds"] for v in audit["verdicts"]] == [True, True]
    assert sum(size * n for size, n in audit["sizes"]) == 51


def add_row(spark: SparkSession, folder: Path) -> None:
    row = "select 1L as wage, 'nowhere' as city, 'flu' as illness"
    spark.sql(row).write.format("delta").mode("append").save(str(folder / "out" / "table"))


def change_record(folder: Path, **changes: Any) -> None:
    (path,) = (folder / "out" / "table.private").glob("*.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_rows_in_doubt_are_read(shell: Shell, started: Path) -> None:
    """All doubts are in `tests/unit/test_published_audit.py`."""
    change_record(started, table_version=1)
    remove_rows(started)
    said = shell.release(config(started, 30, 9))
    assert (said.code, "no such file" in said.error) == (2, True), said.err


def test_rows_of_others_are_audited(shell: Shell, spark: SparkSession, started: Path) -> None:
    add_row(spark, started)
    said = shell.release(config(started, 30, 9), "--set", "release.acknowledge_returning=true")
    assert (said.code, "k_anonymity k=3: 1 class fails" in said.error) == (3, True), said.err


def test_rows_of_others_who_say_that_nothing_changed(
    shell: Shell, spark: SparkSession, started: Path
) -> None:
    """`dataChange: false` is what a compaction says of the same rows; these are others."""
    table = str(started / "out" / "table")
    there = spark.read.format("delta").load(table)
    others = spark.createDataFrame(
        there.withColumn("city", F.monotonically_increasing_id().cast("string")).collect(),
        there.schema,
    )
    writer = others.write.format("delta").mode("overwrite").option("dataChange", "false")
    writer.save(table)
    said = shell.release(config(started, 30, 9), "--set", "release.acknowledge_returning=true")
    assert (said.code, "k_anonymity k=3: " in said.error) == (3, True), said.err


def test_rows_in_other_files_are_known(shell: Shell, spark: SparkSession, started: Path) -> None:
    spark.sql(f"OPTIMIZE delta.`{started / 'out' / 'table'}`")
    said = shell.release(config(started, 30, 9))
    assert (said.code, REREAD in said.out) == (0, True), said.err


def test_stronger_models_read_all(shell: Shell, started: Path) -> None:
    """The published rows were not audited for these. None of their classes has so many rows, and
    the batch is one class."""
    ((size, _),) = record_of(started)["audit"]["sizes"][-1:]
    assert size < 12
    strict = {"privacy": {"models": [{"type": "k_anonymity", "k": 12}]}}
    strict["privacy"]["models"].append({"type": "l_diversity", "l": 2, "attribute": "illness"})
    said = shell.release(config(started, 30, 12, **strict))
    assert said.code == 3, said.err
    assert "the audit of the table with the batch failed" in said.error
    assert "k_anonymity k=12: " in said.error


def test_persons_of_several_batches(shell: Shell, started: Path) -> None:
    """Each has a row in both, so rows of the table are no persons: nothing counts them as such,
    neither for other models nor for a gate."""
    first = record_of(started)["audit"]["sizes"]
    again = ("--set", "release.acknowledge_returning=true")
    said = shell.release(config(started, 0, 30), *again)
    assert said.code == 0, said.err
    record = record_of(started)
    assert (record["persons_return"], record["audit"]["by_batch"]) == (True, True)
    assert record["audit"]["sizes"] == [[size, 2 * n] for size, n in first]
    strict = {"privacy": {"models": [{"type": "k_anonymity", "k": 6}]}}
    strict["privacy"]["models"].append({"type": "l_diversity", "l": 2, "attribute": "illness"})
    for how in ((), again):
        said = shell.release(config(started, 30, 30, **strict), *how)
        assert (said.code, "its rows are no persons" in said.error) == (2, True), said.err
    gates = [{"figure": "reidentification.prosecutor_max", "at_most": 1.0}]
    measured = {"evaluate": {"measures": ["reidentification"]}, "gates": gates}
    given = write_config(shell.folder, config(started, 0, 60, **measured))
    said = shell("evaluate", given)
    assert (said.code, "rows are counted" in said.err + said.out) == (4, True), said.err


NOTED = {"city": {"role": "insensitive"}, "note": {"role": "insensitive"}}


def noted(folder: Path, first: int, mode: str, unique: list[str], **columns: Any) -> Any:
    """Batches of 30 with two insensitive columns, of which `unique` are acknowledged."""
    made = config(folder, first, 30, mode, attributes=NOTED)
    made["privacy"] = {**made["privacy"], "acknowledge_unique": unique}
    frame = people(first + 30).iloc[first:].assign(note="x", **columns)
    frame.to_parquet(folder / "people.parquet", index=False)
    return made


def test_what_was_acknowledged_is_read_where_it_is_not_any_more(
    shell: Shell, spark: SparkSession, tmp_path: Path
) -> None:
    """The batch has no rare combinations of the column that was acknowledged; the rows that are
    published have, and nobody has looked."""
    assert shell.release(noted(tmp_path, 0, "error", ["city"])).code == 0
    said = shell.release(noted(tmp_path, 30, "append", [], city="same"))
    assert said.code == 3, said.err
    assert "the audit of the table with the batch failed" in said.error
    assert "belong to fewer than k=3 persons" in said.error
    assert shell.release(noted(tmp_path, 30, "append", ["city"], city="same")).code == 0


def test_a_batch_acknowledges_no_more_than_the_table(shell: Shell, tmp_path: Path) -> None:
    assert shell.release(noted(tmp_path, 0, "error", [], city="same")).code == 0
    said = shell.release(noted(tmp_path, 30, "append", ["city"]))
    assert said.code == 2, said.err
    assert "combinations with column city were promised not to be rare" in said.error


@pytest.mark.parametrize("ledger", [True, False])
def test_a_certificate_of_a_batch_states_bounds(shell: Shell, started: Path, ledger: bool) -> None:
    batch = config(started, 30, 9)
    if not ledger:
        del batch["release"]["ledger"]
        batch["release"]["acknowledge_returning"] = True
    said = shell.release(batch)
    assert said.code == 0, said.err
    record = record_of(started)
    page = anonlib.certify(record["record"].removeprefix("file:"))
    text = Path(page).read_text("utf-8")
    assert f"at most {record['audit']['n_classes']}" in text
    lines = anonlib.verify(page, str(started / "out" / "table"))
    assert not [line for line in lines if line.state == "contradicted"]
    confirmed = {line.name for line in lines if line.state == "confirmed"}
    assert {"classes", "rows of the smallest class", "rows"} <= confirmed
    assert "rows and values of the table" in confirmed
    assert {"k_anonymity k=3", "l_diversity l=2 attribute=illness"} <= confirmed


def test_a_certificate_of_an_earlier_version(shell: Shell, started: Path) -> None:
    """The manifest beside the table is of a later run; that of this one is in its commit."""
    first, table = record_of(started), str(started / "out" / "table")
    page = anonlib.certify(first["record"].removeprefix("file:"))
    said = shell.release(config(started, 30, 9))
    assert said.code == 0, said.err
    lines = anonlib.verify(page, table, version=first["table_version"])
    assert not [line for line in lines if line.state == "contradicted"]
    assert {"run", "promise", "rows"} <= {line.name for line in lines if line.state == "confirmed"}
    now = anonlib.verify(page, table)
    assert {"run", "rows"} <= {line.name for line in now if line.state == "contradicted"}

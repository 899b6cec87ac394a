"""What publication gives away and what it does not: order, history, pseudonyms, files, records."""

import hmac
import json
import signal
import stat
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import anonlib
from anonlib import pipeline
from anonlib.errors import ConfigError, InputError, StorageError
from anonlib.run import publish, scan
from anonlib.spark import session
from anonlib.spark.session import UTC_FOLDERS
from anonlib.table.table_digest import Digest
from tests.spark.support import (
    Shell,
    holding,
    left,
    multiset,
    people,
    settings,
    texts_in,
    write_config,
    write_people,
)

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("usual")]

KEY = "MASTERKEY-0123456789abcdef"


def latest(spark: SparkSession, target: str) -> DataFrame:
    return spark.read.format("delta").load(target)


def in_file_order(frame: DataFrame) -> list[pd.DataFrame]:
    files = sorted(frame.inputFiles())
    return [pq.read_table(file.removeprefix("file://")).to_pandas() for file in files]


def pseudonym(scope: str, release: str, text: str | None) -> str | None:
    """As documented, by hand: HKDF (RFC 5869) without salt, one block of output."""
    if text is None:
        return None
    pseudorandom = hmac.digest(bytes(32), KEY.encode(), sha256)
    key = hmac.digest(
        pseudorandom, f"anonlib pseudonyms {scope} {release}".encode() + b"\1", sha256
    )
    return hmac.new(key, f"{len(text)}:{text}".encode(), sha256).hexdigest()


@pytest.mark.usefixtures("noted")
def test_order_history_and_pseudonyms(
    shell: Shell, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two publications of the same rows: the same multiset, in orders that say nothing."""
    n = 2400
    frame = people(n).assign(position=range(n), mail=[f"{i}@example.org" for i in range(n)])
    frame["wage"] += np.arange(n)  # sorted as the source is
    frame.loc[5, "mail"] = None
    write_people(tmp_path, frame)
    config = settings(
        tmp_path,
        attributes={
            "position": {"role": "insensitive"},
            "mail": {"role": "identifier", "pseudonym": True},
        },
        kernel="mondrian",
        release={"mode": "overwrite", "acknowledge_overwrite": True, "rows_per_file": 1000},
        pseudonyms={"key_env": "ANONLIB_TEST_KEY"},
    )
    config["privacy"] |= {"acknowledge_unique": ["position"], "acknowledge_linked": True}

    missing = shell.release(config)
    assert missing.code == 2
    text = "pseudonyms.key_env: environment variable ANONLIB_TEST_KEY is not set"
    assert text in missing.error
    assert left(tmp_path / "out") == set()

    monkeypatch.setenv("ANONLIB_TEST_KEY", KEY)
    kept = ["wage", "city", "illness", "position"]
    stable = ("--set", "pseudonyms.scope=stable")
    orders, released = [], []
    for scope, run_id, more in [("release", "one", ()), ("stable", "", stable)]:
        assert shell.release(config, *more, "--run-id", run_id or "two").code == 0
        table = latest(spark, config["release"]["path"])
        released.append(multiset(table.select(kept)))
        files = in_file_order(table)
        assert [len(file) > 500 for file in files] == [True] * 3
        rows = pd.concat(files)
        orders.append(list(rows["position"]))
        assert abs(np.corrcoef(orders[-1], range(n))[0, 1]) < 0.12  # 6 standard deviations
        cells = (rows["wage"].astype(str) + rows["city"]).to_numpy()
        assert (cells[1:] == cells[:-1]).mean() < 0.05
        by_source = rows.set_index("position")["mail"].sort_index()
        release = f"{run_id} file:{config['release']['path']}" if run_id else ""
        wanted = [pseudonym(scope, release, mail) for mail in frame["mail"]]
        assert list(by_source.where(by_source.notna(), None)) == wanted
    assert orders[0] != orders[1]
    assert released[0] == released[1]
    assert holding(KEY, tmp_path / "out") == []
    detail = spark.sql(f"describe detail delta.`{config['release']['path']}`").collect()[0]
    assert "delta.columnMapping.mode" not in detail["properties"]  # no name needs it


@pytest.mark.usefixtures("noted")
@pytest.mark.parametrize("there", [False, True])
def test_wrong_files_are_not_published(
    shell: Shell, spark: SparkSession, tmp_path: Path, there: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_people(tmp_path)
    release = {"mode": "overwrite", "acknowledge_overwrite": True, "order": "table"}
    config = settings(tmp_path, release=release)
    target = Path(config["release"]["path"])
    if there:
        spark.range(7).write.format("delta").save(str(target))
    before = texts_in(tmp_path / "out")
    digest = publish.digest

    def wrong(frame: DataFrame) -> Digest:
        found = digest(frame)
        return Digest(found.n_rows, found.low + 1, found.high)

    monkeypatch.setattr(publish, "digest", wrong)
    said = shell.release(config)
    assert said.code == 1
    assert said.error.startswith("error: release.path: the written files differ from the audited")
    after = texts_in(tmp_path / "out")
    assert {name: data for name, data in after.items() if ".private/runs/" not in name} == before
    assert target.exists() == there


@pytest.mark.parametrize("mode", ["error", "append"])
def test_an_interruption_waits_for_the_commit(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    """In a notebook, where it would come between what the JVM was told and its answer: the commit
    goes on, so its files must stay."""
    write_people(tmp_path)
    target = tmp_path / "out" / "table"
    given = settings(tmp_path, release={"run_id": "first"})
    if mode == "append":
        anonlib.release(anonlib.parse(given))
        more = {"mode": mode, "acknowledge_returning": True}
        given = settings(tmp_path, release={**more, "run_id": "second"})
    begin = publish.Transaction.begin
    main = threading.get_ident()

    class Slow:
        """A transaction whose commit is interrupted, and takes its time."""

        def __init__(self, begun: Any):
            self._begun = begun

        def __getattr__(self, name: str) -> Any:
            return getattr(self._begun, name)

        def commit(self, *args: Any) -> int:
            for _ in range(2):
                signal.pthread_kill(main, signal.SIGINT)
                time.sleep(0.5)
            return int(self._begun.commit(*args))

    def slow(spark: SparkSession, root: str) -> publish.Transaction:
        found = begin(spark, root)
        return replace(found, handle=Slow(found.handle)) if root.endswith("/table") else found

    monkeypatch.setattr(publish.Transaction, "begin", slow)
    with pytest.raises(KeyboardInterrupt):
        anonlib.release(anonlib.parse(given))
    monkeypatch.undo()
    n = 120 if mode == "append" else 60
    assert len(multiset(latest(spark, str(target)))) > 0
    assert latest(spark, str(target)).count() == n
    result = anonlib.release(anonlib.parse(given))
    assert result.already_done
    record = json.loads(Path(result.record).read_text())
    assert (record["outcome"], record["table_version"]) == ("published", n // 60 - 1)
    assert left(tmp_path / "out") == {"table", "table.private"}
    assert pipeline.audit_delta(str(target), anonlib.parse(given)).passed


def test_partitions(shell: Shell, spark: SparkSession, tmp_path: Path) -> None:
    """Columns that name the folders, with values that need quoting there."""
    odd = ["a/b", "x=y", "007", "Größe 1", None, "%41", "a b"]
    frame = people(70)
    frame["ill ness"] = [odd[i % 7] for i in range(70)]
    frame["_metadata"] = frame["ill ness"]  # as Spark calls what it knows of files
    frame["day"] = pd.to_datetime([f"2020-01-{1 + i % 2:02}" if i % 3 else None for i in range(70)])
    frame["day"] = frame["day"].dt.date
    write_people(tmp_path, frame)
    config = settings(tmp_path, release={"partition_by": ["ill ness", "day"]})
    attributes = {"ill ness": {"role": "sensitive"}, "day": {"role": "insensitive"}}
    attributes["_metadata"] = {"role": "sensitive"}
    config["attributes"] |= attributes
    config["privacy"]["acknowledge_unique"] = True
    said = shell.release(config)
    assert said.code == 0, said.err
    table = latest(spark, config["release"]["path"])
    source = spark.read.parquet(str(tmp_path / "people.parquet"))
    kept = ["ill ness", "day", "illness", "_metadata"]
    assert multiset(table.select(kept)) == multiset(source.select(kept))
    detail = spark.sql(f"describe detail delta.`{config['release']['path']}`").collect()[0]
    assert detail["partitionColumns"] == ["ill ness", "day"]


@pytest.mark.parametrize(
    ("verb", "value", "fault"),
    [
        ("release", "", "are empty"),
        ("check", "__HIVE_DEFAULT_PARTITION__", "are empty"),
        ("check", "a\0b", "have a NUL"),
    ],
)
def test_texts_that_folders_cannot_name(
    shell: Shell, tmp_path: Path, verb: str, value: str, fault: str
) -> None:
    frame = people(60)
    frame.loc[[3, 4], "illness"] = value
    write_people(tmp_path, frame)
    config = settings(tmp_path, release={"partition_by": ["illness"]})
    said = shell(verb, write_config(tmp_path, config))
    assert said.code == 2
    assert f"column illness: files can't be laid out by it: 2 values {fault}" in said.err
    assert not (tmp_path / "out" / "table").exists()


@pytest.mark.parametrize("fits", [True, False])
def test_texts_that_are_long_for_a_folder(shell: Shell, tmp_path: Path, *, fits: bool) -> None:
    """With the name of the column, and three bytes for each colon, 255 bytes are the most."""
    frame = people(60)
    frame.loc[[3, 4], "illness"] = "é:" * 49 + ("ab" if fits else "abc")
    write_people(tmp_path, frame)
    config = settings(tmp_path, release={"partition_by": ["illness"]})
    said = shell("release" if fits else "check", write_config(tmp_path, config))
    assert said.code == (0 if fits else 2), said.err
    assert fits or "column illness: files can't be laid out by it: 2 values are too" in said.err


TIMES = "if(id % 2 = 0, timestamp'{0}-06-01 00:00:00', timestamp'0001-06-01 00:00:00')"


def release_by_time(spark: SparkSession, folder: Path, first_year: str) -> dict[str, Any]:
    """A config that lays files out by a sensitive time; two times in each class, if all is well."""
    rows = spark.range(80).selectExpr("id % 40 as age", f"{TIMES.format(first_year)} as t")
    rows.write.parquet(str(folder / "times"))
    models = [{"type": "k_anonymity", "k": 5}, {"type": "l_diversity", "l": 2, "attribute": "t"}]
    return {
        "source": {"format": "parquet", "path": str(folder / "times")},
        "one_row_per_person": True,
        "attributes": {
            "age": {"role": "quasi_identifier", "scale": "continuous"},
            "t": {"role": "sensitive"},
        },
        "privacy": {"models": models},
        "release": {"path": str(folder / "out"), "partition_by": ["t"]},
        "seed": 1,
    }


def test_times_that_the_log_cannot_tell_apart(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Delta's log has the year 1 for the year 0, and the folder's name the right one. Readers go by
    the log, and so does the last check, if the scan foresees nothing."""
    config = release_by_time(spark, tmp_path, "0000")
    with pytest.raises(ConfigError, match="column t: files can't be laid out by it: 40 values are"):
        anonlib.release(config)
    monkeypatch.setattr(scan, "_list_faults", lambda *_: [])
    with pytest.raises(StorageError, match="differ from the audited table; nothing was published"):
        anonlib.release(config)
    assert not list((tmp_path / "out").glob("_delta_log/*.json"))


def test_times_without_a_zone_in_the_log(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each reader would take them for times of its own zone."""
    config = release_by_time(spark, tmp_path, "1500")
    config["spark"] = {"conf": {UTC_FOLDERS: "false"}}
    with pytest.raises(InputError, match=f"{UTC_FOLDERS} must be 'true'"):
        anonlib.release(config)
    fixed = tuple(key for key in session.FIXED if key != UTC_FOLDERS)
    monkeypatch.setattr(session, "FIXED", fixed)
    with pytest.raises(StorageError, match="times of folders without a zone"):
        anonlib.release(config)
    assert not list((tmp_path / "out").glob("_delta_log/*.json"))


def test_times_that_the_log_can_tell_apart(spark: SparkSession, tmp_path: Path) -> None:
    config = release_by_time(spark, tmp_path, "1500")
    anonlib.release(config)
    times = latest(spark, config["release"]["path"]).groupBy("age").agg(F.countDistinct("t"))
    assert {row[1] for row in times.collect()} == {2}


def test_old_times_come_through(shell: Shell, spark: SparkSession, tmp_path: Path) -> None:
    """As microseconds: INT96 loses what the calendar and zones of before 1900 say."""
    frame = people(60)
    times = [datetime(1583 + 7 * i, 3, 1, 12, 30, 15, i, UTC) for i in range(60)]
    frame["seen"] = [times[i // 2] for i in range(60)]
    spark.createDataFrame(frame).write.parquet(str(tmp_path / "people.parquet"))
    config = settings(tmp_path)
    config["attributes"]["seen"] = {"role": "sensitive"}
    said = shell.release(config)
    assert said.code == 0, said.err
    table = latest(spark, config["release"]["path"])
    micros = F.unix_micros("seen").alias("t")
    found = sorted(row.t for row in table.select(micros).collect())
    assert found == sorted(row.t for row in spark.createDataFrame(frame).select(micros).collect())
    (file, *_) = (tmp_path / "out" / "table").glob("*.parquet")
    schema = pq.ParquetFile(file).schema
    kinds = {schema.column(i).name: schema.column(i).physical_type for i in range(len(schema))}
    assert kinds["seen"] == "INT64"


@pytest.mark.usefixtures("noted")
def test_records(shell: Shell, spark: SparkSession, tmp_path: Path) -> None:
    """The manifest is public, an allow-list, and in the commit too; the record is private."""
    write_people(tmp_path)
    config = settings(tmp_path, seed=1234567)
    assert shell.release(config, "--run-id", "one").code == 0
    path = tmp_path / "out" / "table" / "_anonlib" / "manifest.json"
    manifest = json.loads(path.read_text("utf-8"))
    keys = "anonlib_manifest run_id persons persons_kind promise_sha256 verdicts rows_released"
    after = ("rows_suppressed", "losses", "software")
    assert list(manifest) == [*keys.split(), "partition", "columns", *after]
    assert {column["name"] for column in manifest["columns"]} <= {*config["attributes"]}
    assert (manifest["rows_released"], manifest["rows_suppressed"]) == (60, "0")
    history = spark.sql(f"describe history delta.`{config['release']['path']}`").collect()[0]
    assert json.loads(history["userMetadata"]) == manifest
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    page, record, runs = sorted((tmp_path / "out" / "table.private").iterdir())
    assert (page.name, record.name, runs.name) == ("one.html", "one.json", "runs")
    private = [stat.S_IMODE(p.stat().st_mode) for p in (page, record, record.parent, runs)]
    assert private == [0o600, 0o600, 0o700, 0o700]
    seed: Any = json.loads(record.read_text("utf-8"))["seed"]
    assert seed == 1234567
    assert holding("1234567", tmp_path / "out" / "table") == []


def test_sets_as_text(shell: Shell, spark: SparkSession, tmp_path: Path) -> None:
    """A text is no array, and need not be one: equal sets are equal texts."""
    write_people(tmp_path)
    given = settings(tmp_path, recode={"columns": {"city": {"type": "set", "form": "text"}}})
    said = shell.release(given)
    assert said.code == 0, said.error
    target = tmp_path / "out" / "table"
    cities = latest(spark, str(target)).toPandas()["city"]
    sets = [json.loads(text) for text in cities.unique()]
    assert max(map(len, sets)) > 1
    assert all(each == sorted(set(each)) for each in sets)
    assert shell("audit", str(target), "--conf", str(tmp_path / "config.yaml")).code == 0

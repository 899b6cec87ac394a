"""Where the rows of a release are in random order, and what their files show."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anonlib.auditing import AuditReport
from anonlib.run import data_files, publish, staging
from anonlib.table.columns import FILE
from tests.spark.support import Shell, left, multiset, people, settings, write_people

pytestmark = pytest.mark.spark

N, K = 2000, 3


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The config of a table for two files of many blocks."""
    monkeypatch.setattr(data_files, "FEWEST_ROWS", N // 2)
    frame = people(N).assign(position=range(N))
    frame["wage"] += np.arange(N)  # sorted as the source is
    write_people(tmp_path, frame)
    config = settings(
        tmp_path,
        attributes={"position": {"role": "insensitive"}},
        partition={"max_rows": 100},
        kernel="mondrian",
    )
    config["privacy"]["acknowledge_unique"] = ["position"]
    return config


def files_of(spark: SparkSession, path: str) -> list[pd.DataFrame]:
    """The rows of each file that the newest version of a table has."""
    names = spark.read.format("delta").load(path).inputFiles()
    return [pq.read_table(name.removeprefix("file://")).to_pandas() for name in names]


def classes(rows: pd.DataFrame) -> "pd.Series[int]":
    return rows.groupby(["wage", "city"], dropna=False).size()


@pytest.fixture
def audits(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each audit of staged rows, whether it was also by file."""
    seen: list[bool] = []
    from anonlib import auditing

    audit = auditing.audit_parts

    def note(frame: DataFrame, spec: Any, parts: Any, whole: Any = None) -> list[AuditReport]:
        seen.append(FILE in parts)
        return audit(frame, spec, parts, whole)

    monkeypatch.setattr(auditing, "audit_parts", note)
    return seen


def test_files_are_the_release(
    shell: Shell,
    spark: SparkSession,
    tmp_path: Path,
    source: dict[str, Any],
    audits: list[bool],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Audited files are moved, not written again: into a new table, and added to it. Each has whole
    classes, in an order that tells nothing; the same rows are released as by a shuffle of all."""
    path = source["release"]["path"]
    with monkeypatch.context() as patch:
        patch.setattr(publish.Target, "_order", None)  # it would write rows again
        assert shell.release(source).code == 0
    assert audits == [True]
    files = files_of(spark, path)
    assert [len(rows) > N / 4 for rows in files] == [True, True]
    assert all(classes(rows).min() >= K for rows in files)
    for rows in files:
        order = rows["position"].to_numpy()
        assert abs(np.corrcoef(order, np.arange(len(rows)))[0, 1]) < 6 / np.sqrt(len(rows))
        same = (rows["wage"].astype(str) + rows["city"]).to_numpy()
        assert (same[1:] == same[:-1]).mean() < 0.05
    table = spark.read.format("delta").load(path)
    released = multiset(table)
    figures = spark.sql(f"describe detail delta.`{path}`").collect()[0]
    assert (figures["numFiles"], figures["properties"]) == (
        2,
        {"delta.isolationLevel": "Serializable"},
    )
    assert table.where(F.col("position") < 0).count() == 0
    log = Path(path, "_delta_log", f"{0:020}.json").read_text()
    added = [json.loads(line)["add"] for line in log.splitlines() if '"add"' in line]
    stats = [json.loads(each["stats"]) for each in added]
    assert sum(each["numRecords"] for each in stats) == N
    # Least and greatest values let no reader skip a file of rows in random order.
    assert not [each for each in stats if each.get("minValues") or each.get("nullCount")]

    frame = people(N).assign(position=range(N, 2 * N), name=[f"new-{i}" for i in range(N)])
    write_people(tmp_path, frame)
    source["release"] |= {"mode": "append", "acknowledge_returning": True}
    with monkeypatch.context() as patch:
        patch.setattr(publish.Target, "_order", None)
        assert shell.release(source).code == 0
    files = files_of(spark, path)
    assert sorted(len(rows) > N / 4 for rows in files) == [True] * 4
    assert all(classes(rows).min() >= K for rows in files)

    write_people(tmp_path, people(N).assign(position=range(N), wage=lambda f: f["wage"] + range(N)))
    source["release"] |= {"mode": "overwrite", "acknowledge_overwrite": True, "order": "table"}
    del audits[:]
    assert shell.release(source).code == 0
    assert audits == [False]
    assert multiset(spark.read.format("delta").load(path)) == released
    source["release"]["order"] = "file"
    with monkeypatch.context() as patch:
        patch.setattr(publish.Target, "_order", None)
        assert shell.release(source).code == 0
    assert multiset(spark.read.format("delta").load(path)) == released
    assert len(files_of(spark, path)) == 2
    assert left(tmp_path / "out") == {"table", "table.private"}


def test_classes_that_files_cut_are_not_published(
    shell: Shell, tmp_path: Path, source: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Classes that hold in the table, but not in each file."""

    def cut(frame: DataFrame, n_files: int) -> DataFrame:
        return frame.repartition(n_files, F.col("c4"))

    monkeypatch.setattr(staging, "order_in_files", cut)
    said = shell.release(source)
    assert said.code == 3
    assert "each file: k_anonymity k=3: " in said.error
    assert not Path(source["release"]["path"]).exists()


def changed(config: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """A config with sections that are added to, and other fields replaced; None removes one."""
    merged = dict(config)
    for key, value in changes.items():
        merged[key] = {**config.get(key, {}), **value} if isinstance(value, dict) else value
    return {key: value for key, value in merged.items() if value is not None}


def test_files_that_can_not_be_the_release(
    shell: Shell, spark: SparkSession, source: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where files would have few blocks, all rows are dealt anew, and so they are wherever
    `may_deal` says no: `tests/unit/test_staging.py`."""
    changes = {"release": {"rows_per_file": 1000}, "partition": {"max_rows": 1000}}
    config = changed(source, changes)
    orders = Counter[str]()
    whole = publish.order_in_table

    def note(frame: DataFrame, n_files: int) -> DataFrame:
        orders["table"] += 1
        return whole(frame, n_files)

    monkeypatch.setattr(publish, "order_in_table", note)
    assert shell.release(config).code == 0
    assert orders == {"table": 1}
    rows = pd.concat(files_of(spark, config["release"]["path"]))
    assert {*rows.columns} <= {"wage", "city", "illness", "position"}


def test_files_with_private_columns(
    shell: Shell,
    spark: SparkSession,
    source: dict[str, Any],
    audits: list[bool],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where tasks tell more than the release, each file is written again without that: with the
    same rows in the same order, and so with whole classes. `tests/unit/test_staging.py` has what
    tasks tell."""
    staged: list[pd.DataFrame] = []
    write = publish.write_files

    def note(spark: SparkSession, root: str, frame: DataFrame, *how: Any) -> data_files.DataFiles:
        staged.extend(pq.read_table(name.removeprefix("file://")).to_pandas() for name in files)
        return write(spark, root, frame, *how)

    written = staging.write_files

    def note_files(*given: Any) -> data_files.DataFiles:
        made = written(*given)
        files.extend(f"{made.transaction.root}/{path}" for path in made.paths)
        return made

    files: list[str] = []
    monkeypatch.setattr(staging, "write_files", note_files)
    monkeypatch.setattr(publish, "write_files", note)
    monkeypatch.setattr(publish.Target, "_order", None)  # it would deal the rows anew
    changes = {
        "privacy": {"suppress": "costliest", "suppression_limit": 0.01},
        "partition": {"steps": [{"type": "controller", "column": "city"}]},
    }
    assert shell.release(changed(source, changes)).code == 0
    assert audits == [True]
    released = files_of(spark, source["release"]["path"])
    assert [{*rows.columns} for rows in released] == [{"wage", "city", "illness", "position"}] * 2
    assert all(classes(rows).min() >= K for rows in released)
    before = {tuple(rows["c4"]) for rows in staged}
    assert len(before) == 2
    for rows in released:
        assert any(_is_part(tuple(rows["position"]), each) for each in before)


def _is_part(some: tuple[int, ...], of: tuple[int, ...]) -> bool:
    """Whether `of` has these in this order."""
    rest = iter(of)
    return all(each in rest for each in some)


def test_a_session_that_names_columns_otherwise(
    shell: Shell, spark: SparkSession, source: dict[str, Any]
) -> None:
    """Delta's defaults change the names inside new files: an older table does not take them."""
    assert shell.release(source).code == 0
    path = source["release"]["path"]
    released = multiset(spark.read.format("delta").load(path))
    source["release"] |= {"mode": "overwrite", "acknowledge_overwrite": True}
    key = "spark.databricks.delta.properties.defaults.columnMapping.mode"
    spark.conf.set(key, "name")
    try:
        assert shell.release(source).code == 0
    finally:
        spark.conf.unset(key)
    assert multiset(spark.read.format("delta").load(path)) == released

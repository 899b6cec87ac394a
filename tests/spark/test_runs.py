"""What runs leave for those who answer for them: the table of runs, named jobs, events."""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as T

import anonlib
from anonlib.errors import InfeasibleError, StorageError
from anonlib.run.result import ReleaseResult
from anonlib.run.run_table import RUN_COLUMNS, list_past_runs
from anonlib.spark.private_table import PrivateTable
from tests.spark.support import (
    MARKER,
    ROOT,
    Shell,
    holding,
    settings,
    write_config,
    write_people,
)

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("noted")]

WORDS = {"approver": "data office", "purpose": "a study", "recipients": ["university"]}


@dataclass(frozen=True)
class Released:
    """One release of `people` by run r1, and the jobs that Spark ran for it."""

    folder: Path
    config: dict[str, Any]
    result: ReleaseResult
    groups: list[str | None]

    @property
    def runs(self) -> str:
        return str(self.folder / "out" / "table.private" / "runs")


@pytest.fixture(scope="module")
def released(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Released:
    folder = tmp_path_factory.mktemp("runs")
    write_people(folder)
    config = settings(
        folder,
        release={"run_id": "r1"},
        evaluate={"measures": ["marginals", "reidentification"]},
        accountability=WORDS,
        events=f"{folder}/events/",
    )
    spark.sparkContext.setJobGroup("mine", "my own jobs")
    before = set(jobs(spark))
    result = anonlib.release(anonlib.parse(config))
    groups = [group for id, group in jobs(spark).items() if id not in before]
    mine = spark.sparkContext.getLocalProperty("spark.jobGroup.id")
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
    assert mine == "mine"
    return Released(folder, config, result, groups)


def jobs(spark: SparkSession) -> dict[int, str | None]:
    """The group of every job that Spark still knows."""
    jvm: Any = spark._jsparkSession
    found = jvm.sparkContext().statusStore().jobsList(None)
    known = [found.apply(i) for i in range(found.size())]
    groups = {job.jobId(): job.jobGroup() for job in known}
    return {id: group.get() if group.isDefined() else None for id, group in groups.items()}


def test_every_job_has_a_name(released: Released) -> None:
    assert released.groups
    assert {str(group).split()[:2] == ["anonlib", "r1"] for group in released.groups} == {True}
    stages = {str(group).removeprefix("anonlib r1 ") for group in released.groups}
    assert {"scan", "anonymize", "audit", "measure marginals", "publish"} <= stages


def test_the_row_of_a_release(released: Released) -> None:
    (row,) = list_past_runs(released.runs)
    assert [*row] == RUN_COLUMNS.names
    assert (row["run_id"], row["verb"], row["outcome"]) == ("r1", "release", "published")
    assert (row["target"], row["version"]) == (str(released.folder / "out" / "table"), 0)
    assert (row["source_format"], row["source_version"]) == ("parquet", None)
    assert row["source"] == str(released.folder / "people.parquet")
    assert (row["rows_in"], row["rows_out"], row["rows_suppressed"]) == (60, 60, 0)
    assert {name: row[name] for name in WORDS} == WORDS
    assert [verdict["holds"] for verdict in row["verdicts"]] == [True, True]
    assert (row["k"], row["exit_code"], row["error"]) == (3, 0, None)
    record = json.loads(Path(row["record"]).read_text("utf-8"))
    assert row["config_sha256"] == record["config_sha256"]
    assert Path(row["report"]).exists()
    now = datetime.now(UTC)
    begun, ended = (datetime.fromisoformat(row[name]) for name in ("begun", "ended"))
    assert begun < ended <= now
    assert (now - begun).total_seconds() < 3600  # UTC, wherever the driver is
    assert holding(MARKER, Path(released.runs)) == []


def test_figures_name_their_run(released: Released, spark: SparkSession) -> None:
    table = spark.read.format("delta").load(f"{released.folder}/out/table.private/metrics")
    found = table.select("run_id", "target", "version", "config_sha256").distinct().collect()
    (row,) = list_past_runs(released.runs)
    wanted = [row[name] for name in ("run_id", "target", "version", "config_sha256")]
    assert [list(row) for row in found] == [wanted]


def test_the_dashboard_of_the_docs(released: Released, spark: SparkSession) -> None:
    text = " ".join((ROOT / "docs/operations/running.md").read_text("utf-8").split())
    (query,) = re.findall("``(SELECT .*?)``", text)
    place = f"{released.folder}/out/table.private/metrics"
    found = spark.sql(query.replace("out/adult.private/metrics", place)).collect()
    assert released.result.evaluation is not None
    (risk,) = (f for _, f in released.result.evaluation.figures() if f.name == "marketer")
    target = str(released.folder / "out" / "table")
    assert [(row.target, row.value) for row in found] == [(target, risk.value)]


def test_events(released: Released) -> None:
    text = (released.folder / "events" / "r1.jsonl").read_text("utf-8")
    events = [json.loads(line) for line in text.splitlines()]
    ended = [e["job"]["name"].rpartition(".")[2] for e in events if e["eventType"] == "COMPLETE"]
    assert ended[:3] == ["start", "open", "scan"]
    assert [e["eventType"] for e in events].count("START") == len(ended)
    assert events[-1]["outputs"][0]["outputFacets"]["outputStatistics"]["rowCount"] == 60
    judged = [d for e in events for d in e["inputs"] if "dataQualityAssertions" in str(d)]
    assert len(judged) == 1
    assert MARKER not in text


def test_runs_that_follow(released: Released, shell: Shell, spark: SparkSession) -> None:
    """Done again, refused, infeasible: what is noted, and how it is listed."""
    config = anonlib.parse(released.config)
    assert anonlib.release(config).already_done
    assert len(list_past_runs(released.runs)) == 1
    # The driver died between the commit and the note; a run of another table has the same id.
    spark.sql(f"UPDATE delta.`{released.runs}` SET target = '/other'")
    record = released.folder / "out" / "table.private" / "r1.json"
    record.rename(released.folder / "r1.json")
    done = anonlib.release(config)
    (released.folder / "r1.json").rename(record)
    assert (done.already_done, done.record) == (True, "")
    assert "is not there" in "".join(done.notes)
    row, _ = list_past_runs(released.runs)
    assert (row["run_id"], row["outcome"], row["version"]) == ("r1", "published", 0)
    assert (row["begun"], row["rows_out"]) == (None, None)

    path = write_config(released.folder, released.config)
    elsewhere = str(released.folder / "out" / "other")
    other = ("--set", f"release.path={elsewhere}", "--set", f"accountability.runs={released.runs}")
    assert shell("release", path, "--run-id", "r2").code == 2
    much = ("--set", "privacy.models.0.k=500")
    assert shell("release", path, "--run-id", "r3", *other, *much).code == 2
    found = list_past_runs(released.runs)
    told = [(row["run_id"], row["outcome"], row["error"]) for row in found]
    assert told[:2] == [("r3", "infeasible", "InfeasibleError"), ("r2", "failed", "InputError")]
    assert (found[0]["rows_out"], found[0]["verdicts"]) == (None, [])

    listed = shell("runs", path)
    assert listed.code == 0
    lines = listed.out.splitlines()
    assert max(map(len, lines)) <= 80
    assert all(any(run_id in line for line in lines) for run_id in ("r1", "r2", "r3"))
    targets = [line for line in lines if line.startswith("/")]
    assert targets == [elsewhere, str(released.folder / "out" / "table"), "/other"]
    only = json.loads(shell("runs", released.runs, "--json", "--target", elsewhere).out)
    assert [row["run_id"] for row in only] == ["r3"]
    assert shell("runs", path, "--since", "2999-01-01").out == "no runs\n"
    for place in (str(released.folder), str(released.folder / "nowhere")):
        said = shell("runs", place)
        assert (said.code, "no table of runs is there" in said.error) == (2, True)


def test_the_operators_table_of_runs(released: Released, shell: Shell) -> None:
    """Whatever the config says, runs are noted, and listed, where the operator wants them."""
    place = str(released.folder / "operator")
    path = write_config(released.folder, released.config)
    before = len(list_past_runs(released.runs))
    shell.patch.setenv("ANONLIB_RUNS", place)
    mine = ("--set", f"accountability.runs={released.folder / 'mine'}")
    assert shell("release", path, "--run-id", "r9", *mine).code == 2  # a table is there
    assert [row["run_id"] for row in list_past_runs(place)] == ["r9"]
    assert "r9" in shell("runs", path, *mine).out
    assert not (released.folder / "mine").exists()
    assert len(list_past_runs(released.runs)) == before
    shell.patch.setenv("ANONLIB_RUNS", str(released.folder / "out" / "table" / "runs"))
    said = shell("runs", path)
    assert (said.code, "ANONLIB_RUNS: lies in the release" in said.error) == (2, True)


def test_a_run_that_can_not_be_noted(released: Released, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any) -> None:
        raise StorageError("accountability.runs: no space left on the disk")

    monkeypatch.setattr(PrivateTable, "append", fail)
    config = {**released.config, "privacy": {"models": [{"type": "k_anonymity", "k": 500}]}}
    config["release"] = {"path": str(released.folder / "none")}
    with pytest.raises(InfeasibleError):  # the first error is the one that is told
        anonlib.release(anonlib.parse(config))
    # Of a run that is done, whose note is missing.
    config = {**released.config, "accountability": {"runs": str(released.folder / "elsewhere")}}
    text = "run r1 ended well .* could not be noted in the table of runs: accountability.runs: no s"
    with pytest.raises(StorageError, match=text):
        anonlib.release(anonlib.parse(config))


def test_drivers_append_at_once(spark: SparkSession, tmp_path: Path) -> None:
    """Two that make the table, whose making was stopped before, and more that add to it; a column
    is added later."""
    schema = T.StructType([T.StructField("run_id", T.StringType())])
    table = PrivateTable(spark, str(tmp_path / "runs"), "runs")
    (tmp_path / "runs" / "_delta_log").mkdir(parents=True)
    (tmp_path / "runs" / "_delta_log" / f".{0:020}.json.{uuid4()}.tmp").touch()
    assert table.rows() is None

    def append(i: int) -> None:
        PrivateTable(spark, str(tmp_path / "runs"), "runs").append([(f"r{i}",)], schema)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(append, range(4)))
    wider = T.StructType([*schema, T.StructField("more", T.LongType())])
    table.append([("r4", 1)], wider)
    rows = table.rows()
    assert rows is not None
    assert sorted(map(tuple, rows.collect())) == [
        *((f"r{i}", None) for i in range(4)),
        ("r4", 1),
    ]

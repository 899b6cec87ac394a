"""Runs that end too early, and what the next run makes of what they left; leases and run ids."""

import json
import os
import re
import signal
import socket
import stat
import subprocess
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pyspark.sql import DataFrame, SparkSession

from anonlib import auditing, pipeline
from anonlib.config.reading import parse
from anonlib.errors import BusyError, StorageError
from anonlib.privacy.k_anonymity import KAnonymity
from anonlib.run import publish, steps
from anonlib.run.block_plan import BlockPlan
from anonlib.spark import lease as module
from anonlib.spark.lease import COMMIT_SECONDS, FILES, Lease, lease, work_folder
from anonlib.spark.process import find_birth
from tests.spark.support import (
    Shell,
    Step,
    left,
    multiset,
    process,
    settings,
    write_config,
    write_people,
)

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("usual", "noted")]

OVERWRITE = {"mode": "overwrite", "acknowledge_overwrite": True}


def table(spark: SparkSession, target: str) -> Counter[str]:
    """The rows that a reader sees now."""
    return multiset(spark.read.format("delta").load(target))


def older_table(spark: SparkSession, target: str) -> None:
    spark.sql("select id as old from range(7)").write.format("delta").save(target)


def settled_files(folder: Path) -> dict[str, int]:
    """Every file and when it was written."""
    return {str(p): p.stat().st_mtime_ns for p in folder.rglob("*") if p.is_file()}


# --- killed


@pytest.mark.cluster
@pytest.mark.parametrize(
    ("moment", "seen"),
    [("anonymize started", "_table.anonlib/staging"), ("publish started", "table")],
    ids=["while staging", "while publishing"],
)
def test_kill(shell: Shell, spark: SparkSession, tmp_path: Path, moment: str, seen: str) -> None:
    """SIGKILL of the driver and its JVM, as soon as there is a file of rows: no reader sees a
    table, and the next run succeeds. `tests/faults` kills at random moments."""
    write_people(tmp_path)
    config = settings(tmp_path)
    out, target = tmp_path / "out", config["release"]["path"]
    step = Step(["release", write_config(tmp_path, config)], moment, signal.SIGKILL)
    step.seen = [str(out / seen), "*.parquet"]
    codes, printed, said = process(tmp_path / "process", [step])
    assert codes == []
    assert (printed, f"{moment.split()[0]}: started" in said) == ("", True)
    commits = Path(target, "_delta_log").glob("*.json")
    assert list(commits) == []
    # What is left is its owner's only, and says whose it was.
    work = out / "_table.anonlib"
    assert stat.S_IMODE(work.stat().st_mode) == 0o700
    assert (work / "lease-1.json").is_file()
    assert (work / "staging").exists()

    assert shell.release(config).code == 0
    assert left(out) == {"table", "table.private"}
    assert sum(table(spark, target).values()) == 60
    assert pipeline.audit_delta(target, parse(config)).passed


@pytest.mark.cluster
def test_kill_after_the_commit(shell: Shell, spark: SparkSession, tmp_path: Path) -> None:
    """Nothing is written yet but the commit. The run is done, of a new table and of an appended
    one; the next says so, and everything is as if it had not been killed."""
    write_people(tmp_path)
    out = tmp_path / "out"
    target = out / "table"
    for version, run_id in enumerate(("monday", "tuesday")):
        mode = {"mode": "append", "acknowledge_returning": True} if version else {}
        config = settings(tmp_path, release={"run_id": run_id, **mode})
        step = Step(["release", write_config(tmp_path, config)], "publish started", signal.SIGKILL)
        step.seen = [str(target), f"{version:020}.json"]
        assert process(tmp_path / f"process-{version}", [step])[0] == []
        assert not (out / "table.private" / f"{run_id}.json").exists()
        said = shell.release(config)
        assert said.code == 0
        assert f"Run {run_id} is done already" in said.out
        assert "is not there" not in said.out
        assert pipeline.audit_delta(str(target), parse(config)).passed
        record = json.loads((out / "table.private" / f"{run_id}.json").read_text())
        assert (record["outcome"], record["table_version"]) == ("published", version)
        assert record["n_rows_out"] == 60
        assert (out / "table.private" / f"{run_id}.html").exists()
        manifest = json.loads((target / "_anonlib" / "manifest.json").read_text())
        assert (manifest["run_id"], manifest["rows_released"]) == (run_id, 60 * (version + 1))
    assert left(out) == {"table", "table.private"}
    noted = spark.read.format("delta").load(str(out / "table.private" / "runs"))
    rows = [(row.run_id, row.outcome, row.version) for row in noted.orderBy("ended").collect()]
    assert rows == [("monday", "published", 0), ("tuesday", "published", 1)]


# --- leases


@pytest.fixture
def storage(spark: SparkSession, tmp_path: Path) -> Any:
    from anonlib.spark.storage import Storage

    return Storage(spark, str(tmp_path / "table"))


def leave_behind(storage: Any, holder: dict[str, Any]) -> Path:
    """The folder of a run that had the lease."""
    work = Path(storage.local_path(work_folder(storage.root)))
    (work / "staging").mkdir(parents=True)
    (work / "staging" / "rows.parquet").write_text("rows")
    (work / "lease-1.json").write_text(json.dumps(holder))
    return work


def own_lease(storage: Any) -> dict[str, Any]:
    """What the lease of another living process of this host says."""
    held, pid = Lease(storage, work_folder(storage.root), "other"), os.getppid()
    return {**json.loads(held._text()), "pid": pid, "born": find_birth(pid)}


def dead_pid() -> int:
    child = subprocess.Popen(["true"])
    child.wait()
    return child.pid


@pytest.mark.parametrize(
    ("change", "alive"),
    [
        (dict, True),
        (lambda: {"pid": dead_pid()}, False),
        # On a disk what it did is done.
        (lambda: {"pid": dead_pid(), "committing": True, "publishing": True}, False),
        # This very process, which has no such lease: it could not be given back.
        (lambda: {"pid": os.getpid(), "born": find_birth(os.getpid())}, False),
        # Alive, but not as old as it should be. (Our parent may be process 1, too.)
        (lambda: {"pid": 1, "born": find_birth(os.getpid())}, False),
        # Rebooted, or another machine of the same name; another container with its host's name.
        *[
            (
                lambda key=key, ago=ago: {"pid": 1, key: "other", "beat": time.time() - ago},
                ago < 120,
            )
            for key in ("boot", "namespace")
            for ago in (60, 600)
        ],
        (lambda: {"host": "elsewhere", "beat": time.time() - 60}, True),
        (lambda: {"host": "elsewhere", "beat": time.time() - 600}, False),
        (lambda: {"host": "elsewhere", "beat": time.time() - 600, "committing": True}, True),
        (lambda: {"host": "elsewhere", "beat": time.time() - 4000, "committing": True}, False),
        (lambda: {"host": "elsewhere", "beat": "soon"}, False),
        # Its clock, or ours, was set: what does not beat is dead.
        (lambda: {"host": "elsewhere", "beat": time.time() + 7200}, False),
        # Rebooted amid a commit; a clock that was set back.
        (lambda: {"boot": "other", "beat": time.time() - 600, "committing": True}, False),
        (lambda: {"pid": dead_pid(), "beat": time.time() + 7200}, False),
        (lambda: {"free": True}, False),
    ],
)
def test_lease_of_another(
    spark: SparkSession, storage: Any, monkeypatch: pytest.MonkeyPatch, change: Any, alive: bool
) -> None:
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.01)
    holder = {**own_lease(storage), **change()}
    work = leave_behind(storage, holder)
    if alive:
        with pytest.raises(BusyError, match="another run \\(other, on "), _lease(spark, storage):
            pass
        assert json.loads((work / "lease-1.json").read_text()) == holder
        assert (work / "staging" / "rows.parquet").exists()
    else:
        with _lease(spark, storage) as held:
            assert not (work / "staging").exists()
            assert held.still_held()
            with pytest.raises(BusyError), _lease(spark, storage):
                pass
            assert held.still_held()
        assert not work.exists()


def _lease(spark: SparkSession, storage: Any) -> Any:
    return lease(spark, storage.root, "mine")


@pytest.mark.parametrize(
    ("ahead", "minutes"), [(86_400, COMMIT_SECONDS // 60 + 1440), (-60, COMMIT_SECONDS // 60 - 1)]
)
def test_a_dead_host_amid_a_commit(
    spark: SparkSession, storage: Any, ahead: float, minutes: float
) -> None:
    """Its clock may be a day ahead: the error says how long it holds the target, and the way out,
    which is one."""
    holder = {**own_lease(storage), "host": "elsewhere", "committing": True}
    work = leave_behind(storage, {**holder, "beat": time.time() + ahead})
    with pytest.raises(BusyError) as error, _lease(spark, storage):
        pass
    found = re.search(r"in (\d+) minutes; .* remove (\S+)$", str(error.value))
    assert found is not None, error.value
    assert abs(int(found[1]) - minutes) <= 1
    assert Path(storage.local_path(found[2])) == work / "lease-1.json"
    (work / "lease-1.json").unlink()
    with _lease(spark, storage):
        assert not (work / "staging").exists()


def test_half_written_lease(spark: SparkSession, storage: Any) -> None:
    work = leave_behind(storage, {})
    (work / "lease-1.json").write_text('{"run_id": "o')
    with _lease(spark, storage):
        assert not (work / "staging").exists()
    assert not work.exists()


def test_lease_that_is_read_amid_a_beat(
    spark: SparkSession, storage: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on stores that show what is half written: it is read again, and nobody takes it."""
    work = leave_behind(storage, own_lease(storage))
    read, torn = type(storage).read, []

    def half(self: Any, path: str) -> str:
        if not torn:
            torn.append(path)
            return ""
        return str(read(self, path))

    monkeypatch.setattr(type(storage), "read", half)
    with pytest.raises(BusyError, match="another run \\(other, on "), _lease(spark, storage):
        pass
    assert torn
    assert [p.name for p in work.glob("lease-*.json")] == ["lease-1.json"]
    assert (work / "staging" / "rows.parquet").exists()


def test_table_that_was_never_born(spark: SparkSession, storage: Any) -> None:
    """Of a first publication that was killed, the listed files go; whatever else is there stays."""
    target = Path(storage.local_path(storage.root))
    listed = ["part-0.parquet", "illness=a/part-1.parquet", "illness=b/part-2.parquet", "gone"]
    others = [{"notes.txt"}, {"illness=a/part-9.parquet"}, {"_delta_log/mine"}, set[str]()]
    for foreign in others:
        for name in [*listed[:3], *foreign, f"_delta_log/.{0:020}.json.{uuid4()}.tmp"]:
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            (target / name).write_text("rows")
        work = leave_behind(storage, {**own_lease(storage), "pid": dead_pid()})
        (work / FILES).write_text(json.dumps({"run_id": "dead", "files": listed}))
        with _lease(spark, storage):
            found = {str(p.relative_to(target)) for p in target.rglob("*") if p.is_file()}
            assert found == foreign
            assert target.exists() == bool(foreign)
        for name in foreign:
            (target / name).unlink()


def test_table_that_was_born(spark: SparkSession, storage: Any) -> None:
    """The commit has arrived: its files stay."""
    target = Path(storage.local_path(storage.root))
    (target / "_delta_log").mkdir(parents=True)
    (target / "_delta_log" / f"{0:020}.json").write_text("{}")
    (target / "part-0.parquet").write_text("rows")
    work = leave_behind(storage, {**own_lease(storage), "pid": dead_pid()})
    (work / FILES).write_text(json.dumps({"run_id": "dead", "files": ["part-0.parquet"]}))
    with lease(spark, storage.root, "mine", lambda: frozenset({"dead"})):
        assert (target / "part-0.parquet").exists()


@pytest.mark.cluster
def test_files_of_others_in_a_target_that_was_begun(
    shell: Shell, spark: SparkSession, tmp_path: Path
) -> None:
    """A run is killed while it publishes; then somebody puts a file there: it is not ours."""
    write_people(tmp_path)
    config = settings(tmp_path)
    target = tmp_path / "out" / "table"
    step = Step(["release", write_config(tmp_path, config)], "publish started", signal.SIGKILL)
    step.seen = [str(target), "*.parquet"]
    assert process(tmp_path / "process", [step])[0] == []
    (target / "thesis.parquet").write_text("years of work")
    said = shell.release(config)
    assert said.code == 2
    assert "holds other files; choose another path" in said.error
    assert [path.name for path in target.rglob("*")] == ["thesis.parquet"]
    (target / "thesis.parquet").unlink()
    assert shell.release(config).code == 0


def test_busy_target(shell: Shell, spark: SparkSession, tmp_path: Path) -> None:
    write_people(tmp_path)
    config = settings(tmp_path)
    with lease(spark, config["release"]["path"], "other"):
        said = shell.release(config)
    assert said.code == 1
    place = f"on {socket.gethostname()}, process {os.getpid()}"
    assert said.error.startswith(f"error: another run (other, {place}) is writing this target")
    assert left(tmp_path / "out") <= {"table.private"}


# --- the target changes


def overtaken_before_commit(spark: SparkSession, target: str, patch: pytest.MonkeyPatch) -> None:
    """Somebody commits between the last look at the rows and the commit."""
    counted = publish.digest

    def digest(frame: DataFrame) -> Any:
        found = counted(frame)
        spark.sql("select 9L as old").write.format("delta").mode("append").save(target)
        return found

    patch.setattr(publish, "digest", digest)


@pytest.mark.parametrize("when", ["audit, new", "audit", "commit"])
def test_target_changes_meanwhile(
    shell: Shell, spark: SparkSession, tmp_path: Path, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_people(tmp_path)
    config = settings(tmp_path, release=OVERWRITE)
    target = config["release"]["path"]
    if when != "audit, new":
        older_table(spark, target)
    hooks = {}
    if when == "commit":
        overtaken_before_commit(spark, target, monkeypatch)
    else:
        append = spark.sql("select 9L as old").write.format("delta").mode("append").save
        hooks["audit started"] = lambda: append(target)
    said = shell.release(config, hooks=hooks)
    assert said.code == 1
    assert "changed" in said.error
    assert len(said.error.splitlines()) == 1
    assert table(spark, target) == Counter({"9": 1} if when == "audit, new" else [*"01234569"])
    assert left(tmp_path / "out") == {"table", "table.private"}
    referenced = {Path(f).name for f in spark.read.format("delta").load(target).inputFiles()}
    assert {path.name for path in Path(target).glob("*.parquet")} == referenced


# --- the audit fails


def test_failed_audit(
    shell: Shell, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_people(tmp_path)
    config = settings(tmp_path, release=OVERWRITE)
    older_table(spark, config["release"]["path"])
    before = settled_files(Path(config["release"]["path"]))
    audit = auditing.audit_parts

    def stricter(frame: DataFrame, spec: Any, *more: Any) -> Any:
        return audit(frame, replace(spec, models=(KAnonymity(k=59),)), *more)

    with monkeypatch.context() as patch:
        patch.setattr(auditing, "audit_parts", stricter)
        said = shell.release(config)
    assert said.code == 3
    assert said.error.startswith("error: the audit failed, nothing was released: k_anonymity k=59")
    assert len(said.error.splitlines()) == 1
    assert settled_files(Path(config["release"]["path"])) == before
    assert left(tmp_path / "out") == {"table", "table.private"}
    # Rows that are lost or come twice on the way are noticed.
    whole = BlockPlan.stage

    def twice(*args: Any, **more: Any) -> DataFrame:
        frame = whole(*args, **more)
        return frame.union(frame.limit(1))

    monkeypatch.setattr(BlockPlan, "stage", twice)
    said = shell.release(config)
    assert said.code == 3
    assert "rows don't add up, nothing was published: 60 scanned" in said.error
    assert settled_files(Path(config["release"]["path"])) == before


# --- run ids


def test_run_id_is_done_once(shell: Shell, tmp_path: Path) -> None:
    write_people(tmp_path)
    config = settings(tmp_path)
    assert shell.release(config, "--run-id", "monday").code == 0
    done = settled_files(tmp_path / "out")
    again = shell.release(config, "--run-id", "monday")
    assert again.code == 0
    assert "Run monday is done already" in again.out
    assert "table.private/monday.html (private)" in again.out
    assert settled_files(tmp_path / "out") == done
    # Killed between the commit and the manifest, with staging still there.
    manifest = tmp_path / "out" / "table" / "_anonlib" / "manifest.json"
    text = manifest.read_bytes()
    manifest.unlink()
    staging = tmp_path / "out" / "_table.anonlib" / "staging"
    staging.mkdir(parents=True)
    assert shell.release(config, "--run-id", "monday").code == 0
    assert manifest.read_bytes() == text
    assert settled_files(tmp_path / "out").keys() == done.keys()
    assert left(tmp_path / "out") == {"table", "table.private"}
    # Killed between the commit and the record.
    (tmp_path / "out" / "table.private" / "monday.json").unlink()
    lost = shell.release(config, "--run-id", "monday")
    assert "monday.json is not there: the run was stopped after its commit" in lost.out
    assert "(private)" not in lost.out
    assert shell.release(config, "--run-id", "tuesday").code == 2


@pytest.mark.parametrize("what", ["write_manifest", "keep"])
def test_what_fails_after_the_commit(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """A disk that is full then: the error says that the release is published, and how to end it."""
    write_people(tmp_path)
    config = settings(tmp_path)

    def fail(*args: Any) -> None:
        raise StorageError("path p: no space left on the disk")

    with monkeypatch.context() as patch:
        patch.setattr(steps, what, fail)
        said = shell.release(config, "--run-id", "monday")
    assert said.code == 1
    assert said.error.startswith("error: path p: no space left on the disk. The release is publ")
    assert "(version 0 of " in said.error
    assert "Release again with `--run-id monday`" in said.error
    assert shell.release(config, "--run-id", "monday").code == 0
    out = tmp_path / "out"
    assert json.loads((out / "table.private" / "monday.json").read_text())["n_rows_out"] == 60
    assert (out / "table" / "_anonlib" / "manifest.json").is_file()
    assert left(out) == {"table", "table.private"}

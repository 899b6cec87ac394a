"""Releases on a real standalone cluster, submitted from the packed environment, and what happens
to it: each ends in the right table, or with the target as it was."""

import json
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyspark.sql import SparkSession

from anonlib import pipeline
from anonlib.config.reading import parse
from anonlib.spark.jars import POSTGRESQL
from tests.cluster.standalone import KEY, Cluster, Packed, Submitted, submit, wait_for
from tests.postgres import server
from tests.spark.support import (
    MARKER,
    left,
    multiset,
    people,
    settings,
    write_config,
    write_people,
)
from tests.support import small_disk

# The first waits for a release by one process, and one by the cluster.
pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.timeout(1200)]

N_ROWS = 3000
#: Four tasks of a few blocks each. Pseudonyms are the same in all runs: so are id and key.
CHANGES: dict[str, Any] = {
    "attributes": {"name": {"role": "identifier", "pseudonym": True}},
    "pseudonyms": {"key_env": "PSEUDONYM_KEY"},
    "release": {"run_id": "monday", "order": "table"},
    "partition": {"steps": [{"type": "kmeans"}], "max_rows": 100},
    "kernel": {"type": "troubled"},
    "spark": {"partitions": 4},
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A master and one steady worker, on node 1; tests add those that they hurt."""
    started = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        started.start()
        started.worker(1)
        yield started
    finally:
        started.stop()


@pytest.fixture(autouse=True)
def no_driver_stays(cluster: Cluster) -> Iterator[None]:
    """A test that failed leaves no driver that the next one would wait for."""
    yield
    cluster.kill_drivers()


@pytest.fixture
def second(cluster: Cluster) -> Iterator[subprocess.Popen[bytes]]:
    """A worker on node 2."""
    worker = cluster.worker(2)
    yield worker
    if worker.poll() is None:
        cluster.stop_worker(worker)


def release(
    cluster: Cluster,
    made: Packed,
    folder: Path,
    trouble: str = "",
    *,
    name: str = "run",
    archives: bool = False,
    **conf: str,
) -> Submitted:
    """Submits a release to `folder`/out/table, with trouble on its executors."""
    write_people(folder, people(N_ROWS))
    config = write_config(folder, settings(folder, **CHANGES))
    (folder / "trouble").mkdir(exist_ok=True)
    if trouble:
        conf |= {
            "spark.executorEnv.TROUBLE": trouble,
            "spark.executorEnv.TROUBLE_DIR": str(folder / "trouble"),
        }
    wait_for("the end of the run before", cluster.idle)
    return submit(cluster, made, folder / name, "release", config, archives=archives, **conf)


def note(folder: Path, name: str) -> str:
    """What the kernel wrote about its trouble, once it has."""
    place = folder / "trouble" / name
    wait_for(f"trouble: {name}", place.exists)
    return place.read_text()


def require_silence(cluster: Cluster, said: str) -> None:
    """Neither driver nor cluster tells of raw values or the key; waits for the end of the run."""
    wait_for("the end of the run", cluster.idle)
    logs = cluster.logs()
    assert any("INFO" in text and name.endswith("stderr") for name, text in logs.items())
    logs["driver"] = said
    assert [name for name, text in logs.items() if MARKER in text or KEY in text] == []


@pytest.fixture(scope="module")
def undisturbed(
    cluster: Cluster, made: Packed, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Counter[str]:
    """The rows of a run in peace, whose executors unpack the environment; the audit is by the zip
    of anonlib and the jars of the class path."""
    folder = tmp_path_factory.mktemp("undisturbed")
    worker = cluster.worker(2)
    try:
        code, said = release(cluster, made, folder, archives=True).ends()
        assert code == 0, said
        require_silence(cluster, said)
        table, config = str(folder / "out" / "table"), str(folder / "config.yaml")
        audited = [table, "--conf", config, "--quiet"]
        audit = submit(cluster, made, folder / "audit", "audit", *audited, zipped=True).ends()
        assert audit[0] == 0, audit[1]
        require_silence(cluster, audit[1])
    finally:
        cluster.stop_worker(worker)
    return rows_of(spark, table)


def rows_of(spark: SparkSession, table: str) -> Counter[str]:
    """A table's rows without their pseudonyms, which differ between targets."""
    frame = spark.read.format("delta").load(table)
    assert frame.select("name").distinct().count() == N_ROWS
    return multiset(frame.drop("name"))


@pytest.fixture
def right(cluster: Cluster, undisturbed: Counter[str], spark: SparkSession, tmp_path: Path) -> Any:
    """Checks what a run left: the table of an undisturbed run, audited, and nothing else."""

    def check(done: Submitted) -> None:
        code, said = done.ends()
        assert code == 0, said
        require_silence(cluster, said)
        plain = yaml.safe_load((tmp_path / "config.yaml").read_text())
        plain["kernel"] = {"type": "mdav"}  # this process does not know the other
        table = str(tmp_path / "out" / "table")
        assert pipeline.audit_delta(table, parse(plain)).passed
        rows = rows_of(spark, table)
        # Not compared as a whole: to show how hundreds of rows differ takes minutes.
        assert not (rows - undisturbed) + (undisturbed - rows)
        assert left(tmp_path / "out") == {"table", "table.private"}

    return check


def test_package(made: Packed) -> None:
    """Everything is there, described, with the right checksum; the bill has packages and jars."""
    done = subprocess.run(
        ["sha256sum", "--check", "--strict", "SHA256SUMS"],
        cwd=made.folder,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    summed = {line[66:] for line in (made.folder / "SHA256SUMS").read_text().splitlines()}
    there = {str(p.relative_to(made.folder)) for p in made.folder.rglob("*") if p.is_file()}
    assert there == summed | {"SHA256SUMS"}
    told = (made.folder / "README.md").read_text()
    assert all(name in told for name in left(made.folder) - {"README.md"})
    bill = json.loads((made.folder / "sbom.cdx.json").read_text())
    names = {part["name"] for part in bill["components"]}
    assert bill["metadata"]["component"]["name"] == "anonlib"
    assert {"numba", "pyarrow", "delta-storage"} <= names
    assert "pyspark" not in names
    of_maven = [c for c in bill["components"] if c.get("purl", "").startswith("pkg:maven/")]
    jars = sorted(f"{jar['name']}-{jar['version']}.jar" for jar in of_maven)
    assert jars == sorted(left(made.folder / "jars"))
    assert POSTGRESQL.name in jars
    verdict = (made.folder / "AUDIT.txt").read_text()
    assert verdict.startswith(("NOT AUDITED: ", "audited: "))


def test_undisturbed(cluster: Cluster, undisturbed: Counter[str]) -> None:
    """Executors keep compiled kernels in folders of their own."""
    assert sum(undisturbed.values()) == N_ROWS
    assert any(cluster.folder.glob("work-*/app-*/*/numba-cache/**/*.nbc"))


@pytest.fixture
def people_url() -> Iterator[str]:
    """A table in PostgreSQL, for `reader`, whose password is the one that drivers have."""
    with server() as database:
        database(
            "CREATE TABLE people AS SELECT 'name-' || i AS name, i % 50 AS wage,"
            " 'city-' || i % 4 AS city, 'illness-' || i % 5 AS illness"
            f" FROM generate_series(1, {N_ROWS}) AS i; CREATE USER reader PASSWORD '{KEY}';"
            " GRANT SELECT ON people TO reader"
        )
        yield database.url


def test_driver_of_a_database_is_in_the_package(
    cluster: Cluster, made: Packed, people_url: str, tmp_path: Path
) -> None:
    """By --jars it is on the class path of driver and executors, and nothing is fetched."""
    options = {"url": people_url, "user": "reader", "dbtable": "people"}
    source = {"format": "jdbc", "options": options, "secrets": {"password": "PSEUDONYM_KEY"}}
    config = write_config(tmp_path, settings(tmp_path, source=source))
    code, said = submit(cluster, made, tmp_path / "run", "check", config).ends()
    assert code == 0, said
    assert f"{N_ROWS:,}" in said
    require_silence(cluster, said)
    assert not (made.environment / "anonlib-jars").exists()


def test_worker_is_killed_and_another_started(
    cluster: Cluster, made: Packed, second: Any, right: Any, tmp_path: Path
) -> None:
    run = release(cluster, made, tmp_path, "wait")
    assert note(tmp_path, "wait-1") != note(tmp_path, "wait-2")  # both are amid their tasks
    cluster.stop_worker(second)
    third = cluster.worker(3)
    try:
        assert note(tmp_path, "wait-3")  # the run has reached it, and all tasks wait still
        (tmp_path / "trouble" / "go").touch()
        right(run)
    finally:
        cluster.stop_worker(third)


def test_task_that_fails_twice(
    cluster: Cluster, made: Packed, second: Any, right: Any, tmp_path: Path
) -> None:
    """It is the third attempt that works, and there are two nodes."""
    right(release(cluster, made, tmp_path, "fail"))
    assert note(tmp_path, "fail")


def test_slow_node(cluster: Cluster, made: Packed, right: Any, tmp_path: Path) -> None:
    """Its tasks are begun again on the other one, and the release does not wait for it."""
    slow = cluster.worker(2, SLOW_NODE="yes")
    speculation = {
        "spark.speculation.minTaskRuntime": "1s",
        "spark.speculation.multiplier": "1.5",
        "spark.speculation.quantile": "0.5",
    }
    try:
        right(release(cluster, made, tmp_path, "slow", **speculation))
        assert note(tmp_path, "slow") == note(tmp_path, "again")
    finally:
        cluster.stop_worker(slow)


def event_log(folder: Path) -> dict[str, str]:
    """Settings that make a run write what it does to one file of `folder`."""
    settings = {"enabled": "true", "dir": folder.as_uri(), "compress": "false"}
    settings["rolling.enabled"] = "false"
    return {f"spark.eventLog.{key}": value for key, value in settings.items()}


def require_excluded(log: Path, node: str) -> None:
    """Tasks failed on the node alone, for want of space; its executor was excluded from the run,
    and the tasks that began later were all elsewhere."""
    (file,) = log.iterdir()
    text = file.read_text()
    assert MARKER not in text
    events = [json.loads(line) for line in text.split("\n") if line]
    of = lambda kind: [e for e in events if e["Event"].rpartition(".")[2] == f"SparkListener{kind}"]
    failed = [e for e in of("TaskEnd") if e["Task End Reason"]["Reason"] == "ExceptionFailure"]
    assert {e["Task Info"]["Host"] for e in failed} == {node}
    why = [e["Task End Reason"]["Full Stack Trace"] for e in failed]
    assert all("No space left on device" in text for text in why)
    nodes = {e["Executor ID"]: e["Executor Info"]["Host"] for e in of("ExecutorAdded")}
    (excluded,) = of("ExecutorExcluded")
    assert nodes[excluded["executorId"]] == node
    began = [e["Task Info"] for e in of("TaskStart")]
    later = {task["Host"] for task in began if task["Launch Time"] > excluded["time"]}
    assert later == {*nodes.values()} - {node}


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", 24) as place:
        yield place


def test_full_disk(
    cluster: Cluster, made: Packed, right: Any, full_disk: Path, tmp_path: Path
) -> None:
    """A node whose disk is full fails its tasks for that, and gets no more of them."""
    full = cluster.worker(2, SPARK_LOCAL_DIRS=str(full_disk), SMALL_DISK=str(full_disk))
    log = tmp_path / "events"
    log.mkdir()
    try:
        right(release(cluster, made, tmp_path, "fill", **event_log(log)))
        assert note(tmp_path, "fill") == "full"
    finally:
        cluster.stop_worker(full)
    require_excluded(log, "127.0.0.2")

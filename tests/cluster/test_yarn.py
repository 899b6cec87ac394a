"""A release on YARN, from HDFS and to it: as conf/spark/yarn.conf says, by a driver on the cluster
and by one outside of it."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import anonlib
from anonlib import pipeline
from anonlib.config.reading import parse
from anonlib.errors import ConfigError
from tests.cluster.hadoop import Hadoop, submit
from tests.cluster.standalone import Packed, Submitted, wait_for
from tests.spark.support import MARKER, multiset, people, settings, write_config, write_people

# Hadoop, and three drivers one after the other.
pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.timeout(1200)]

N_ROWS = 900


@pytest.fixture(scope="module")
def hadoop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hadoop]:
    started = Hadoop(tmp_path_factory.mktemp("hadoop"))
    try:
        started.start()
        folder = tmp_path_factory.mktemp("people")
        write_people(folder, people(N_ROWS))
        started.put(folder / "people.parquet", "/in/people.parquet")
        yield started
    finally:
        started.stop()


def require_right(hadoop: Hadoop, spark: SparkSession, folder: Path, raw: dict[str, Any]) -> None:
    """Audits the table of a config, and compares it with what this process makes of the same rows.
    No container's log, and no file's name, tells of raw values; what is private is so, and nothing
    is staged any more."""
    config = {**raw, "kernel": {"type": "mdav"}}  # this process does not know the other
    table = hadoop.hdfs + config["release"]["path"]
    assert pipeline.audit_delta(table, parse(config)).passed
    logs = hadoop.logs()
    # A driver and its executor, and their successors.
    assert sum(name.endswith("/stderr") and "INFO" in text for name, text in logs.items()) >= 4
    files = hadoop.files().splitlines()
    logs["files"] = "\n".join(files)
    assert [name for name, text in logs.items() if MARKER in text] == []
    private = [line for line in files if line.endswith((".anonlib", ".private"))]
    assert len(private) > 1
    assert all(line.startswith("drwx------") for line in private)
    assert not [line for line in files if "/staging" in line and "/out/" in line]

    write_people(folder, people(N_ROWS))
    config["source"] = {"format": "parquet", "path": str(folder / "people.parquet")}
    config["release"] = {**config["release"], "path": str(folder / "here")}
    assert anonlib.release(parse(config)).outcome == "published"
    found, expected = (
        multiset(spark.read.format("delta").load(path)) for path in (table, str(folder / "here"))
    )
    assert found == expected
    assert sum(found.values()) == N_ROWS


def test_driver_and_executor_are_killed(
    hadoop: Hadoop, made: Packed, spark: SparkSession, tmp_path: Path
) -> None:
    """A driver outside of the cluster dies amid the kernel; the run is repeated by one on the
    cluster, with the environment that is sent along, and there an executor does. The rows are those
    of a run in peace. Paths without a scheme are of the cluster's file system."""
    raw = settings(
        tmp_path,
        source={"format": "parquet", "path": "/in/people.parquet"},
        partition={"steps": [{"type": "kmeans"}], "max_rows": 150},
        kernel={"type": "troubled"},
        spark={"partitions": 4},
        release={"path": "/out/table", "run_id": "monday"},
    )
    written = Path(write_config(tmp_path, raw))

    def run(mode: str) -> tuple[Submitted, int]:
        """A driver, and the process of the executor that hangs."""
        folder = tmp_path / mode
        started = submit(hadoop, made, folder, written, mode=mode, trouble="hang")
        wait_for("trouble", (folder / "trouble" / "hang").exists)
        return started, int((folder / "trouble" / "hang").read_text())

    dead, _ = run("client")
    dead.kill()
    assert not any("/out/table/" in line for line in hadoop.files().splitlines())
    again, executor = run("cluster")
    os.kill(executor, signal.SIGKILL)
    code, said = again.ends()
    assert code == 0, said
    assert MARKER not in said
    require_right(hadoop, spark, tmp_path, raw)
    one_place_by_two_names(hadoop, raw)


def one_place_by_two_names(hadoop: Hadoop, raw: dict[str, Any]) -> None:
    """Only the store knows that the release would lie in its source, and its record in it."""
    other = hadoop.hdfs.replace("127.0.0.1", "localhost")
    assert other != hadoop.hdfs
    source = {"format": "parquet", "path": f"{hadoop.hdfs}/in/people.parquet"}
    for release in (
        {"path": f"{other}/in/people.parquet/out"},
        {"path": f"{other}/out/new", "record": f"{hadoop.hdfs}/out/new/record"},
    ):
        found = parse({**raw, "kernel": {"type": "mdav"}, "source": source, "release": release})
        with pytest.raises(ConfigError, match=r"the source is in it|lies in the release"):
            anonlib.release(found)

"""Two runs for one target at the same time: one wins, the other is told, the table is whole."""

import json
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.support import (
    TIMEOUT,
    Shell,
    Step,
    left,
    process,
    settings,
    write_config,
    write_people,
)

pytestmark = [pytest.mark.spark, pytest.mark.cluster]


def stopped_holder(lease: Path) -> int:
    """Waits until the process that holds the lease is stopped; its id."""
    until = time.monotonic() + TIMEOUT
    while time.monotonic() < until:
        if lease.is_file() and (text := lease.read_text()):
            pid = int(json.loads(text)["pid"])
            if "State:\tT" in Path(f"/proc/{pid}/status").read_text():
                return pid
        time.sleep(0.1)
    raise TimeoutError("the first run did not get to its lease")


def test_two_processes(shell: Shell, spark: SparkSession, tmp_path: Path) -> None:
    """The first is stopped while it holds the lease, so that the second meets it for sure."""
    write_people(tmp_path)
    config = settings(tmp_path)
    out = tmp_path / "out"
    step = Step(["release", write_config(tmp_path, config)], "anonymize started", signal.SIGSTOP)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(process, tmp_path / "process", [step])
        pid = stopped_holder(out / "_table.anonlib" / "lease-1.json")
        try:
            second = shell.release(config)
        finally:
            os.killpg(pid, signal.SIGCONT)
        codes, _, said = first.result()
    assert codes == [0], said
    assert second.code == 1
    assert second.error.startswith("error: another run (")
    assert f"process {pid}) is writing this target; wait for it to end" in second.error
    assert left(out) == {"table", "table.private"}
    assert spark.read.format("delta").load(config["release"]["path"]).count() == 60
    audited = shell("audit", config["release"]["path"], "--conf", str(tmp_path / "config.yaml"))
    assert audited.code == 0, audited.err

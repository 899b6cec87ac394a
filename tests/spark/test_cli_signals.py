"""Ctrl-C in the middle of a release: jobs end, nothing is left behind, the target is as it was."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.spark.support import installed

CONF = Path(__file__).parents[2] / "conf" / "quickstart.yaml"
#: The job that the signal meets would not end by itself.
KERNEL = '''"""A kernel that tells that it has begun, and goes on for longer than any test."""
import os
import time
from pathlib import Path
from typing import ClassVar

from anonlib.kernels import Kernel


class Endless(Kernel):
    type: ClassVar[str] = "endless"
    cost: ClassVar[str] = ""
    reference: ClassVar[str] = ""

    def cells(self, block):
        Path(os.environ["BEGUN"]).touch()
        time.sleep(600)
'''
pytestmark = [pytest.mark.spark, pytest.mark.cluster]


@pytest.mark.parametrize(
    ("number", "whole_group"),
    [
        (signal.SIGINT, True),
        (signal.SIGTERM, False),
        (signal.SIGTERM, True),
        (signal.SIGHUP, True),
    ],
)
def test_release_is_interrupted(
    number: signal.Signals, tmp_path: Path, *, whole_group: bool
) -> None:
    """All processes of the run get the signal where `timeout` and terminals send it, one where
    orchestrators do."""
    overrides = [f"release.path={tmp_path}/out/table", "source.rows=20000", "seed=1"]
    overrides += [f"events={tmp_path}/events.jsonl"]
    overrides += ["kernel.type=endless", f"spark.conf.\"spark.local.dir\"='{tmp_path}/local'"]
    begun = tmp_path / "begun"
    path = [installed(tmp_path / "plugin", "endless", KERNEL), os.environ.get("PYTHONPATH", "")]
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "anonlib", "release", str(CONF), "--log-format", "json"),
            *[part for text in overrides for part in ("--set", text)],
        ],
        env={**os.environ, "BEGUN": str(begun), "PYTHONPATH": os.pathsep.join(filter(None, path))},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while process.poll() is None and not begun.exists():
        time.sleep(0.05)
    os.killpg(process.pid, number) if whole_group else process.send_signal(number)
    out, err = process.communicate(timeout=120)
    lines = err.splitlines()
    assert process.returncode == 1, lines
    told = [json.loads(line) for line in lines]  # nothing but JSON
    assert [line["event"] for line in told][-1] == "error"
    assert told[-1]["text"].startswith("interrupted: ")
    assert out == ""
    files = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert [path for path in files if "runs" not in path.parts] == []
    events = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    assert [event["eventType"] for event in events][-1] == "ABORT"
    rows = [pq.read_table(path).to_pylist() for path in files if path.suffix == ".parquet"]
    assert [row["outcome"] for table in rows for row in table] == ["interrupted"]

"""Ctrl-C in the middle of a release: jobs end, nothing is left behind, the target is as it was."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

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


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_release_is_interrupted(number: signal.Signals, tmp_path: Path) -> None:
    overrides = [f"release.path={tmp_path}/out/table", "source.rows=20000", "seed=1"]
    overrides += ["kernel.type=endless", f"spark.conf.\"spark.local.dir\"='{tmp_path}/local'"]
    begun = tmp_path / "begun"
    path = [installed(tmp_path / "plugin", "endless", KERNEL), os.environ.get("PYTHONPATH", "")]
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "anonlib", "release", str(CONF)),
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
    process.send_signal(number)
    out, err = process.communicate(timeout=120)
    lines = err.splitlines()
    assert process.returncode == 1, lines
    # The tasks that were cancelled may take a while to end; then the run says what it waits for.
    waits = "waiting for the tasks of jobs that were cancelled, at most 10 s"
    told = [line for line in lines if not line.endswith(waits)]
    assert "anonymize: failed after" in told[-2]
    assert lines[-1].startswith("interrupted: ")
    assert out == ""
    files = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert [path for path in files if "runs" not in path.parts] == []
    assert files  # that it was interrupted is noted

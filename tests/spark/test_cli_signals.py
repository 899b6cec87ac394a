"""Ctrl-C in the middle of a release: jobs end, nothing is left behind, the target is as it was."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

CONF = Path(__file__).parents[2] / "conf" / "quickstart.yaml"
pytestmark = [pytest.mark.spark, pytest.mark.cluster]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_release_is_interrupted(number: signal.Signals, tmp_path: Path) -> None:
    overrides = [f"release.path={tmp_path}/out/table", "source.rows=20000", "seed=1"]
    overrides += [f"spark.conf.\"spark.local.dir\"='{tmp_path}/local'"]
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "anonlib", "release", str(CONF)),
            *[part for text in overrides for part in ("--set", text)],
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line)
        if "anonymize: started" in line:
            time.sleep(1.0)
            process.send_signal(number)
    out = process.communicate(timeout=120)[0]
    assert process.returncode == 1, lines
    assert "anonymize: failed after" in lines[-2]
    assert lines[-1].startswith("interrupted: ")
    assert out == ""
    files = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert [path for path in files if "runs" not in path.parts] == []
    assert files  # that it was interrupted is noted

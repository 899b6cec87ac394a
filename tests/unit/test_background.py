"""The tests themselves: they also pass where a shell started them in the background."""

import signal
import subprocess
import sys
from pathlib import Path


def test_signals_that_the_shell_ignored() -> None:
    ignored = f"""
import os, signal, sys
for number in ({signal.SIGINT:d}, {signal.SIGHUP:d}):
    signal.signal(number, signal.SIG_IGN)
test = "tests/unit/test_cli.py::TestSignals::test_work_cleans_up"
os.execv(sys.executable, [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", test])
"""
    done = subprocess.run(
        [sys.executable, "-c", ignored],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "3 passed" in done.stdout, done.stdout

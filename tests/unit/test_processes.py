"""Processes that leases name: who is meant, and whether it still runs."""

import os
from pathlib import Path

import pytest

from anonlib.spark import process as processes
from anonlib.spark.process import find_birth, identify_process, is_running


def test_processes() -> None:
    mine = identify_process()
    assert mine["pid"] == os.getpid()
    assert mine["born"] == find_birth(os.getpid()) != ""
    assert {"host", "boot", "namespace"} < mine.keys()
    assert all(mine.values())
    assert is_running(mine) is True
    for name in ("host", "boot", "namespace"):
        assert is_running({**mine, name: "other"}) is None
    assert is_running({**mine, "born": "other"}) is False
    assert is_running({**mine, "pid": None}) is False


def test_born_is_the_start_of_a_process() -> None:
    """Field 22 of `man proc_pid_stat`, whatever is in the name of the program."""
    fields = Path(f"/proc/{os.getpid()}/stat").read_text().rpartition(")")[2].split()
    assert find_birth(os.getpid()) == fields[22 - 3]
    assert find_birth(2**31 - 1) == ""


@pytest.mark.parametrize(
    ("error", "runs"), [(ProcessLookupError, False), (PermissionError, True), (None, True)]
)
def test_processes_that_cannot_be_signalled(
    monkeypatch: pytest.MonkeyPatch, error: type[Exception] | None, runs: bool
) -> None:
    def kill(pid: int, number: int) -> None:
        assert (pid, number) == (os.getpid(), 0)
        if error:
            raise error

    monkeypatch.setattr(processes.os, "kill", kill)
    assert is_running(identify_process()) is runs

"""Interruptions, as of a notebook, where they would do harm: amid a commit, while a lease is given
back; and files that can't be written to their end."""

import errno
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from anonlib.errors import JVM_LOST, BusyError, PublishedError, StorageError
from anonlib.run.endings import tell_published
from anonlib.spark import lease as leases
from anonlib.spark import tasks
from anonlib.spark.lease import Lease, work_folder
from anonlib.spark.storage import Storage
from anonlib.spark.tasks import run_uninterrupted
from tests.stores import Far


def interrupt() -> None:
    """What Ctrl-C does: it wakes the main thread, which these tests run in."""
    ident = threading.main_thread().ident
    assert ident is not None
    signal.pthread_kill(ident, signal.SIGINT)


@pytest.mark.parametrize("n", [0, 1, 2])
def test_work_is_waited_for(n: int) -> None:
    ended = []

    def work() -> str:
        for _ in range(n):
            time.sleep(0.1)
            interrupt()
        time.sleep(0.3)
        ended.append(True)
        return "done"

    assert threading.current_thread() is threading.main_thread()
    if n:
        with pytest.raises(KeyboardInterrupt):
            run_uninterrupted(work)
    else:
        assert run_uninterrupted(work) == "done"
    assert ended


def test_errors_of_work_are_the_callers() -> None:
    def work() -> None:
        raise StorageError("full")

    with pytest.raises(StorageError, match="full"):
        run_uninterrupted(work)


def test_a_lease_that_was_not_given_back_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its driver goes on, and may release again."""
    monkeypatch.setattr(leases, "BEAT_SECONDS", 0.05)
    store: Any = Far()

    def of(run_id: str) -> Lease:
        return Lease(store, work_folder(store.root), run_id)

    first = of("first")
    first.take()
    store.answer.clear()
    store.asked.clear()
    assert store.asked.wait(20)  # a beat is on its way, and waits for 10 seconds at most

    def interrupt_release() -> None:
        first._stop.wait(10)  # however slow this machine is, the lease is being given back
        time.sleep(0.2)
        interrupt()

    threading.Thread(target=interrupt_release).start()
    with pytest.raises(KeyboardInterrupt):
        first.release()
    assert first._beat.is_alive()  # a second release would wait for it, too
    store.answer.set()
    assert first._ended.wait(10)  # else its beat is a sign of life, and the second one has to wait
    second = of("second")
    second.take()
    assert second.still_held()
    second.release()


def test_nothing_stays_of_a_write_that_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    storage = object.__new__(Storage)  # its local part needs no file system of Hadoop's
    with pytest.raises(StorageError):
        storage._write_local(tmp_path / "record.json", "text", new=False, mode=0o600)
    assert list(tmp_path.iterdir()) == []


class Moment:
    """A wait that is interrupted at one of its own steps, once."""

    def __init__(self, at: str):
        self._at = at

    def _interrupt(self, step: str) -> None:
        if step == self._at:
            self._at = ""
            raise KeyboardInterrupt

    def __enter__(self) -> "Moment":
        self._interrupt("enter")
        return self

    def show(self) -> None:
        self._interrupt("show")

    def __exit__(self, *failure: object) -> None:
        self._interrupt("exit")


@pytest.mark.parametrize("at", ["enter", "show", "exit"])
def test_whenever_it_is_interrupted(monkeypatch: pytest.MonkeyPatch, at: str) -> None:
    """The work has then ended, or it never begins."""
    monkeypatch.setattr(tasks, "Wait", lambda what: Moment(at))
    begun, ended = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        if at == "show":
            signal.pthread_kill(main, signal.SIGINT)
        time.sleep(0.2)
        ended.set()

    main = threading.get_ident()
    with pytest.raises(KeyboardInterrupt):
        run_uninterrupted(work)
    assert ended.is_set() is (at != "enter")
    assert not begun.wait(0.2) or ended.is_set()


class Published:
    """A target: the version that a run made, if it is known."""

    path = "/data/out"

    def __init__(self, version: int | None):
        self._version = version

    def published_version(self, run_id: str) -> int | None:
        return self._version


#: What ends a run -> what is said of it first, if the run had published.
ENDINGS = [
    (StorageError("full"), "full. The release "),
    (BusyError("taken"), "taken. The release "),
    (KeyboardInterrupt(), "interrupted: the release "),
    (ConnectionRefusedError(111, "HUSH"), JVM_LOST),
    (ValueError("HUSH"), "unexpected ValueError; its text is held back"),
]


@pytest.mark.parametrize("version", [None, -1, 3])
@pytest.mark.parametrize(("error", "first"), ENDINGS)
def test_what_is_said_of_a_commit(error: BaseException, first: str, version: int | None) -> None:
    target: Any = Published(version)
    with pytest.raises((type(error), PublishedError)) as caught, tell_published(target, "r1"):
        raise error
    if version is None:
        assert caught.value is error
        return
    said = str(caught.value)
    assert said.startswith(first)
    where = "version 3 of /data/out" if version == 3 else "/data/out"
    assert f"release is published all the same ({where}); only its" in said
    assert "`--run-id r1`" in said
    assert "HUSH" not in said
    kind = KeyboardInterrupt if isinstance(error, KeyboardInterrupt) else PublishedError
    assert type(caught.value) is kind

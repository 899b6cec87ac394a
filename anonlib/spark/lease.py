"""The lease of a target: one run at a time from staging to clean-up, and the leftovers of runs
that died are removed by the next.

A lease is a numbered file. A run takes the number after the last, if the last is free or its run
is dead, by making a file where none is: stores let one of several do that. Nobody but its run
writes a lease, and the highest number holds, so neither a late beat nor a late end can take
another's lease away. Where files have no locks the last one stays, marked as free.
"""

import fcntl
import json
import os
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO
from uuid import uuid4

from pyspark.sql import SparkSession

from anonlib.errors import AnonlibError, BusyError, InputError, StorageError
from anonlib.spark.storage import Storage

BEAT_SECONDS = 10.0
#: On another host a run counts as dead after this many missed beats: its clock is taken as right.
MISSED_BEATS = 12
#: And after this time without one, if it was about to commit: what it has sent may still arrive,
#: and stores whose commits are not conditional would let it replace another's.
COMMIT_SECONDS = 3600.0
TAKEN = "another run has just taken this target's lease"
_NAME = re.compile(r"lease-(\d{1,18})\.json")
_LOCK = "lease.lock"
_FREE = json.dumps({"free": True})
#: The tokens of this process: a lease of its own that is not among them could not be given back.
_HELD: set[str] = set()


class Lease:
    """A held lease. `work` is the private folder beside the target for this run's files."""

    def __init__(self, storage: Storage, work: str, run_id: str):
        self._storage = storage
        self.work = work
        self._number = 0
        self._content: dict[str, Any] = {
            "run_id": run_id,
            "token": uuid4().hex,
            "host": socket.gethostname(),
            "boot": _boot_id(),
            "pid": os.getpid(),
            "born": _born(os.getpid()),
            "started": time.time(),
            "committing": False,
        }
        self._writing = threading.Lock()
        self._stop = threading.Event()
        self._beat = threading.Thread(target=self._beats, name="anonlib-lease", daemon=True)

    def take(self) -> None:
        """Takes the lease, and removes what a dead run left. Raises BusyError on a live one,
        InputError where the store can't keep two runs apart."""
        with self._one_at_a_time():
            last = self._last()
            holder = self._read(last)
            _require_dead(holder)
            unborn = bool(holder and holder.get("new_target")) and not self._committed()
            self._content["new_target"] = unborn or not self._storage.exists(self._storage.root)
            self._claim(last)
        self._beat.start()
        try:
            if unborn:  # files of a table that a dead run began
                self._storage.delete(self._storage.root)
            self._clean()
        except BaseException:
            self.release()
            raise

    def _claim(self, last: int) -> None:
        """Makes the next lease, and looks whether it is the only one."""
        self._number = last + 1
        _HELD.add(self._content["token"])
        try:
            if not self._made():
                raise BusyError(TAKEN)
            if not self._storage.local and self._made(again=True):
                raise InputError(
                    f"path {self.work}: the store ignores the condition of conditional writes, so "
                    "that runs at the same time can't be kept apart; publish to another store"
                )
            if self._last() != self._number:  # we were slow, and thought dead
                raise BusyError(TAKEN)
            _require_dead(self._read(last))  # it may just have been slow, too
        except BaseException:
            _HELD.discard(self._content["token"])
            with suppress(AnonlibError):
                if self._is_mine():  # then whoever has the one before has it still
                    self._storage.delete(self._file)
            raise

    def _made(self, *, again: bool = False) -> bool:
        """Whether this run made the file of its number; `again`: whether the store let it."""
        try:
            self._storage.write(self._file, self._text(), new=True)
        except FileExistsError:
            # A request that was sent twice, since its answer was lost, finds what it made itself.
            return not again and self._is_mine()
        return True

    @contextmanager
    def _one_at_a_time(self) -> Iterator[None]:
        """Keeps runs of this host apart while one looks at the lease and replaces or removes it."""
        if self._storage.local:
            with self._locked():
                yield
        else:
            self._storage.make_private(self.work)
            yield

    def _locked(self) -> TextIO:
        """The open file of the folder's lock, which this thread has until it is closed."""
        path = Path(self._storage.local_path(f"{self.work}/{_LOCK}"))
        while True:
            self._storage.make_private(self.work)
            with suppress(FileNotFoundError), ExitStack() as stack:
                file = stack.enter_context(path.open("w"))
                fcntl.flock(file, fcntl.LOCK_EX)
                # Whoever had it may have removed the folder: then this is nobody's lock.
                if os.fstat(file.fileno()).st_ino == path.stat().st_ino:
                    stack.pop_all()
                    return file

    def _committed(self) -> bool:
        names = self._storage.listed(f"{self._storage.root}/_delta_log")
        return any(name.endswith(".json") for name in names)

    def _holds(self) -> bool:
        return self._last() == self._number and self._is_mine()

    def still_held(self) -> bool:
        """Whether the lease is still this run's; False where that can't be told."""
        with suppress(AnonlibError):
            return self._holds()
        return False

    def require(self) -> None:
        """Raises StorageError unless the lease is still this run's."""
        if not self._holds():
            raise StorageError("the lease on the target was lost: another run has taken it")

    @contextmanager
    def committing(self) -> Iterator[None]:
        """Around a commit: other hosts wait longer before they take this run for dead. Raises
        StorageError when the lease is lost."""
        self.require()
        self._content["committing"] = True
        try:
            self._renew()
            self.require()  # after writing: whoever takes over now has read it, or is seen here
            yield
        finally:
            self._content["committing"] = False  # the next beat says so

    def release(self) -> None:
        """Removes the run's files and the lease, whatever state the run ended in."""
        self._stop.set()
        if self._beat.is_alive():
            self._beat.join()
        try:
            if not self.still_held():
                return
            self._clean()
            if self._storage.local:
                self._remove_folder()
            else:
                self._storage.write(self._file, _FREE)
        finally:
            _HELD.discard(self._content["token"])

    def _remove_folder(self) -> None:
        with self._one_at_a_time():
            if self.still_held():
                folder = Path(self._storage.local_path(self.work))
                self._storage.delete(self._file)
                (folder / _LOCK).unlink()
                with suppress(OSError):  # another run has just come: it stays for that
                    folder.rmdir()

    def _clean(self) -> None:
        """Removes all but this run's lease."""
        for name in self._storage.listed(self.work):
            if name not in (_LOCK, f"lease-{self._number}.json"):
                self._storage.delete(f"{self.work}/{name}")

    @property
    def _file(self) -> str:
        return f"{self.work}/lease-{self._number}.json"

    def _last(self) -> int:
        """The highest number of a lease; 0 without any."""
        names = map(_NAME.fullmatch, self._storage.listed(self.work))
        return max((int(found.group(1)) for found in names if found), default=0)

    def _is_mine(self) -> bool:
        holder = self._read(self._number)
        return holder is not None and holder.get("token") == self._content["token"]

    def _text(self) -> str:
        return json.dumps({**self._content, "beat": time.time(), "every": BEAT_SECONDS})

    def _read(self, number: int) -> dict[str, Any] | None:
        """What a lease says; None where none is, or it was never written in full."""
        path = f"{self.work}/lease-{number}.json"
        try:
            found = json.loads(self._storage.read(path))
        except ValueError:
            return None
        except InputError:
            if self._storage.exists(path):  # what can't be read may be alive
                raise
            return None
        return found if isinstance(found, dict) else None

    def _renew(self) -> None:
        with self._writing:  # or an older beat could arrive after a newer one
            self._storage.write(self._file, self._text())

    def _beats(self) -> None:
        while not self._stop.wait(BEAT_SECONDS):
            with suppress(Exception):  # a missed beat is made up by the next
                if self.still_held():
                    self._renew()


@contextmanager
def lease(spark: SparkSession, target: str, run_id: str) -> Iterator[Lease]:
    """Holds the target's lease while the body runs."""
    storage = Storage(spark, target)
    held = Lease(storage, work_folder(storage.root), run_id)
    held.take()
    try:
        yield held
    finally:
        held.release()


def tidy(spark: SparkSession, target: str, run_id: str) -> None:
    """Removes what a dead run left beside and in a target. Raises BusyError on a live one."""
    storage = Storage(spark, target)
    work = work_folder(storage.root)
    names = storage.listed(work)
    if not names and not storage.exists(work):
        return
    only = names[0] if len(names) == 1 and _NAME.fullmatch(names[0]) else None
    if only is None or storage.read(f"{work}/{only}") != _FREE:
        with lease(spark, target, run_id):
            pass


def work_folder(target: str) -> str:
    """The private folder beside a target; its name keeps it out of listings of tables."""
    parent, _, name = target.rstrip("/").rpartition("/")
    return f"{parent}/_{name}.anonlib"


def _require_dead(holder: dict[str, Any] | None) -> None:
    if holder is not None and _alive(holder):
        raise BusyError(
            f"another run ({holder.get('run_id')}, on {holder.get('host')}, process "
            f"{holder.get('pid')}) is writing this target; wait for it to end"
        )


def _alive(holder: dict[str, Any]) -> bool:
    if holder.get("free"):
        return False
    if holder.get("host") == socket.gethostname():
        if holder.get("boot") != _boot_id():
            return False
        pid = holder.get("pid")
        # A number is used again after a while: the process must also be as old as it says.
        if not isinstance(pid, int) or _born(pid) != holder.get("born"):
            return False
        return holder.get("token") in _HELD if pid == os.getpid() else _process_exists(pid)
    beat, every = holder.get("beat"), holder.get("every")
    if not isinstance(beat, int | float) or not isinstance(every, int | float):
        return False
    silent = time.time() - beat
    return silent < (COMMIT_SECONDS if holder.get("committing") else MISSED_BEATS * every)


def _process_exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _born(pid: int) -> str:
    """When a process began, in the kernel's ticks; empty where the system does not say."""
    with suppress(OSError, IndexError):
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        return stat.rpartition(")")[2].split()[19]
    return ""


def _boot_id() -> str:
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return ""

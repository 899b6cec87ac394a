"""The lease of a target: one run at a time, from staging to clean-up. The next run removes the
leftovers of runs that died.

A lease is a numbered file; the one with the highest number is valid. If it is free or its run is
dead, a run takes the next number by creating that file. The store lets only one of several runs
create it. Only its own run writes a lease, so neither a late beat nor a late end can take away
another run's lease. On stores without file locks the last lease stays, marked as free. A lease
identifies the process of its driver across hosts, containers and boots.
"""

import fcntl
import json
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from math import ceil, inf
from pathlib import Path, PurePosixPath
from typing import Any, Literal, TextIO
from uuid import uuid4

from pyspark.sql import SparkSession

from anonlib.errors import AnonlibError, BusyError, InputError, StorageError
from anonlib.progress import wait_for
from anonlib.spark.process import identify_process, is_running
from anonlib.spark.storage import Storage

BEAT_SECONDS = 10.0

#: A run on another host, or from before a reboot, counts as dead after this many missed beats, if
#: it also does not beat during LOOK_SECONDS.
MISSED_BEATS = 12

#: For this long a run is watched before it counts as dead.
LOOK_SECONDS = 15.0

#: A run that was about to commit counts as dead only after this time without a beat. It may be
#: slow, and a store without conditional commits would let it replace another run's commit.
COMMIT_SECONDS = 3600.0

#: The requests of a dead process may still arrive at a remote store for this long.
DOUBT_SECONDS = 240.0

#: A half-written lease is read again every AGAIN_SECONDS, for at most READ_SECONDS.
AGAIN_SECONDS, READ_SECONDS = 0.2, 0.6

TAKEN = "another run has just taken this target's lease"

_NAME = re.compile(r"lease-(\d{1,18})\.json")

_LOCK = "lease.lock"

#: The record of a run that is about to commit, among its files. If the run is killed before it
#: moves the record to its place, the next run on the target does so.
AHEAD = "record.json"

#: The list of the files that a run moves to the table.
FILES = "added.json"

#: Files that Delta renames to commits. A killed run leaves them.
_TEMPORARY = re.compile(r"\.\d{20}\.json\.[0-9a-f-]{36}\.tmp(\.crc)?|\.\.\d{20}\..*\.crc")

#: What a lease tells of its run: that it is alive; that it seems so, by its last beat; that its
#: commit may still arrive, though it has ended or does not answer; that its time is over, but its
#: clock may be behind, so that it must be watched; that it is dead.
RunState = Literal["alive", "seems alive", "may arrive", "overdue", "dead"]

_FREE = json.dumps({"free": True})

#: The tokens of the leases that this process holds. A lease with this process id and another token
#: was not given back.
_HELD: set[str] = set()


class Lease:
    """The lease of a target.

    Attributes:
        work: The private folder beside the target for this run's files.
        failed: Whether the run failed, which keeps its record for the next attempt.
    """

    def __init__(
        self,
        storage: Storage,
        work: str,
        run_id: str,
        runs: Callable[[], frozenset[str]] | None = None,
    ):
        self._storage = storage
        self._runs = runs
        self.work = work
        self.failed = False
        self._number = 0
        self._content: dict[str, Any] = {
            "run_id": run_id,
            "token": uuid4().hex,
            **identify_process(),
            "started": time.time(),
            "committing": False,
            "publishing": False,
            "doubtful": False,
        }
        self._writing = threading.Lock()
        self._stop, self._ended = threading.Event(), threading.Event()
        self._beat = threading.Thread(target=self._keep_beating, name="anonlib-lease", daemon=True)

    def take(self) -> None:
        """Takes the lease, and removes the leftovers of a dead run.

        Raises:
            BusyError: A live run has the lease.
            InputError: The store can't keep two runs apart.
        """
        with self._one_at_a_time():
            last = self._last()
            holder = self._read(last)
            self._require_dead(holder)
            self._claim(last, holder)
        try:
            self._beat.start()
            dead = holder or {}
            self.remove_files(committing=bool(dead.get("committing")))  # those of a dead run
            self._clean()
        except BaseException:
            self.failed = True
            self.release()
            raise

    def _claim(self, last: int, dead: dict[str, Any] | None) -> None:
        """Makes the lease after number `last`, and checks that no other run has one.

        Raises:
            BusyError: Another run has the lease.
            InputError: The store can't keep two runs apart.
        """
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
            if self._last() != self._number:  # this run was slow, and counted as dead
                raise BusyError(TAKEN)
            now = self._read(last)  # its run may not be dead, but slow, or in the middle of a beat
            if now is not None and (dead is None or _renewed(now, dead)) and not now.get("free"):
                raise BusyError(f"{_who(now)} is writing this target; wait for it to end")
        except BaseException:
            _HELD.discard(self._content["token"])
            with suppress(AnonlibError):
                if self._is_mine():  # the lease before it is then valid again
                    self._storage.delete(self._file)
            raise

    def _made(self, *, again: bool = False) -> bool:
        """Whether this run created the file of its number; with `again`, whether the store let it
        create the file a second time."""
        try:
            self._storage.write(self._file, self._text(), new=True)
        except FileExistsError:
            # If an answer was lost, the request was sent twice, and finds its own file.
            return not again and self._is_mine()
        return True

    @contextmanager
    def _one_at_a_time(self) -> Iterator[None]:
        """Locks out other runs of this host while a run checks, replaces or removes the lease."""
        if self._storage.local:
            with self._locked():
                yield
        else:
            self._storage.make_private(self.work)
            yield

    def _locked(self) -> TextIO:
        """Locks the folder. The lock holds until the returned file is closed."""
        path = Path(self._storage.local_path(f"{self.work}/{_LOCK}"))
        while True:
            self._storage.make_private(self.work)
            with suppress(FileNotFoundError), ExitStack() as stack:
                file = stack.enter_context(path.open("w"))
                lock = partial(_try_lock, file)
                wait_for("another run that looks at this target", lock, most=inf, every=0.05)
                # The holder before may have removed the folder. Then this lock protects nothing.
                if os.fstat(file.fileno()).st_ino == path.stat().st_ino:
                    stack.pop_all()
                    return file

    def list_files(self, paths: Sequence[str]) -> None:
        """Lists the files of this run before the first of them is in the table: if this run dies,
        the next one removes these, and nothing else.

        Args:
            paths: The files, relative to the target.
        """
        self.require()
        listed = {"run_id": self._content["run_id"], "files": [*paths]}
        self._storage.write(f"{self.work}/{FILES}", json.dumps(listed))

    def remove_files(self, *, committing: bool = False) -> None:
        """Removes the listed files of a run that never committed them, and the folders that are
        empty then. Files of others stay.

        committing: Whether the run ended during its commit. If the table was there, its files are
        left to VACUUM, since the commit may still arrive.
        """
        root, path = self._storage.root, f"{self.work}/{FILES}"
        if not self._storage.exists(path):
            return
        written = self._read_list(path, committing=committing)
        if not self._storage.has_table(root):
            names = self._storage.listed(f"{root}/_delta_log")
            written += [f"_delta_log/{name}" for name in names if _TEMPORARY.fullmatch(name)]
        self._storage.delete_files(root, map(PurePosixPath, written))
        for folder in (f"{root}/_delta_log", root):
            self._storage.delete_empty(folder)
        self._storage.delete(path)

    def _read_list(self, path: str, *, committing: bool) -> list[str]:
        """The listed files that may be removed: none if their commit has arrived, or may yet."""
        try:
            listed = json.loads(self._storage.read(path))
        except ValueError:  # the run died while it wrote the list, before it moved a file
            return []
        if not self._storage.has_table(self._storage.root):
            return [*listed["files"]]
        may_be_there = committing or self._runs is None or self._knows(listed["run_id"])
        return [] if may_be_there else [*listed["files"]]

    def _holds(self) -> bool:
        with self._writing:  # a store without renames can show a half-written file
            return self._last() == self._number and self._is_mine()

    def still_held(self) -> bool:
        """Whether this run still has the lease; False if that is unknown."""
        with suppress(AnonlibError):
            return self._holds()
        return False

    def require(self) -> None:
        """Raises StorageError unless this run still has the lease."""
        if not self._holds():
            raise StorageError(
                "the lease on the target was lost: another run has taken it; run it again when "
                "that one has ended"
            )

    @contextmanager
    def committing(self, *, publishing: bool = False) -> Iterator[None]:
        """Wraps a commit: meanwhile other runs wait longer before this run counts as dead.

        Args:
            publishing: Whether the commit is that of the release.

        Raises:
            StorageError: The lease is lost.
        """
        self.require()
        self._content |= {"committing": True, "publishing": publishing}
        try:
            self._renew()
            self.require()  # after the write: a run that takes over has read it, or is seen here
            yield
        finally:
            if not self.doubtful:
                self._content["committing"] = False
            with suppress(AnonlibError):  # the next beat writes it
                self._renew()

    @property
    def remote(self) -> bool:
        """Whether a request can reach the target's store after its sender has given up."""
        return not self._storage.local

    @property
    def doubtful(self) -> bool:
        """Whether the outcome of a commit is unknown."""
        return bool(self._content["doubtful"])

    def doubt(self) -> None:
        """Notes that the outcome of a commit is unknown: the lease is not given back."""
        self._content["doubtful"] = True

    def release(self) -> None:
        """Removes the run's files and the lease, whatever state the run ended in."""
        self._stop.set()
        try:
            if self._beat.is_alive():
                self._ended.wait()  # after an interruption `join` says that a live thread ended
            if not self.still_held():
                return
            self._clean(ended_well=not self.failed)
            if self._storage.local:
                self._remove_folder()
            elif not self.doubtful:
                self._storage.write(self._file, _FREE)
        finally:
            _HELD.discard(self._content["token"])

    def _remove_folder(self) -> None:
        with self._one_at_a_time():
            if self.still_held():
                folder = Path(self._storage.local_path(self.work))
                self._storage.delete(self._file)
                (folder / _LOCK).unlink()
                with suppress(OSError):  # another run has just come, and needs the folder
                    folder.rmdir()

    def _clean(self, *, ended_well: bool = False) -> None:
        """Removes all files but this run's lease, and a record while it may be needed."""
        kept = {_LOCK, f"lease-{self._number}.json"}
        names = self._storage.listed(self.work)
        if AHEAD in names and self._needs_record(ended_well=ended_well):
            kept.add(AHEAD)
        if self.failed:
            kept.add(FILES)  # what is listed there may still be in the table
        for name in names:
            if name not in kept:
                self._storage.delete(f"{self.work}/{name}")

    def _needs_record(self, *, ended_well: bool) -> bool:
        """Whether the record among the files is of a run that has published, or may have, and may
        not have come to write it in its place."""
        if self.doubtful:
            return True
        with suppress(Exception):  # the store may be gone, or its run died while it wrote
            run_id = str(json.loads(self._storage.read(f"{self.work}/{AHEAD}"))["run_id"])
            is_done = ended_well and run_id == self._content["run_id"]
            return not is_done and self._knows(run_id)
        return False

    def _knows(self, run_id: str) -> bool:
        """Whether it is known that a run has published to the target."""
        return self._runs is not None and run_id in self._runs()

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
        """The content of a lease; None if there is none, or it was never written in full."""
        path = f"{self.work}/lease-{number}.json"
        found: list[Any] = []

        def whole() -> bool:
            try:
                found.append(json.loads(self._storage.read(path)))
            except ValueError:  # half-written: in the middle of a beat, or forever
                return False
            except InputError:
                if self._storage.exists(path):  # a run whose lease can't be read may be alive
                    raise
            return True

        wait_for("a lease to be written", whole, most=READ_SECONDS, every=AGAIN_SECONDS)
        return found[0] if found and isinstance(found[0], dict) else None

    def _renew(self) -> None:
        with self._writing:  # else an older beat could arrive after a newer one
            self._storage.write(self._file, self._text())

    def _keep_beating(self) -> None:
        try:
            while not self._stop.wait(BEAT_SECONDS):
                with suppress(Exception):  # the next beat makes up for a missed one
                    if self.still_held():
                        self._renew()
        finally:
            self._ended.set()

    def _require_dead(self, holder: dict[str, Any] | None) -> None:
        if holder is None or holder.get("free"):
            return
        now, has_it = time.time(), _has_it(holder)
        patience = self._patience(holder, gone=has_it is False)
        state = _judge(holder, now, patience, has_it)
        if state == "overdue":
            state = "alive" if self._sees_beat(holder) else "dead"
        if state == "dead":
            return
        if state == "alive":
            raise BusyError(f"{_who(holder)} is writing this target; wait for it to end")
        minutes = ceil((patience - (now - holder["beat"])) / 60)  # its clock may be ahead
        out = f"if its machine is dead for certain, remove {self.work}/lease-{self._last()}.json"
        if state == "seems alive":
            raise BusyError(
                f"{_who(holder)} is writing this target; wait for it to end: without a sign of "
                f"life it counts as dead in {minutes} minutes; {out}"
            )
        raise BusyError(
            f"{_who(holder)} ended during a commit, or does not answer: its commit may "
            f"still arrive; run again in {minutes} minutes; {out}"
        )

    def _sees_beat(self, holder: dict[str, Any]) -> bool:
        """Whether a run beats while it is watched."""
        return wait_for(
            f"a sign of life of {_who(holder)}",
            lambda: _renewed(self._read(self._last()), holder),
            most=LOOK_SECONDS,
            every=1.0,
        )

    def _patience(self, holder: dict[str, Any], *, gone: bool) -> float:
        """Seconds without a beat after which a run counts as dead.

        Args:
            holder: The lease of the run.
            gone: Whether its process is known to have ended. Else it can't be looked up from here.
        """
        mid_commit = holder.get("committing")
        if holder.get("publishing") and self._knows(str(holder.get("run_id"))):
            mid_commit = False  # its commit has arrived
        if not gone and not (mid_commit and holder.get("doubtful")):
            # Writes of this host to its own disks ended with the reboot: none arrives later.
            here = not self.remote and holder.get("host") == self._content["host"]
            return COMMIT_SECONDS if mid_commit and not here else _most_silent(holder)
        return DOUBT_SECONDS if mid_commit and self.remote else 0.0


@contextmanager
def lease(
    spark: SparkSession,
    target: str,
    run_id: str,
    runs: Callable[[], frozenset[str]] | None = None,
    work: str = "",
) -> Iterator[Lease]:
    """Holds the target's lease while the body runs.

    Args:
        spark: The session.
        target: The path of the target.
        run_id: The id of the run.
        runs: Returns the ids of the runs that have published to the target. None if that is
            unknown: then no file is removed from a table.
        work: The folder for this run's files; by default `work_folder` of the target.
    """
    storage = Storage(spark, target)
    held = Lease(storage, work or work_folder(storage.root), run_id, runs)
    held.take()
    try:
        yield held
    except BaseException:
        held.failed = True
        raise
    finally:
        held.release()


def tidy(
    spark: SparkSession,
    target: str,
    run_id: str,
    runs: Callable[[], frozenset[str]] | None = None,
) -> None:
    """Removes what a dead run left beside and in a target. Raises BusyError if a run is alive."""
    storage = Storage(spark, target)
    work = work_folder(storage.root)
    names = storage.listed(work)
    if not names and not storage.exists(work):
        return
    only = names[0] if len(names) == 1 and _NAME.fullmatch(names[0]) else None
    if only is None or storage.read(f"{work}/{only}") != _FREE:
        with lease(spark, target, run_id, runs):
            pass


def work_folder(target: str) -> str:
    """The private folder beside a target. Its name keeps it out of listings of tables."""
    parent, _, name = target.rstrip("/").rpartition("/")
    return f"{parent}/_{name}.anonlib"


def _try_lock(file: TextIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _has_it(holder: dict[str, Any]) -> bool | None:
    """Whether the process of a lease runs and still has the lease; None if that is unknown."""
    found = is_running(holder)
    if found and holder.get("pid") == os.getpid():
        return holder.get("token") in _HELD
    return found


def _judge(holder: dict[str, Any], now: float, patience: float, has_it: bool | None) -> RunState:
    """The state of a run by its lease.

    Args:
        holder: The lease.
        now: The time.
        patience: Seconds without a beat after which it counts as dead.
        has_it: As `_has_it` says.
    """
    if has_it:
        return "alive"
    silent = _silent(holder, now)
    if silent >= patience:
        return "overdue" if has_it is None else "dead"
    ended = has_it is False or holder.get("doubtful") or silent > _most_silent(holder)
    return "may arrive" if ended else "seems alive"


def _who(holder: dict[str, Any]) -> str:
    where = f"on {holder.get('host')}, process {holder.get('pid')}"
    return f"another run ({holder.get('run_id')}, {where})"


def _renewed(now: dict[str, Any] | None, holder: dict[str, Any]) -> bool:
    """Whether a lease is alive: its beat has changed, and it was not given back."""
    return now is not None and not now.get("free") and now.get("beat") != holder.get("beat")


def _most_silent(holder: dict[str, Any]) -> float:
    """The most seconds between two beats of a live run."""
    every = holder.get("every")
    return MISSED_BEATS * every if isinstance(every, int | float) else 0.0


def _silent(holder: dict[str, Any], now: float) -> float:
    """Seconds since the last beat of a lease.

    A beat in the future means that a clock was set. It counts as long ago, except during a commit.
    """
    beat = holder.get("beat")
    if not isinstance(beat, int | float):
        return inf
    found = now - beat
    if found < -_most_silent(holder) and not holder.get("committing"):
        return inf
    return max(0.0, found)

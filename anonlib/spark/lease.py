"""The lease of a target: one run at a time from staging to clean-up, and the leftovers of runs
that died are removed by the next."""

import fcntl
import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from pyspark.sql import SparkSession

from anonlib.errors import BusyError
from anonlib.spark.storage import Storage

BEAT_SECONDS = 10.0
#: On another host a run counts as dead after this many missed beats.
MISSED_BEATS = 12


class Lease:
    """A held lease. `work` is the private folder beside the target for this run's files."""

    def __init__(self, storage: Storage, work: str, run_id: str):
        self._storage = storage
        self.work = work
        self._file = f"{work}/lease.json"
        self._content: dict[str, Any] = {
            "run_id": run_id,
            "token": uuid4().hex,
            "host": socket.gethostname(),
            "boot": _boot_id(),
            "pid": os.getpid(),
            "born": _born(os.getpid()),
            "started": time.time(),
        }
        self._stop = threading.Event()
        self._beat = threading.Thread(target=self._beats, name="anonlib-lease", daemon=True)

    def take(self) -> None:
        """Takes the lease, and removes what a dead run left. Raises BusyError on a live one."""
        self._storage.make_private(self.work)
        with self._one_at_a_time():
            holder = self._read()
            if holder is not None and _alive(holder):
                raise BusyError(
                    f"another run ({holder.get('run_id')}, on {holder.get('host')}, process "
                    f"{holder.get('pid')}) is writing this target; wait for it to end"
                )
            if holder is not None and holder.get("new_target"):
                self._remove_unborn_table()
            self._storage.delete(self._file)
            self._content["new_target"] = not self._storage.exists(self._storage.root)
            try:
                self._storage.write(self._file, self._text(), new=True)
            except FileExistsError:
                raise BusyError("another run has just taken this target's lease") from None
            self._clean()
        self._beat.start()

    @contextmanager
    def _one_at_a_time(self) -> Iterator[None]:
        """Keeps runs of this host apart while one looks at the lease and replaces it."""
        if not self._storage.local:
            yield
            return
        with Path(self._storage.local_path(self.work), "lease.json.lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _remove_unborn_table(self) -> None:
        """Files of a table that a dead run began and never committed."""
        target = self._storage.root
        commits = [n for n in self._storage.listed(f"{target}/_delta_log") if n.endswith(".json")]
        if not commits:
            self._storage.delete(target)

    def still_held(self) -> bool:
        """Whether the lease is still this run's."""
        holder = self._read()
        return holder is not None and holder.get("token") == self._content["token"]

    def release(self) -> None:
        """Removes the run's files and the lease, whatever state the run ended in."""
        self._stop.set()
        if self._beat.is_alive():
            self._beat.join()
        if self.still_held():
            self._storage.delete(self.work)

    def _clean(self) -> None:
        for name in self._storage.listed(self.work):
            if not name.startswith("lease.json"):
                self._storage.delete(f"{self.work}/{name}")

    def _text(self) -> str:
        return json.dumps({**self._content, "beat": time.time(), "every": BEAT_SECONDS})

    def _read(self) -> dict[str, Any] | None:
        try:
            found = json.loads(self._storage.read(self._file))
        except Exception:  # gone or half written: the caller's next step settles it
            return None
        return found if isinstance(found, dict) else None

    def _beats(self) -> None:
        while not self._stop.wait(BEAT_SECONDS):
            with suppress(Exception):  # a missed beat is made up by the next
                if self.still_held():
                    self._storage.write(self._file, self._text())


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
    if storage.exists(work_folder(storage.root)):
        with lease(spark, target, run_id):
            pass


def work_folder(target: str) -> str:
    """The private folder beside a target; its name keeps it out of listings of tables."""
    parent, _, name = target.rstrip("/").rpartition("/")
    return f"{parent}/_{name}.anonlib"


def _alive(holder: dict[str, Any]) -> bool:
    if holder.get("host") == socket.gethostname():
        if holder.get("boot") != _boot_id():
            return False
        pid = holder.get("pid")
        # A number is used again after a while: the process must also be as old as it says.
        return isinstance(pid, int) and _born(pid) == holder.get("born") and _process_exists(pid)
    beat, every = holder.get("beat"), holder.get("every")
    if not isinstance(beat, int | float) or not isinstance(every, int | float):
        return False
    return time.time() - beat < MISSED_BEATS * every


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

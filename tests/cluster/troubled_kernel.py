"""A kernel that meets trouble on its executor, then is MDAV. It reaches cluster and driver as a
plug-in of another package, by --py-files.

Executors' environment: TROUBLE, what happens; TROUBLE_DIR, a folder that tells the test of it.
"""

import os
import time
from pathlib import Path
from typing import ClassVar

from anonlib.arrays import Ints
from anonlib.kernels.mdav import Mdav
from anonlib.table.block import Block

#: Longer than any test takes.
FOREVER_SECONDS = 600


class Troubled(Mdav):
    """MDAV, after the trouble."""

    type: ClassVar[str] = "troubled"

    def cells(self, block: Block) -> Ints:
        from pyspark import TaskContext

        context = TaskContext.get()
        if context is not None and "TROUBLE" in os.environ:
            trouble = globals()[os.environ["TROUBLE"]]
            trouble(context.partitionId(), context.attemptNumber())
        return super().cells(block)


def hang(partition: int, attempt: int) -> None:
    """The first task that comes never ends; its executor's process is told."""
    if _first("hang", str(_executor())):
        time.sleep(FOREVER_SECONDS)


def wait(partition: int, attempt: int) -> None:
    """Every task waits until the test says go, in each of its attempts; the node is told."""
    _first(f"wait-{os.environ['NODE']}", str(partition))
    _await("go")


def fail(partition: int, attempt: int) -> None:
    """The first task that comes fails in its first two attempts."""
    _first("fail", str(partition))
    if attempt < 2 and _told("fail") == str(partition):
        raise RuntimeError("RAWVALUE of a row")


def slow(partition: int, attempt: int) -> None:
    """Tasks on the node that is marked as slow never end; others tell that they began again. They
    wait for it, else there might be none left for it."""
    if "SLOW_NODE" in os.environ:
        _first("slow", str(partition))
        time.sleep(FOREVER_SECONDS)
    _await("slow")
    if attempt > 0:
        _first("again", str(partition))


def fill(partition: int, attempt: int) -> None:
    """The disk of a node that has a small one is filled; tasks on others wait for it."""
    if "SMALL_DISK" not in os.environ:
        _await("fill")
        return
    try:
        with Path(os.environ["SMALL_DISK"], f"filler-{os.getpid()}").open("wb", 0) as file:
            while True:
                file.write(bytes(1 << 16))
    except OSError:
        _first("fill", "full")


def _first(name: str, text: str) -> bool:
    """Leaves a note, if there is none of this name yet; whether it did."""
    place = Path(os.environ["TROUBLE_DIR"], name)
    mine = place.with_name(f"{name}.{os.getpid()}")
    mine.write_text(text)
    try:
        place.hardlink_to(mine)
    except FileExistsError:
        return False
    return True


def _await(name: str) -> None:
    while not Path(os.environ["TROUBLE_DIR"], name).exists():
        time.sleep(0.1)


def _told(name: str) -> str:
    return Path(os.environ["TROUBLE_DIR"], name).read_text()


def _executor() -> int:
    """The JVM that this worker belongs to."""
    pid = os.getpid()
    while b"CoarseGrainedExecutorBackend" not in Path(f"/proc/{pid}/cmdline").read_bytes():
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return pid

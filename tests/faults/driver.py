"""A driver that tests hurt: its process, those below it, and what it says."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tests.faults.checker import require
from tests.support import processes_of

ROOT = Path(__file__).parents[2]
#: Of one run, on a machine that may be very busy.
TIMEOUT = 600
#: The processes below a driver, by a part of their command lines.
JVM, WORKER, EXECUTOR = b"deploy.SparkSubmit", b"pyspark.daemon", b"CoarseGrainedExecutorBackend"


class Driver:
    """A process that runs one command line after the other (`tests/faults/child.py`).

    All its files are below `folder`, those of Spark and Python below `folder`/scratch.
    """

    def __init__(self, folder: Path, settings: Mapping[str, str] | None = None) -> None:
        self.folder, self.scratch = folder, folder / "scratch"
        for name in ("temporary", "local", "cwd"):
            (self.scratch / name).mkdir(parents=True)
        self._n_begun = self._ended = self._offset = 0
        self.set_clock(0)
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
        with (folder / "stdout").open("wb") as out, (folder / "stderr").open("wb") as err:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.faults.child", folder, json.dumps(settings or {})],
                env={**os.environ, "PYTHONPATH": path, "TMPDIR": str(self.scratch / "temporary")},
                cwd=self.scratch / "cwd",
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        self._wait(lambda: (folder / "codes").exists() or not self.is_alive(), TIMEOUT)
        require(self.is_alive(), f"a driver can't start: {folder}")

    @property
    def pid(self) -> int:
        """Of the driver itself, and of its process group."""
        return self._process.pid

    @property
    def is_new(self) -> bool:
        """Whether it has run nothing yet."""
        return self._ended == 0

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def begin(self, argv: Sequence[str]) -> None:
        """Begins a run."""
        self._n_begun += 1
        self._offset = (self.folder / "stderr").stat().st_size
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(list(argv)).encode() + b"\n")
        self._process.stdin.flush()

    def said(self) -> str:
        """What this run has said on stderr."""
        with (self.folder / "stderr").open("rb") as file:
            file.seek(self._offset)
            return file.read().decode("utf-8", "replace")

    def reaches(self, text: str) -> bool:
        """Waits until the run says this; False if it ends without."""
        self._wait(lambda: text in self.said() or self._has_ended(), TIMEOUT)
        return text in self.said()

    def ends(self) -> int | None:
        """The exit code of the run, once it has ended; None if the driver died."""
        self._wait(self._has_ended, TIMEOUT)
        codes = self._codes()
        if len(codes) <= self._ended:
            self.stop()
            return None
        self._ended = len(codes)
        return codes[-1]

    def is_idle(self) -> bool:
        """Whether no run is under way."""
        return self._n_begun == len(self._codes())

    def await_idle(self) -> None:
        """Waits until no run is under way."""
        self._wait(lambda: self.is_idle() or not self.is_alive(), TIMEOUT)
        self._ended = len(self._codes())

    def below(self, kind: bytes = b"") -> list[int]:
        """The processes of the driver that live, of one kind; without, all."""
        found = []
        for process in processes_of(self.scratch / "temporary"):
            with suppress(OSError):  # it has ended
                if kind in (process / "cmdline").read_bytes():
                    found.append(int(process.name))
        return found

    def set_clock(self, seconds: float) -> None:
        """Sets the driver's clock forward or back, compared with the machine's."""
        new = self.folder / "clock.new"
        new.write_text(str(seconds))
        new.rename(self.folder / "clock")

    def kill(self, pids: Sequence[int], number: int = signal.SIGKILL) -> None:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def stop(self) -> None:
        """Lets it end. Whatever then still lives is killed, and an error."""
        with suppress(OSError):
            assert self._process.stdin is not None
            self._process.stdin.close()
        try:
            self._process.wait(60)
            self._wait(lambda: not self.below(), 60)
        except (TimeoutError, subprocess.TimeoutExpired):
            left = len(self.below())
            self.kill(self.below())
            self._process.wait()
            require(False, f"{left} processes of a driver do not end")

    def _has_ended(self) -> bool:
        return len(self._codes()) > self._ended or not self.is_alive()

    def _codes(self) -> list[int]:
        return [int(line) for line in (self.folder / "codes").read_text().split()]

    def _wait(self, true: Callable[[], bool], seconds: float) -> None:
        end = time.monotonic() + seconds
        while not true():
            if time.monotonic() > end:
                raise TimeoutError(f"after {seconds} s, process {self.pid}: {self.folder}")
            time.sleep(0.005)


def seconds_of_stages(said: str) -> dict[str, float]:
    """How long each stage of a run took."""
    found = re.findall(r"^[\d:]{8} (\w+): done in ([\d.]+) s$", said, re.MULTILINE)
    return {name: float(seconds) for name, seconds in found}

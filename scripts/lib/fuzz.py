"""Fuzzing of configs, overrides, sweep files, hierarchies and CSV tables, for a bounded time. Every
try must end in time, and well or with a user error that shows no value.

    scripts/fuzz [--seconds 60] [--seed 0] [--only config mapping overrides sweep hierarchy-csv
        hierarchy-yaml csv] [--to out/fuzz]
    scripts/fuzz --again TARGET FILE

hypothesis makes failing inputs small; they are printed and written. Exit codes: 0 no finding,
1 findings.
"""

import argparse
import contextlib
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from fuzz_csv import csv_target, start
from fuzz_inputs import MARK, VARIABLE
from fuzz_targets import Target, plain_targets
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Flaky

from anonlib.errors import AnonlibError

ROOT = Path(__file__).parents[2]
#: Tries of one seed.
TRIES = 200
#: Memory that tries without Spark may take, in bytes.
MEMORY = 6 * 2**30


class TooSlowError(BaseException):
    """A try took too long. Not an Exception, so that no handler catches it."""


class Found(Exception):
    """A try that went wrong in a way not seen before."""


@dataclass
class Fuzzer:
    """Runs tries; keeps the smallest input of each kind of failure."""

    folder: Path
    until: float = 0.0
    n_tries: dict[str, int] = field(default_factory=dict)
    n_refused: dict[str, int] = field(default_factory=dict)
    found: dict[tuple[str, str], Any] = field(default_factory=dict)

    def run(self, target: Target, first_seed: int, until: float) -> None:
        """Runs rounds of tries until the time is over."""
        self.until = until
        number = 0
        while time.monotonic() < until:
            with contextlib.suppress(Found, Flaky):  # flaky: the time was up
                self.round(target, first_seed + number, TRIES)
            number += 1

    def round(self, target: Target, number: int, n: int) -> None:
        """Runs the tries of one seed; raises Found at the first new kind of failure."""
        known = {way for name, way in self.found if name == target.name}

        @seed(number)
        @settings(
            max_examples=n,
            database=None,
            deadline=None,
            report_multiple_bugs=False,
            phases=(Phase.generate, Phase.shrink) if target.shrinks else (Phase.generate,),
            suppress_health_check=list(HealthCheck),
        )
        @given(target.inputs)
        def tries(data: Any) -> None:
            if time.monotonic() > self.until:
                return
            self.n_tries[target.name] = self.n_tries.get(target.name, 0) + 1
            way = self.outcome(target, data)
            if way not in known | {None}:
                self.found[target.name, str(way)] = data
                raise Found(way)

        tries()

    def outcome(self, target: Target, data: Any) -> str | None:
        """The kind of failure of one try; None if it ended well."""
        try:
            with limited(target), warnings.catch_warnings():
                warnings.filterwarnings("error", module="anonlib|pydantic|yaml")
                target.attempt(data, self.folder)
        except AnonlibError as error:
            self.n_refused[target.name] = self.n_refused.get(target.name, 0) + 1
            return f"{type(error).__name__} shows a value" if MARK in str(error) else None
        except TooSlowError:
            return "too slow"
        except Exception as error:
            return f"{type(error).__name__} at {_place(error)}"
        return None


@contextmanager
def limited(target: Target) -> Iterator[None]:
    """Raises TooSlowError in a block that takes too long."""

    def stop(*_: object) -> None:
        raise TooSlowError

    for timer, number in (
        (signal.ITIMER_PROF, signal.SIGPROF),
        (signal.ITIMER_REAL, signal.SIGALRM),
    ):
        signal.signal(number, stop)
        limit = target.cpu_seconds if timer == signal.ITIMER_PROF else target.seconds
        signal.setitimer(timer, limit)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)


def _place(error: Exception) -> str:
    """The innermost line of this project in an error's traceback."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "anonlib" in Path(frame.filename).parts]
    last = (own or frames)[-1]
    return f"{Path(last.filename).name}:{last.lineno}"


@contextmanager
def little_memory() -> Iterator[None]:
    """An input that asks for too much memory gets a MemoryError, not the machine's."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def again(target: Target, path: Path, folder: Path) -> None:
    """Tries one input again, and shows the traceback if it fails."""
    data = path.read_bytes()
    attempt = data if target.suffix != ".txt" else eval(data, {"inf": float("inf")})  # noqa: S307
    try:
        with limited(target):
            target.attempt(attempt, folder)
    except AnonlibError as error:
        print(f"{type(error).__name__}: {error}")


def report(fuzzer: Fuzzer, targets: Sequence[Target], to: Path) -> int:
    """Prints the tries and findings; returns the exit code."""
    for target in targets:
        n, refused = fuzzer.n_tries.get(target.name, 0), fuzzer.n_refused.get(target.name, 0)
        print(f"{target.name:16}{n:8,} tries, {refused:8,} ended with a user error")
    suffixes = {target.name: target.suffix for target in targets}
    for i, ((name, way), data) in enumerate(fuzzer.found.items()):
        to.mkdir(parents=True, exist_ok=True)
        path = to / f"{name}-{i}{suffixes[name]}"
        content = (
            data if isinstance(data, bytes) else repr(data).encode("utf-8", "backslashreplace")
        )
        path.write_bytes(content)
        print(f"\n{name}: {way}\n  {content[:600]!r}\n  scripts/fuzz --again {name} {path}")
    return 1 if fuzzer.found else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="for each target")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", metavar="TARGET")
    parser.add_argument("--to", type=Path, default=Path("out/fuzz"), help="folder of the findings")
    parser.add_argument("--again", nargs=2, metavar=("TARGET", "FILE"))
    args = parser.parse_args()
    os.environ[VARIABLE] = MARK
    with tempfile.TemporaryDirectory() as work:
        conf = Path(work, "conf")
        shutil.copytree(ROOT / "conf", conf)
        targets = [*plain_targets(conf), csv_target()]
        if args.again:
            chosen = next(target for target in targets if target.name == args.again[0])
            again(chosen, Path(args.again[1]), Path(work))
            return 0
        targets = [t for t in targets if not args.only or t.name in args.only]
        fuzzer = Fuzzer(Path(work))
        for target in targets:
            with contextlib.nullcontext() if target.spark else little_memory():
                if target.spark:
                    start(Path(work))
                fuzzer.run(target, args.seed, time.monotonic() + args.seconds)
        return report(fuzzer, targets, args.to)


if __name__ == "__main__":
    sys.exit(main())

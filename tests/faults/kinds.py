"""The kinds of faults: what each needs before a run, how it strikes, and how it is undone."""

import os
import shutil
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.faults.driver import EXECUTOR, JVM, WORKER, Driver
from tests.faults.scene import CHANGES, FORMATS, Scene

HOUR = 3600
#: The file that fills a disk.
FILLER = "filler"


@dataclass(frozen=True)
class Fault:
    """One fault, as it will be.

    Attributes:
        name: What it is, for the report.
        strike: Does it, while a run works on the scene.
        heal: Undoes what a repeated run could not live with.
        format: Of the source.
        disk: The place that has a small disk: "target", "record" or "scratch".
        cluster: Whether the driver has executors.
        kills: Whether the driver is of no use afterwards.
        second: Whether a second driver begins the same run at that moment.
    """

    name: str
    strike: Callable[[Scene, Driver], None]
    heal: Callable[[Scene, Driver], None] = lambda scene, driver: None
    format: str = "parquet"
    disk: str = ""
    cluster: bool = False
    kills: bool = False
    second: bool = False


def driver(random: Random) -> Fault:
    """kill -9 of the driver."""
    return Fault("", lambda s, d: d.kill([d.pid]), kills=True)


def jvm(random: Random) -> Fault:
    """kill -9 of the driver's JVM."""
    return Fault("", lambda s, d: d.kill(d.below(JVM)), kills=True)


def machine(random: Random) -> Fault:
    """kill -9 of all processes at once."""
    return Fault("", lambda s, d: d.kill(d.below()), kills=True)


def worker(random: Random) -> Fault:
    """kill -9 of a Python worker, or of all of them, with the process that begins them: a session
    that retries no task may fail once more for want of it."""
    n = random.choice([1, 99])
    strike = lambda scene, driver: driver.kill(sorted(driver.below(WORKER), reverse=True)[:n])
    return Fault(f"{n}", strike, kills=n > 1)


def executor(random: Random) -> Fault:
    """kill -9 of an executor of a cluster."""
    one = random.random()

    def strike(scene: Scene, driver: Driver) -> None:
        found = sorted(driver.below(EXECUTOR))
        driver.kill(found[int(one * len(found)) :][:1])

    return Fault("", strike, cluster=True)


def signals(random: Random) -> Fault:
    """A signal to the process group."""
    number = random.choice([signal.SIGTERM, signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
    return Fault(number.name, lambda s, d: os.killpg(d.pid, number))


def source(random: Random) -> Fault:
    """The source changes."""
    how = random.choice(CHANGES)

    def heal(scene: Scene, driver: Driver) -> None:
        if how in ("truncated", "removed"):
            shutil.rmtree(scene.source)
            scene.write_source(scene.states[0])

    strike = lambda scene, driver: scene.change(how, random)
    return Fault(how, strike, heal, format=random.choice(FORMATS))


def disk(random: Random) -> Fault:
    """A disk becomes full: that of the target, of the private record, of Spark's own files."""
    place = random.choice(["target", "record", "scratch"])

    def filler(scene: Scene, driver: Driver) -> Path:
        folders = {"target": scene.out, "record": scene.record, "scratch": driver.scratch}
        return Path(str(folders[place]), FILLER)

    def strike(scene: Scene, driver: Driver) -> None:
        with filler(scene, driver).open("wb", 0) as file:
            try:
                while True:
                    file.write(bytes(1 << 12))
            except OSError:
                return

    def heal(scene: Scene, driver: Driver) -> None:
        filler(scene, driver).unlink(missing_ok=True)

    return Fault(place, strike, heal, disk=place)


def clock(random: Random) -> Fault:
    """The driver's clock jumps, by minutes to days, forward or back; the repeated run has the new
    time, too."""
    seconds = random.choice([-1, 1]) * random.choice([90, HOUR, 26 * HOUR, 400 * HOUR])
    return Fault(f"{seconds:+} s", lambda s, d: d.set_clock(seconds))


def two(random: Random) -> Fault:
    """A second driver begins the same run; the first may be killed at that moment, or be stopped
    until the second has ended."""
    what = random.choice(["both live", "the first is killed", "the first is stopped"])

    def strike(scene: Scene, driver: Driver) -> None:
        if what == "the first is killed":
            driver.kill(driver.below())
        elif what == "the first is stopped":
            driver.kill(driver.below(), signal.SIGSTOP)

    return Fault(what, strike, kills=what == "the first is killed", second=True)


KINDS: dict[str, Callable[[Random], Fault]] = {
    kind.__name__: kind
    for kind in (driver, jvm, machine, worker, executor, signals, source, disk, clock, two)
}

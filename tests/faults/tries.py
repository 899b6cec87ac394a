"""A try: a run, a fault at a random moment, a look at what is left, and the same run again."""

import shutil
import signal
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.faults import checker
from tests.faults.checker import Broken, require
from tests.faults.driver import JVM, Driver, seconds_of_stages
from tests.faults.kinds import FILLER, KINDS, Fault
from tests.faults.scene import MODES, Scene, people
from tests.support import small_disk

#: The stages of a run, and the time after the last of them.
STAGES = ("start", "open", "scan", "partition", "anonymize", "audit", "publish", "end")
#: How long the last of these is; a stage that was not measured yet.
END_SECONDS, UNKNOWN_SECONDS = 0.5, 1.0
#: What a run says that fails after its commit.
PUBLISHED = "published"
#: Of the small disks.
MEGABYTES = 128
CLUSTER = {"spark.master": "local-cluster[2,1,700]", "spark.executor.memory": "600m"}


@dataclass(frozen=True)
class Try:
    """What happened. `broken` is empty, or says what does not hold."""

    kind: str
    seed: int
    what: str
    outcome: str
    broken: str
    seconds: float

    def __str__(self) -> str:
        line = f"{self.kind:9} seed {self.seed:<6} {self.seconds:5.1f} s  {self.what}"
        return f"{line}: {f'BROKEN: {self.broken}' if self.broken else self.outcome}"


class Tries:
    """Makes tries below a folder. Drivers that were not hurt serve again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._idle: dict[bool, list[Driver]] = {False: [], True: []}
        self._n_drivers = 0
        self._lengths: dict[tuple[bool, str], float] = {}

    def make(self, kind: str, seed: int) -> Try:
        """Makes one try. Its files stay only if the invariant does not hold."""
        random = Random(f"{kind} {seed}")
        fault = KINDS[kind](random)
        mode, stage, part = random.choice(MODES), random.choice(STAGES), random.random()
        folder = self._folder / f"{kind}-{seed}"
        folder.mkdir(parents=True)
        scene = Scene(folder, fault.format, mode)
        name = f"{fault.name} " if fault.name else ""
        what = f"{name}at {stage} + {part:.0%}, {mode} from {fault.format}"
        began, broken, outcome = time.monotonic(), "", ""
        try:
            with ExitStack() as stack:
                outcome = _One(self, stack, scene, fault, stage, part).through()
        except (Broken, TimeoutError) as error:
            broken = str(error)
        else:
            shutil.rmtree(folder)
        return Try(kind, seed, what, outcome, broken, time.monotonic() - began)

    def driver(self, *, cluster: bool) -> Driver:
        """One that is idle, else a new one."""
        while self._idle[cluster]:
            found = self._idle[cluster].pop()
            if found.is_alive():
                return found
            found.stop()
        self._n_drivers += 1
        folder = self._folder / f"process-{self._n_drivers}"
        return Driver(folder, CLUSTER if cluster else {})

    def give_back(self, driver: Driver, *, cluster: bool) -> None:
        self._idle[cluster].append(driver)

    def note_lengths(self, said: str, *, new: bool) -> None:
        for stage, seconds in seconds_of_stages(said).items():
            self._lengths[new, stage] = seconds

    def await_moment(self, driver: Driver, stage: str, part: float) -> None:
        """Waits until a part of a stage of the run is over."""
        if stage == "end":
            driver.reaches(" publish: done")
            time.sleep(part * END_SECONDS)
        elif driver.reaches(f" {stage}: started"):
            time.sleep(part * self._lengths.get((driver.is_new, stage), UNKNOWN_SECONDS))

    def stop(self) -> None:
        """Ends the drivers."""
        for drivers in self._idle.values():
            while drivers:
                drivers.pop().stop()


class _One:
    """One try, with what it uses."""

    def __init__(
        self, tries: Tries, stack: ExitStack, scene: Scene, fault: Fault, stage: str, part: float
    ) -> None:
        self._tries, self._stack, self._scene, self._fault = tries, stack, scene, fault
        self._stage, self._part = stage, part
        self._used: list[Driver] = []

    def through(self) -> str:
        """The whole try; what happened."""
        scene, fault = self._scene, self._fault
        if fault.disk == "target":
            self._mount(scene.out)
        elif fault.disk == "record":
            scene.record = scene.folder / "record"
            self._mount(scene.record)
        driver = self._driver()
        self._prepare(driver)
        happened = self._disturbed(driver)
        fault.heal(scene, driver)
        if fault.kills or not driver.is_alive():
            driver.stop()
            driver = self._driver()
        code = self._run(driver)
        require(code == 0, f"{happened}; again: exit code {code}: {errors_of(driver.said())}")
        self._check(driver.said(), code)
        self._require_finished()
        return f"{happened}; again: {'done already' if 'new' in happened else 'published'}"

    def _driver(self) -> Driver:
        cluster = self._fault.cluster
        if self._fault.disk == "scratch":
            folder = self._scene.folder / f"driver-{len(self._used)}"
            self._mount(folder / "scratch")
            found = Driver(folder)
            self._stack.callback(found.stop)
        else:
            found = self._tries.driver(cluster=cluster)
            self._stack.callback(self._give_back, found)
        self._used.append(found)
        return found

    def _mount(self, place: Path) -> None:
        """A small disk. What is on it when something does not hold is kept beside it."""

        def keep(error: object, *_: object) -> None:
            if error is not None:
                shutil.copytree(place, f"{place}.kept", ignore=shutil.ignore_patterns(FILLER))

        self._stack.enter_context(small_disk(place, MEGABYTES))
        self._stack.push(keep)

    def _give_back(self, driver: Driver) -> None:
        """An idle driver serves again; one that hangs, or has no JVM any more, does not."""
        with suppress(TimeoutError):
            driver.await_idle()
        if driver.is_alive() and driver.is_idle() and driver.below(JVM):
            driver.set_clock(0)
            self._tries.give_back(driver, cluster=self._fault.cluster)
        else:
            driver.kill(driver.below())
            driver.stop()

    def _prepare(self, driver: Driver) -> None:
        """Makes the source, the table before and the files of others."""
        scene = self._scene
        scene.out.mkdir(exist_ok=True)
        if scene.mode == "append":
            scene.write_source(people(5000))
            new = driver.is_new
            driver.begin(["release", scene.config("before", first=True)])
            code = driver.ends()
            require(code == 0, f"undisturbed: exit code {code}: {errors_of(driver.said())}")
            self._tries.note_lengths(driver.said(), new=new)
            scene.states.clear()
        elif scene.mode == "overwrite":
            scene.write_target()
        scene.write_source(people(0))
        scene.note_target()
        scene.plant()

    def _run(self, driver: Driver) -> int | None:
        new = driver.is_new
        driver.begin(["release", self._scene.config("run")])
        code = driver.ends()
        if code == 0:
            self._tries.note_lengths(driver.said(), new=new)
        return code

    def _disturbed(self, driver: Driver) -> str:
        """The run with the fault; how it ended."""
        scene, fault = self._scene, self._fault
        second = self._driver() if fault.second else None
        driver.begin(["release", scene.config("run")])
        self._tries.await_moment(driver, self._stage, self._part)
        fault.strike(scene, driver)
        ends = []
        if second is not None:
            ends.append(f"the second: {self._end(second, self._run(second))}")
            driver.kill(driver.below(), signal.SIGCONT)
        ends.insert(0, self._end(driver, driver.ends()))
        doubtful = "(error: " in ends[0] and "new table" in ends[0] and not (fault.kills or second)
        told = not doubtful or PUBLISHED in driver.said()
        require(told, f"it published, and does not say so: {errors_of(driver.said())}")
        return "; ".join(ends)

    def _end(self, driver: Driver, code: int | None) -> str:
        new = self._check(driver.said(), code)
        require(code != 0 or new, "it says that it published, and the table is the old one")
        ending = "killed" if code is None else f"exit code {code}"
        why = f" ({errors_of(driver.said())})" if code else ""
        return f"{ending}{why}, {'new' if new else 'old'} table"

    def _check(self, said: str, code: int | None) -> bool:
        """The invariant; whether the table is new."""
        scene = self._scene
        checker.require_said(said, code)
        table = checker.read_table(scene.target)
        appended = scene.mode == "append"
        new = checker.require_old_or_new(table, scene.before, scene.states, appended=appended)
        checker.require_foreign(scene.out, scene.foreign)
        checker.require_private(scene.out)
        record = [scene.record] if scene.record is not None else []
        left = [scene.out, *record, *(driver.folder for driver in self._used)]
        checker.require_no_raw(left, scene.raw())
        return new

    def _require_finished(self) -> None:
        """After the repeated run: the table is new, its records are there, and nothing else is."""
        scene = self._scene
        table = checker.read_table(scene.target)
        require(not checker.is_old(table, scene.before), "done, and the table is the old one")
        record = scene.record or scene.target.with_name(f"{scene.target.name}.private")
        checker.require_recorded(scene.target, record, "run", table)
        there = scene.before.version >= 0
        checker.require_tidy(
            scene.out, scene.target, record, scene.foreign, table, there_before=there
        )


def errors_of(said: str) -> str:
    """What a run said of why it ended, as far as a line has room for it."""
    return " ".join(checker.errors_in(said))[:200]

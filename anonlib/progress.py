"""The progress that verbs report; subclasses show it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf
from time import monotonic, sleep
from typing import Any, Protocol, Self

#: A wait is shown when it has taken this many seconds.
SHOWN_AFTER = 1.0
#: The properties of a thread that make its job group in Spark.
_GROUP = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")


class Watcher(Protocol):
    """A listener to the stages of a run."""

    def stage_started(self, name: str) -> None:
        """A stage begins."""

    def stage_ended(
        self, name: str, failure: BaseException | None, *, stopped: bool = False
    ) -> None:
        """A stage ended, with `failure` if it failed."""


class Progress:
    """Stages with their durations. This base class shows nothing; subclasses do.

    Attributes:
        seconds: the duration of every finished stage, by name; a stage within another counts for
            itself alone.
        run_id: the run of the stages; empty where there is none.
        target: the path of the release of that run, or empty.
        watcher: told of every stage, or None.
        stops: whether an error ends a stage only, and the run goes on, as where its rows wait.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._inside: list[float] = []  # for each open stage, the seconds of its ended inner stages
        self.run_id = ""
        self.target = ""
        self.watcher: Watcher | None = None
        self.stops: Callable[[BaseException], bool] = lambda error: False

    def group(self, name: str = "") -> str:
        """The job group of a stage, or of the work of a run between stages."""
        return " ".join(filter(None, ["anonlib", self.run_id, name]))

    @contextmanager
    def stage(self, name: str, spark: Any = None) -> Iterator[None]:
        """Runs the body as a stage; with a session, its jobs run in the stage's job group."""
        before = None if spark is None else set_group(spark, self.group(name))
        _LATEST.set(self)
        start = monotonic()
        self._inside.append(0.0)
        self.started(name, spark)
        if self.watcher is not None:
            self.watcher.stage_started(name)
        try:
            yield
        except BaseException as error:
            # The group stays, so that others can wait for the last of its tasks.
            self._finish(name, start, error)
            raise
        self._finish(name, start, None)
        if before is not None:
            restore_group(spark, before)

    def _finish(self, name: str, start: float, failure: BaseException | None) -> None:
        seconds = monotonic() - start
        own = seconds - self._inside.pop()
        if self._inside:
            self._inside[-1] += seconds
        self.seconds[name] = self.seconds.get(name, 0.0) + own
        self.ended(name, self.seconds[name])
        if self.watcher is not None:
            stopped = failure is not None and self.stops(failure)
            self.watcher.stage_ended(name, failure, stopped=stopped)

    def started(self, name: str, spark: Any) -> None:
        """A stage begins."""

    def ended(self, name: str, seconds: float) -> None:
        """A stage ended, with or without an error."""

    def advanced(self, name: str, n_done: int, total: int, left: float) -> None:
        """`n_done` of the `total` parts of a stage are done; about `left` seconds remain."""

    def note(self, text: str) -> None:
        """A line the user should see."""

    def waiting(self, what: str, most: float) -> None:
        """The run begins to wait for something.

        Args:
            what: What it waits for.
            most: Seconds at most; inf means without end.
        """

    def waited(self, what: str) -> None:
        """That wait is over."""


class SilentProgress(Progress):
    """Progress of work within a stage: shows nothing, and its jobs stay in that stage's group."""

    @contextmanager
    def stage(self, name: str, spark: Any = None) -> Iterator[None]:
        yield


#: The progress of the latest stage of this thread: waits deep below a verb are shown there.
_LATEST: ContextVar[Progress | None] = ContextVar("anonlib progress", default=None)


class Wait:
    """A wait that the progress line shows, with what is waited for."""

    def __init__(self, what: str, most: float = inf):
        self._what, self._most = what, most
        self._progress = _LATEST.get()
        self._shown = False

    def __enter__(self) -> Self:
        return self

    def show(self) -> None:
        """Shows that the run waits, once."""
        if self._progress is not None and not self._shown:
            self._shown = True
            self._progress.waiting(self._what, self._most)

    def __exit__(self, *failure: object) -> None:
        if self._progress is not None and self._shown:
            self._progress.waited(self._what)


def wait_for(what: str, ready: Callable[[], bool], *, most: float, every: float) -> bool:
    """Waits until `ready` is true; the progress line shows for what, and how long at most.

    Args:
        what: What is waited for: "the lease of out/adult".
        ready: Is asked at once, and then again and again.
        most: Seconds that the wait may take; inf for no end.
        every: Seconds between two questions.

    Returns:
        Whether `ready` was true in time.
    """
    begun = monotonic()
    with Wait(what, most) as wait:
        while not ready():
            passed = monotonic() - begun
            if passed >= most:
                return False
            if passed >= SHOWN_AFTER:
                wait.show()
            sleep(min(every, most - passed))
        return True


def set_group(spark: Any, name: str) -> dict[str, str | None]:
    """Puts the next jobs of this thread into a group; returns the properties to restore."""
    context = spark.sparkContext
    before = {key: context.getLocalProperty(key) for key in _GROUP}
    context.setJobGroup(name, name, True)
    return before


def restore_group(spark: Any, before: dict[str, str | None]) -> None:
    """Undoes `set_group`."""
    for key, value in before.items():
        spark.sparkContext.setLocalProperty(key, value)

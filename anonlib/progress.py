"""Progress as the verbs report it; how it is shown is the caller's matter."""

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any, Protocol

#: What Spark keeps of a thread's job group.
_GROUP = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")


class Watcher(Protocol):
    """Who else is told of a run's stages."""

    def stage_started(self, name: str) -> None:
        """A stage begins."""

    def stage_ended(self, name: str, failure: BaseException | None) -> None:
        """A stage is over; `failure` is what ended it, if it did not end well."""


class Progress:
    """Stages with their durations. This base shows nothing; subclasses show.

    `seconds` collects the duration of every finished stage by name; that of a stage inside another
    counts for itself alone. `run_id` and `target` are those of the run that the stages are of,
    empty where they are of none.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._inside: list[float] = []  # seconds of ended stages in each of those that go on
        self.run_id = ""
        self.target = ""
        self.watcher: Watcher | None = None

    def group(self, name: str = "") -> str:
        """The job group of a stage, or of what a run does between its stages."""
        return " ".join(filter(None, ["anonlib", self.run_id, name]))

    @contextmanager
    def stage(self, name: str, spark: Any = None) -> Iterator[None]:
        """Runs a stage; with a session, its jobs run in a job group of the stage's name."""
        before = None if spark is None else set_group(spark, self.group(name))
        begun = monotonic()
        self._inside.append(0.0)
        self.started(name, spark)
        if self.watcher is not None:
            self.watcher.stage_started(name)
        try:
            yield
        except BaseException as error:
            # The group stays, for those who wait until the last of its tasks is gone.
            self._finished(name, begun, error)
            raise
        self._finished(name, begun, None)
        if before is not None:
            restore_group(spark, before)

    def _finished(self, name: str, begun: float, failure: BaseException | None) -> None:
        seconds = monotonic() - begun
        own = seconds - self._inside.pop()
        if self._inside:
            self._inside[-1] += seconds
        self.seconds[name] = self.seconds.get(name, 0.0) + own
        self.ended(name, self.seconds[name])
        if self.watcher is not None:
            self.watcher.stage_ended(name, failure)

    def started(self, name: str, spark: Any) -> None:
        """A stage begins."""

    def ended(self, name: str, seconds: float) -> None:
        """A stage is over, well or not."""

    def advanced(self, name: str, done: int, total: int, left: float) -> None:
        """A stage of `total` parts has done some; about `left` seconds of it are left."""

    def note(self, text: str) -> None:
        """A line the user should see."""


class SilentProgress(Progress):
    """Progress of work within a stage: nobody is told, and its jobs are those of the stage."""

    @contextmanager
    def stage(self, name: str, spark: Any = None) -> Iterator[None]:
        yield


def set_group(spark: Any, name: str) -> dict[str, str | None]:
    """Has the jobs of this thread run in a group of this name from now on; what was before."""
    context = spark.sparkContext
    before = {key: context.getLocalProperty(key) for key in _GROUP}
    context.setJobGroup(name, name, True)
    return before


def restore_group(spark: Any, before: dict[str, str | None]) -> None:
    """Undoes `set_group`."""
    for key, value in before.items():
        spark.sparkContext.setLocalProperty(key, value)

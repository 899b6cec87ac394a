"""Progress as the verbs report it; how it is shown is the caller's matter."""

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any


class Progress:
    """Stages with their durations. This base shows nothing; subclasses show.

    `seconds` collects the duration of every finished stage by name.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str, spark: Any = None) -> Iterator[None]:
        """Runs a stage; with a session, its jobs run in a job group of the stage's name."""
        if spark is not None:
            spark.sparkContext.setJobGroup(f"anonlib {name}", f"anonlib {name}", True)
        begun = monotonic()
        self.started(name, spark)
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + monotonic() - begun
            self.ended(name, self.seconds[name])

    def started(self, name: str, spark: Any) -> None:
        """A stage begins."""

    def ended(self, name: str, seconds: float) -> None:
        """A stage is over, well or not."""

    def advanced(self, name: str, done: int, total: int, left: float) -> None:
        """A stage of `total` parts has done some; about `left` seconds of it are left."""

    def note(self, text: str) -> None:
        """A line the user should see."""

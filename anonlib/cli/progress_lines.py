"""Shows progress on stderr: a live line per stage on a terminal, else plain lines or JSON."""

import json
import os
import sys
import threading
from contextlib import suppress
from datetime import UTC, datetime
from math import isinf
from typing import TYPE_CHECKING, Any, Literal, Self

from anonlib.progress import Progress

if TYPE_CHECKING:
    from rich.progress import TaskID

#: Seconds between two requests for Spark's counts of tasks.
_POLL = 0.5

#: By how a stage ends: its mark on a terminal, and the style of that.
_MARKS = {"done": ("✓", "green"), "failed": ("✗", "red"), "stopped": ("■", "yellow")}


def make_progress(
    log_format: Literal["text", "json"], *, quiet: bool, output: str = "text"
) -> "ShownProgress":
    """The progress for these flags. Text is live if stderr is a terminal.

    output: The format of stdout. Under spark-submit all lines of stderr are lines of stdout: none
        is written where that is for programs.
    """
    if quiet or (output != "text" and "PYSPARK_GATEWAY_PORT" in os.environ):
        return ShownProgress()
    if log_format == "json":
        return JsonProgress()
    return TerminalProgress() if sys.stderr.isatty() else LogProgress()


class ShownProgress(Progress):
    """Progress as a context manager. This base class shows nothing."""

    def __init__(self) -> None:
        super().__init__()
        self._outer: dict[str, BaseException | None] = {}

    def started(self, name: str, spark: Any) -> None:
        self._outer[name] = sys.exc_info()[1]

    def find_ending(self, name: str) -> Literal["done", "failed", "stopped"]:
        """How a stage ends: `failed` by an exception, `stopped` by one that is no error of the run.
        An exception that was already being handled when the stage began, as in a clean-up, does not
        count."""
        error = sys.exc_info()[1]
        if error is None or error is self._outer.get(name):
            return "done"
        return "stopped" if self.stops(error) else "failed"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        """Removes live lines from the screen."""


class LogProgress(ShownProgress):
    """Lines such as `12:00:01 scan: done in 3.2 s`."""

    def started(self, name: str, spark: Any) -> None:
        super().started(name, spark)
        self._line(f"{name}: started")

    def ended(self, name: str, seconds: float) -> None:
        how = self.find_ending(name)
        self._line(f"{name}: {how} {'in' if how == 'done' else 'after'} {seconds:.1f} s")

    def advanced(self, name: str, n_done: int, total: int, left: float) -> None:
        self._line(f"{name}: {_describe_part(n_done, total, left)}")

    def note(self, text: str) -> None:
        self._line(text)

    def waiting(self, what: str, most: float) -> None:
        self._line(_waiting(what, most))

    def _line(self, text: str) -> None:
        now = datetime.now().astimezone()
        sys.stderr.write(f"{now:%H:%M:%S} {text}\n")
        sys.stderr.flush()


class JsonProgress(ShownProgress):
    """One JSON object per line, with the run, the target and the stage."""

    def __init__(self) -> None:
        super().__init__()
        self._stages: list[str] = []  # the running stages, outermost first

    def started(self, name: str, spark: Any) -> None:
        super().started(name, spark)
        self._stages.append(name)
        self._write("started")

    def ended(self, name: str, seconds: float) -> None:
        self._write(self.find_ending(name), seconds=round(seconds, 3))
        self._stages.pop()

    def advanced(self, name: str, n_done: int, total: int, left: float) -> None:
        self._write("advanced", done=n_done, total=total, seconds_left=round(left))

    def note(self, text: str) -> None:
        self._write("note", text=text)

    def waiting(self, what: str, most: float) -> None:
        limit = {} if isinf(most) else {"seconds_at_most": round(most)}
        self._write("waiting", what=what, **limit)

    def waited(self, what: str) -> None:
        self._write("waited", what=what)

    def _write(self, event: str, **fields: Any) -> None:
        stage = {"stage": self._stages[-1]} if self._stages else {}
        write_json(event=event, **run_fields(self), **stage, **fields)


def run_fields(progress: Progress) -> dict[str, str]:
    """The id and the target of the run, as far as they are known."""
    fields = {"run_id": progress.run_id, "target": progress.target}
    return {name: value for name, value in fields.items() if value}


def _describe_part(n_done: int, total: int, left: float) -> str:
    minutes = round(left / 60)
    told = "less than a minute" if left < 60 else f"about {minutes // 60} h {minutes % 60} min"
    return f"{n_done:,} of {total:,}, {told.replace(' 0 h', '')} left"


def _waiting(what: str, most: float) -> str:
    if isinf(most):
        return f"waiting for {what}"
    limit = f"{most / 60:.0f} min" if most >= 120 else f"{most:.0f} s"
    return f"waiting for {what}, at most {limit}"


def write_json(**fields: Any) -> None:
    """Writes one event to stderr, as a line of JSON with the time."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    sys.stderr.write(json.dumps({"time": now, **fields}, ensure_ascii=False) + "\n")
    sys.stderr.flush()


class TerminalProgress(ShownProgress):
    """A live line per running stage, with Spark's count of its tasks, and a plain line per finished
    stage."""

    def __init__(self) -> None:
        super().__init__()
        from rich.console import Console
        from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Lines

        self._lines = Lines(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[tasks]}", markup=False),
            TimeElapsedColumn(),
            console=Console(stderr=True, highlight=False),
            transient=True,
            refresh_per_second=5,
        )
        self._running: list[tuple[str, TaskID, _Tasks | None]] = []
        self._waits: dict[str, TaskID] = {}
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._poller: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._lines.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._over.set()
        if self._poller is not None:
            self._poller.join(5.0)
        self._lines.stop()

    def started(self, name: str, spark: Any) -> None:
        super().started(name, spark)
        tasks = None if spark is None else _Tasks(spark, self.group(name))
        task = self._lines.add_task(name, total=None, tasks="")
        with self._lock:
            self._running.append((name, task, tasks))
        if tasks is not None and self._poller is None:
            self._poller = threading.Thread(target=self._poll, name="progress", daemon=True)
            self._poller.start()

    def ended(self, name: str, seconds: float) -> None:
        with self._lock:
            place = next(i for i, entry in enumerate(self._running) if entry[0] == name)
            _, task, tasks = self._running.pop(place)
        self._lines.remove_task(task)
        if tasks is not None:
            with suppress(Exception):
                tasks.look()
        mark, style = _MARKS[self.find_ending(name)]
        count = f"  {tasks.done:,} tasks" if tasks is not None and tasks.done else ""
        self._print(mark, style, f"{name:<24} {seconds:7.1f} s{count}")

    def advanced(self, name: str, n_done: int, total: int, left: float) -> None:
        with self._lock:
            place = next(i for i, entry in enumerate(self._running) if entry[0] == name)
            # The stage counts its own work: that replaces the count of Spark's tasks.
            _, task, _ = self._running[place]
            self._running[place] = (name, task, None)
        text = _describe_part(n_done, total, left)
        self._lines.update(task, completed=n_done, total=total, tasks=text)

    def note(self, text: str) -> None:
        self._print("·", "dim", text)

    def waiting(self, what: str, most: float) -> None:
        self._waits[what] = self._lines.add_task(_waiting(what, most), total=None, tasks="")

    def waited(self, what: str) -> None:
        self._lines.remove_task(self._waits.pop(what))

    def _print(self, mark: str, style: str, text: str) -> None:
        from rich.text import Text

        self._lines.console.print(Text.assemble((mark, style), " ", text))

    def _poll(self) -> None:
        while not self._over.wait(_POLL):
            with self._lock:
                running = [(task, tasks) for _, task, tasks in self._running if tasks is not None]
            for task, tasks in running:
                with suppress(Exception):  # the session may be stopping; the run reports that
                    tasks.look()
                    # One more than Spark knows of: the stage may start further jobs.
                    total = tasks.total + 1 if tasks.total else None
                    text = f"{tasks.done}/{tasks.total} tasks" if tasks.total else ""
                    self._lines.update(task, completed=tasks.done, total=total, tasks=text)


class _Tasks:
    """Counts Spark's tasks in the job group of a stage.

    Attributes:
        done: Completed tasks.
        total: All tasks of the Spark stages that have started.
    """

    def __init__(self, spark: Any, group: str):
        self.done = self.total = 0
        self._tracker = spark.sparkContext.statusTracker()
        self._group = group
        self._before = set(self._tracker.getJobIdsForGroup(self._group))

    def look(self) -> None:
        n_done = total = 0
        for job in set(self._tracker.getJobIdsForGroup(self._group)) - self._before:
            info = self._tracker.getJobInfo(job)
            for stage_id in info.stageIds if info else ():
                stage = self._tracker.getStageInfo(stage_id)
                # A stage that has not started may be skipped, since its result may exist already.
                if stage is not None and (stage.numActiveTasks or stage.numCompletedTasks):
                    n_done += stage.numCompletedTasks
                    total += stage.numTasks
        self.done, self.total = n_done, total

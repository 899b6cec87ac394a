"""Spark's tasks: their size, and what happens to them when Python is interrupted."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from typing import TypeVar

from pyspark import InheritableThread
from pyspark.sql import SparkSession

from anonlib.progress import Wait, wait_for

Result = TypeVar("Result")

#: Rows that a task of a shuffle should have.
ROWS_PER_TASK = 250_000
PATIENCE_SECONDS = 10.0


@contextmanager
def settle_tasks(spark: SparkSession) -> Iterator[None]:
    """If the body fails, waits until no task of this thread's job group runs. Only then can the
    files of these tasks be removed for good."""
    try:
        yield
    except BaseException:
        with suppress(Exception):
            try:
                _wait(spark)
            except KeyboardInterrupt:  # it may have been on its way already when the body failed
                _wait(spark)
                raise
        raise


def _wait(spark: SparkSession) -> None:
    tracker = spark.sparkContext.statusTracker()
    group = spark.sparkContext.getLocalProperty("spark.jobGroup.id")
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
    stages = [stage for job in jobs if job for stage in job.stageIds]

    def over() -> bool:
        found = [tracker.getStageInfo(stage) for stage in stages]
        return not any(stage.numActiveTasks for stage in found if stage)

    wait_for("the tasks of jobs that were cancelled", over, most=PATIENCE_SECONDS, every=0.1)


def run_uninterrupted(work: Callable[[], Result]) -> Result:
    """Does some work, such as a commit, and returns its result.

    An interruption, as in a notebook, waits for the end of the work. Else the JVM would go on with
    the commit, and nobody would know how it ended.
    """
    future: Future[Result] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # handed to the caller
            future.set_exception(error)

    InheritableThread(target=run).start()  # inherits the name of the stage for Spark's jobs
    stopped: BaseException | None = None
    with Wait("the commit to end, although the run was interrupted") as waiting:
        while not future.done():  # a `join` that was interrupted does not wait a second time
            try:
                wait([future])
            except BaseException as error:
                stopped = error
                waiting.show()
    if stopped is not None:
        raise stopped
    return future.result()

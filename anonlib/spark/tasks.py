"""Spark's tasks: their size, what they tell the driver, and what happens to them when Python is
interrupted."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager, nullcontext, suppress
from heapq import heapify, heapreplace
from math import ceil
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from pyspark import Accumulator, AccumulatorParam, InheritableThread
from pyspark.accumulators import _accumulatorRegistry
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from anonlib.arrays import Ints
from anonlib.progress import Wait, wait_for
from anonlib.spark.loan import hold_setting

Item = TypeVar("Item")
Result = TypeVar("Result")

#: Rows that a task of a shuffle should have.
ROWS_PER_TASK = 250_000
PATIENCE_SECONDS = 10.0
#: More bytes than a file has: a terabyte.
FILE_BYTES = str(2**40)


def count_cores(spark: SparkSession) -> int:
    """The tasks that run at the same time, as far as Spark knows now."""
    return int(spark.sparkContext.defaultParallelism)


def send_broadcast(spark: SparkSession, value: Any) -> Any:
    """Spark's broadcast of a value that pickle can write."""
    return spark.sparkContext.broadcast(value)


def run_each(
    spark: SparkSession, items: Sequence[Item], run: Callable[[Item], Result]
) -> list[Result]:
    """The results of a function for each item, one task each."""
    return list(spark.sparkContext.parallelize(items, len(items)).map(run).collect())


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
    the commit, and nobody would know how it ended. Before the work begins an interruption stops it.
    """
    may_begin: Future[bool] = Future()
    future: Future[Result] = Future()

    def run() -> None:
        if not may_begin.result():
            return
        try:
            future.set_result(work())
        except BaseException as error:  # handed to the caller
            future.set_exception(error)

    stopped: BaseException | None = None
    over = False
    try:
        # It inherits the name of the stage for Spark's jobs.
        InheritableThread(target=run).start()
        with Wait("the commit to end, although the run was interrupted") as waiting:
            # All is inside the `try`: an interruption may come anywhere, and more than one.
            while not over:
                try:
                    if not may_begin.done():
                        may_begin.set_result(True)
                    if stopped is not None:
                        waiting.show()
                    over = bool(wait([future]).done)
                except BaseException as error:
                    stopped = error
    finally:
        if not may_begin.done():
            may_begin.set_result(False)
    if stopped is not None:
        raise stopped
    return future.result()


class _Lists(AccumulatorParam[list[Any]]):
    """Lists that are joined."""

    def zero(self, value: list[Any]) -> list[Any]:
        return []

    def addInPlace(self, value1: list[Any], value2: list[Any]) -> list[Any]:
        value1.extend(value2)
        return value1


@contextmanager
def hear_tasks(spark: SparkSession) -> Iterator["Accumulator[list[Any]]"]:
    """Makes a list that tasks of jobs in the body add to, by `add([item])`.

    What a task adds is there once its job is over, and there once, however often Spark tried the
    task. That holds for tasks that end in a result or a file, not for those before a shuffle.
    """
    heard: Accumulator[list[Any]] = spark.sparkContext.accumulator([], _Lists())
    yield heard
    # pyspark would keep it. After a failure it must, since tasks that still run may add to it.
    _accumulatorRegistry.pop(heard.aid, None)


@contextmanager
def fit_shuffles(spark: SparkSession, n_rows: int) -> Iterator[None]:
    """Shuffles in the body have at least a task for each ROWS_PER_TASK rows of a table. Spark's
    default is 200 tasks for tables of any size; adaptive execution joins tasks that are too small.
    """
    key = "spark.sql.shuffle.partitions"
    before, wanted = spark.conf.get(key) or "", ceil(n_rows / ROWS_PER_TASK)
    fits = not before.isdecimal() or int(before) >= wanted  # some platforms have the word `auto`
    with nullcontext() if fits else hold_setting(spark.conf, key, str(wanted)):
        yield


@contextmanager
def fit_batches(spark: SparkSession, row_bytes: int | None) -> Iterator[None]:
    """Batches for Python in the body are not measured if none can reach the limit of their bytes:
    Spark would measure a batch again after each of its rows, which costs as much as to fill it.

    row_bytes: The most bytes of a row; None if they are not known.
    """
    key = "spark.sql.execution.arrow.maxBytesPerBatch"
    limit = (_read_setting(spark, key) or "").removesuffix("b")
    records = _read_setting(spark, "spark.sql.execution.arrow.maxRecordsPerBatch") or ""
    known = row_bytes is not None and limit.isdecimal() and records.isdecimal()
    fits = known and 0 < int(records) * (row_bytes or 0) < int(limit)
    with hold_setting(spark.conf, key, str(2**31 - 1)) if fits else nullcontext():
        yield


def _read_setting(spark: SparkSession, key: str) -> str | None:
    """A setting, or Spark's default for it; None in a Spark that has no such setting. Asked with a
    default, Spark would not tell its own."""
    try:
        return spark.conf.get(key)
    except PySparkException:
        return None


@contextmanager
def give_each_file_a_task(spark: SparkSession) -> Iterator[None]:
    """Tasks in the body read one file each: no file is cut, and none are joined, unless they are of
    more than a terabyte, or `spark.sql.files.maxPartitionNum` allows fewer tasks."""
    most, cost = (f"spark.sql.files.{name}" for name in ("maxPartitionBytes", "openCostInBytes"))
    with hold_setting(spark.conf, most, FILE_BYTES), hold_setting(spark.conf, cost, FILE_BYTES):
        yield


def deal_out(sizes: Ints, n_tasks: int) -> Ints:
    """int64[b]. The task of each of b things with these sizes: the largest first, each to the task
    that has least. No task has more than 4/3 of what the best deal gives the fullest one.

    Reference: R. L. Graham, Bounds on multiprocessing timing anomalies, SIAM J. Appl. Math., 1969.
    """
    task = np.zeros(len(sizes), np.int64)
    load = [(0, i) for i in range(n_tasks)]
    heapify(load)
    for place in np.argsort(-sizes, kind="stable").tolist():
        total, least = load[0]
        task[place] = least
        heapreplace(load, (total + int(sizes[place]), least))
    return task


def find_task_keys(n_tasks: int) -> Ints:
    """int64[n_tasks]. By task of a shuffle: an integer that Spark sends to it by its hash. (Spark
    4.1 could be told the task itself, 4.0 can't.)"""
    keys = np.full(n_tasks, -1, np.int64)
    start, step = 0, 16 * n_tasks
    while (keys < 0).any():
        tried = np.arange(start, start + step)
        task, first = np.unique(_murmur(tried.astype(np.uint32)) % n_tasks, return_index=True)
        new = keys[task] < 0
        keys[task[new]] = tried[first[new]]
        start += step
    return keys


def _murmur(values: npt.NDArray[np.uint32]) -> Ints:
    """int64[n]. Spark's `hash` of 32-bit integers: Murmur3, x86, 32 bits, seed 42."""
    with np.errstate(over="ignore"):
        k = values * np.uint32(0xCC9E2D51)
        k = (k << np.uint32(15)) | (k >> np.uint32(17))
        h = np.uint32(42) ^ (k * np.uint32(0x1B873593))
        h = (h << np.uint32(13)) | (h >> np.uint32(19))
        h = h * np.uint32(5) + np.uint32(0xE6546B64)
        h ^= np.uint32(4)
        h = (h ^ (h >> np.uint32(16))) * np.uint32(0x85EBCA6B)
        h = (h ^ (h >> np.uint32(13))) * np.uint32(0xC2B2AE35)
        h ^= h >> np.uint32(16)
    return h.view(np.int32).astype(np.int64)

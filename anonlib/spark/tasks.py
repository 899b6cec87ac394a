"""Tasks of jobs that failed or were cancelled: some of them write on for a moment."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from pyspark.sql import SparkSession

PATIENCE_SECONDS = 10.0


@contextmanager
def settled(spark: SparkSession) -> Iterator[None]:
    """When the body fails, waits until no task of this thread's job group runs, so that what they
    wrote can be removed for good."""
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
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        found = [tracker.getStageInfo(stage) for stage in stages]
        if not any(stage.numActiveTasks for stage in found if stage):
            return
        time.sleep(0.1)

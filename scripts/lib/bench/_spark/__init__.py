"""Stages and tasks of a benchmark, from Spark's own status store."""

from collections.abc import Iterator
from typing import Any


def next_stage(spark: Any) -> int:
    """The id that the next stage will get."""
    return int(spark.sparkContext._jsc.sc().dagScheduler().nextStageId())


def stages_since(spark: Any, first: int) -> Iterator[Any]:
    """Every stage (the JVM's StageData) from id `first` on."""
    store = spark.sparkContext._jsc.sc().statusStore()
    none = spark.sparkContext._gateway.new_array(spark._jvm.double, 0)
    stages = store.stageList(None, False, False, none, spark._jvm.java.util.ArrayList())
    for i in range(stages.size()):
        if stages.apply(i).stageId() >= first:
            yield stages.apply(i)


def task_seconds(spark: Any, stage: Any, of: str = "executorRunTime") -> list[float]:
    """Seconds that each task of a stage ran, or another of Spark's metrics in milliseconds."""
    store = spark.sparkContext._jsc.sc().statusStore()
    tasks = store.taskList(stage.stageId(), stage.attemptId(), 100_000)
    each = [tasks.apply(t).taskMetrics() for t in range(tasks.size())]
    return [getattr(m.get(), of)() / 1000 for m in each if m.isDefined()]

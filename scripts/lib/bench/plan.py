"""A plan of many leaves: how long a task takes to read it, and the driver to write it, against a
query of the same tasks without a plan.

    scripts/bench plan [--leaves 10000 60000] [--features 8] [--tasks 16]
"""

import argparse
import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa
from _spark import next_stage, stages_since, task_seconds
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anonlib.partition.cuts import Cuts
from anonlib.run.leaves import LEAF, CutFeature, with_leaf
from anonlib.spark.session import session
from anonlib.table.schema import Column, Role, Schema

ROWS = 100_000


def halve(n_leaves: int, n_features: int) -> Cuts:
    """Planes in random directions, in a tree whose leaves are as deep as can be the same."""
    random = np.random.default_rng(0)
    n = n_leaves - 1
    below = np.arange(1, 2 * n + 1)  # the children of node j are 2 j + 1 and 2 j + 2
    child = np.where(below < n, below, n - 1 - below).astype(np.int32)
    return Cuts(
        random.normal(size=(n, n_features)).astype(np.float32),
        random.normal(size=n).astype(np.float32) / 4,
        child[::2],
        child[1::2],
        np.zeros(1, np.int32) if n else np.full(1, -1, np.int32),
    )


def measure(spark: SparkSession, make: Callable[[], DataFrame]) -> tuple[float, float, float]:
    """Seconds of the driver until a query runs, of the whole query, and of a task until it has read
    what it has to do; the median of all tasks. The first of two queries warms up."""
    for _ in range(2):
        began, first = time.monotonic(), next_stage(spark)
        frame = make()
        frame._jdf.queryExecution().executedPlan()
        planned = time.monotonic() - began
        frame.collect()
        whole = time.monotonic() - began
    stages = stages_since(spark, first)
    seconds = [s for stage in stages for s in task_seconds(spark, stage, "executorDeserializeTime")]
    return planned, whole, float(np.median(seconds))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--leaves", type=int, nargs="+", default=[10_000, 60_000])
    parser.add_argument("--features", type=int, default=8)
    parser.add_argument("--tasks", type=int, default=16)
    given = parser.parse_args()
    spark = session({"spark.driver.memory": "2g", "spark.master": "local[2]"})
    names = [f"c{i}" for i in range(given.features)]
    schema = Schema(
        tuple(Column(n, n, Role.QUASI_IDENTIFIER, pa.float64(), "double") for n in names)
    )
    features = tuple(CutFeature(name, "number", 0.5, 0.3) for name in names)
    drawn = [F.pmod(F.xxhash64(F.lit(n), "id"), F.lit(10_000)) / 10_000 for n in names]

    def rows() -> DataFrame:
        table = spark.range(0, ROWS, 1, given.tasks)
        return table.select(*[value.alias(name) for value, name in zip(drawn, names, strict=True)])

    for n_leaves in (1, *given.leaves):
        cuts = halve(n_leaves, given.features)

        def make(cuts: Cuts = cuts) -> DataFrame:
            return with_leaf(rows(), schema, features, cuts, F.lit(0)).agg(F.max(LEAF))

        planned, whole, read = measure(spark, make)
        print(
            f"{n_leaves:>7,} leaves  driver {planned:6.2f} s  query {whole:6.2f} s  a task reads "
            f"its plan in {read:.3f} s",
            flush=True,
        )
    spark.stop()


if __name__ == "__main__":
    main()

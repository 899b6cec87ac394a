"""Skewed tables: the time per row, and the load of tasks: the longest task of the stage that
anonymizes, over the mean task. No row may be lost.

    scripts/bench skew [--rows 2000000] [--cases plain tuple controllers zips] [--kernel mdav]
"""

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

from _spark import next_stage, stages_since, task_seconds
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

import anonlib
from anonlib.spark.session import session

QUASI = ("age", "hours", "zip", "sex")
WARM_UP = 50_000


def people(spark: Any, rows: int) -> DataFrame:
    """Numbers by hash, so that the table is the same in every run."""

    def draw(name: str, n: int) -> Column:
        return F.pmod(F.xxhash64(F.lit(name), "id"), F.lit(n))

    return spark.range(rows).select(
        "id",
        (F.lit(18) + draw("age", 70)).cast("int").alias("age"),
        ((draw("h1", 40) + draw("h2", 40)) / 2).alias("hours"),
        F.concat(F.lit("z"), draw("zip", 200).cast("string")).alias("zip"),
        draw("sex", 2).cast("string").alias("sex"),
        F.concat(F.lit("d"), draw("diagnosis", 12).cast("string")).alias("diagnosis"),
        draw("label", 3).cast("string").alias("label"),
        F.lit("one").alias("owner"),
    )


def repeated(frame: DataFrame) -> DataFrame:
    """One tuple in 30 % of the rows."""
    heavy = F.pmod(F.xxhash64(F.lit("heavy"), "id"), F.lit(10)) < 3
    values = {"age": F.lit(40), "hours": F.lit(20.0), "zip": F.lit("z1"), "sex": F.lit("1")}
    return frame.withColumns({n: F.when(heavy, v).otherwise(F.col(n)) for n, v in values.items()})


def controllers(frame: DataFrame) -> DataFrame:
    """One controller with nine tenths of the rows, and thousands of 50 rows."""
    tiny = F.concat(F.lit("c"), F.floor(F.col("id") / 500).cast("string"))
    return frame.withColumn("owner", F.when(F.pmod("id", F.lit(10)) == 0, tiny).otherwise("huge"))


def tiny(frame: DataFrame) -> DataFrame:
    """A controller for every 6 rows."""
    return frame.withColumn("owner", F.concat(F.lit("c"), F.floor(F.col("id") / 6).cast("string")))


def zips(frame: DataFrame) -> DataFrame:
    """100,000 distinct zip codes."""
    code = F.pmod(F.xxhash64(F.lit("code"), "id"), F.lit(100_000))
    return frame.withColumn("zip", F.concat(F.lit("z"), code.cast("string")))


def constant(frame: DataFrame) -> DataFrame:
    """A target of one class."""
    return frame.withColumn("label", F.lit("0"))


def rare(frame: DataFrame) -> DataFrame:
    """A target with a class of 5 rows."""
    return frame.withColumn("label", F.when(F.col("id") < 5, F.lit("rare")).otherwise("label"))


CONTROLLER = {"type": "controller", "column": "owner"}
#: Case -> what it does to the table, and the steps that it is tried with.
CASES: dict[str, tuple[Any, list[dict[str, Any]]]] = {
    "plain": (lambda frame: frame, [{"type": "kmeans"}]),
    "tuple": (repeated, [{"type": "kmeans"}]),
    "controllers": (controllers, [CONTROLLER, {"type": "kmeans"}]),
    "tiny": (tiny, [CONTROLLER]),
    "zips": (zips, [{"type": "mondrian"}]),
    "constant": (constant, [{"type": "target_tree"}]),
    "rare": (rare, [{"type": "target_tree"}]),
}


def models(steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """k = 10 and l = 2, or what 6 rows can hold."""
    if steps == [CONTROLLER]:
        return [{"type": "k_anonymity", "k": 3}]
    return [{"type": "k_anonymity", "k": 10}, {"type": "l_diversity", "l": 2}]


def config(source: Path, target: Path, steps: list[dict[str, Any]], kernel: str) -> dict[str, Any]:
    continuous = {"role": "quasi_identifier", "scale": "continuous"}
    nominal = {"role": "quasi_identifier", "scale": "nominal"}
    return {
        "source": {"format": "parquet", "path": str(source)},
        "attributes": {
            "id": {"role": "drop"},
            **dict.fromkeys(["age", "hours"], continuous),
            **dict.fromkeys(["zip", "sex"], nominal),
            "diagnosis": {"role": "sensitive"},
            "label": {"role": "target", "public": True},
            "owner": {"role": "drop"},
        },
        "one_row_per_person": True,
        "privacy": {"models": models(steps)},
        "partition": {"steps": steps, "max_rows": 10_000},
        "kernel": kernel,
        "max_categories": 200_000,
        "release": {"path": str(target), "record": str(target.parent / "records")},
    }


def heaviest_stage(spark: Any, first: int) -> list[float]:
    """Seconds of each task of the stage with the most task time, of the stages from `first` on."""
    return max((task_seconds(spark, stage) for stage in stages_since(spark, first)), key=sum)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("--kernel", default="mdav")
    given = parser.parse_args()
    spark = session({"spark.driver.memory": "2g", "spark.master": "local[2]"})
    with tempfile.TemporaryDirectory(prefix="anonlib-bench-") as name:
        # Workers that start and compile in the first case would be its longest tasks.
        for rows, case in [(WARM_UP, "constant"), *[(given.rows, case) for case in given.cases]]:
            change, steps = CASES[case]
            source = Path(name) / f"{case}-{rows}"
            change(people(spark, rows)).write.parquet(str(source))
            made = config(source, Path(name) / f"{case}-{rows}-out", steps, given.kernel)
            made["spark"] = {"partitions": 16}
            first, begun = next_stage(spark), time.monotonic()
            result = anonlib.release(anonlib.parse(made))
            seconds = time.monotonic() - begun
            if rows == WARM_UP:
                continue
            tasks = heaviest_stage(spark, first)
            mean = sum(tasks) / len(tasks)
            print(
                f"{case:12} {' > '.join(step['type'] for step in steps):22} "
                f"{1e6 * seconds / rows:6.2f} us/row  {len(tasks)} tasks of {sum(tasks):.0f} s  "
                f"longest {max(tasks) / mean:.2f} x mean  blocks {result.n_blocks:,}  "
                f"rows in {result.n_rows_in:,} = out {result.n_rows_out:,} + suppressed "
                f"{result.n_suppressed:,}  ncp {result.losses['ncp']:.4f}",
                flush=True,
            )
    spark.stop()


if __name__ == "__main__":
    main()

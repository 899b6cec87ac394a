"""The table of figures: what each run measured."""

import datetime
from collections.abc import Iterator, Mapping

from pyspark.sql import SparkSession
from pyspark.sql import types as T

from anonlib.measure import Figure
from anonlib.run.account import spell_path
from anonlib.run.result import ReleaseResult
from anonlib.spark.private_table import PrivateTable

#: The table of figures: a row for each figure of each run.
FIGURE_COLUMNS = T.StructType(
    [
        T.StructField("run_id", T.StringType()),
        T.StructField("time", T.TimestampType()),
        T.StructField("outcome", T.StringType()),  # published, stopped, evaluated
        T.StructField("measure", T.StringType()),
        T.StructField("figure", T.StringType()),
        T.StructField("of", T.StringType()),
        T.StructField("value", T.DoubleType()),
        T.StructField("note", T.StringType()),
        # Which is enough to group by; all else of a run is in the table of runs.
        T.StructField("target", T.StringType()),
        T.StructField("version", T.LongType()),
        T.StructField("config_sha256", T.StringType()),
    ]
)


def open_figure_table(spark: SparkSession, path: str) -> PrivateTable:
    """The table with the figures of all runs."""
    return PrivateTable(spark, path, "evaluate.metrics")


def write_metrics(
    spark: SparkSession, path: str, config_sha256: str, result: ReleaseResult
) -> None:
    """Appends the figures of a run to the table of figures at `path`."""
    if result.evaluation is None:
        return
    now = datetime.datetime.now(datetime.UTC)
    figures = (*_as_figures(result.losses), *result.evaluation.figures())
    version = result.table_version if result.table_version >= 0 else None
    run = (spell_path(result.table), version, config_sha256)
    rows = [
        (result.run_id, now, result.outcome, measure, f.name, f.of, f.value, f.note, *run)
        for measure, f in figures
    ]
    open_figure_table(spark, path).append(rows, FIGURE_COLUMNS)


def _as_figures(losses: Mapping[str, float | None]) -> Iterator[tuple[str, Figure]]:
    for name, value in losses.items():
        yield "loss", Figure(name, value)

"""The config's `source.where`: which rows of the source are read."""

from pyspark.sql import DataFrame

from anonlib.errors import ConfigError, Problem
from anonlib.spark.expressions import explain_blame, find_fallible, reads_floats, require_plain
from anonlib.spark.loan import change_setting
from anonlib.spark.translation import translate_errors

#: Whether readers of Parquet, and so of Delta, leave out groups of rows by a condition. They take
#: 0.0 and -0.0 for two numbers, and know no NaN, so that rows which fulfil it can be lost.
PUSHDOWN = "spark.sql.parquet.filterPushdown"


def filter_rows(frame: DataFrame, condition: str | None) -> DataFrame:
    """The rows for which the config's `source.where` is true; all rows without a condition.

    Raises ConfigError if the condition is not SQL, is neither true nor false, or needs more than
    the columns of one row.
    """
    if not condition:
        return frame
    with translate_errors("source.where"):
        expression = require_plain(frame, condition, "source.where")
        if fallible := find_fallible(expression, condition, frame.sparkSession):
            raise ConfigError(
                [
                    Problem(
                        "source.where",
                        "would show values that can't be read in Spark's event log and UI; use the "
                        f"try_ form of {', '.join(sorted(fallible))}",
                    )
                ]
            )
        if reads_floats(expression):
            change_setting(frame.sparkSession.conf, PUSHDOWN, "false")
        with explain_blame("source.where", frame.columns):
            return frame.where(condition)

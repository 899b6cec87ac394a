"""The config's `source.where`: which rows of the source are read."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame

from anonlib.config.model import RESERVED_PREFIX
from anonlib.errors import ConfigError, Problem, did_you_mean
from anonlib.spark.expressions import find_fallible, require_plain
from anonlib.spark.translation import translate_errors


def filter_rows(frame: DataFrame, condition: str | None) -> DataFrame:
    """The rows for which the config's `source.where` is true; all rows without a condition.

    Raises ConfigError if the condition needs more than the columns of one row, InputError if it is
    not SQL.
    """
    if not condition:
        return frame
    with translate_errors("source.where"), _explain_columns(frame.columns):
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
        return frame.where(condition)


@contextmanager
def _explain_columns(names: Sequence[str]) -> Iterator[None]:
    """Says which columns there are if the condition names another one. That is named only if it is
    nearly the name of one: else it may be a text without quotes, a value."""
    try:
        yield
    except AnalysisException as error:
        if not (error.getCondition() or "").startswith("UNRESOLVED_COLUMN"):
            raise
        parameters = error.getMessageParameters() or {}
        name = parameters.get("objectName", "").replace("`", "")
    else:
        return
    own = [each for each in names if not each.startswith(RESERVED_PREFIX)]
    near = did_you_mean(name, own)
    what = f"no column {name}{near}" if near else "an unknown column; texts need single quotes;"
    raise ConfigError([Problem("source.where", f"{what} there are: {', '.join(own)}")])

"""Values as Spark expressions, in the forms that scans and plans compare them in."""

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F

from anonlib.audit.canonical import folded, present
from anonlib.spark.types import spark_type

#: How whole numbers, numbers, dates and times look in text: casts alone take too much ("1d" is a
#: double to Spark, and a time a date).
WHOLE_TEXT = r"^[+-]?(0|[1-9][0-9]{0,17})$"
DECIMAL_TEXT = r"^[+-]?(0|[1-9][0-9]*|(?=\.))(\.[0-9]*)?([eE][+-]?[0-9]{1,3})?$"
DATE_TEXT = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
TIME_TEXT = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?(Z|[+-][0-9:]+)?$"
)


def number(value: Column, type: pa.DataType) -> Column:
    """A continuous value as a double: dates in days, timestamps in microseconds since 1970."""
    if pa.types.is_date(type):
        return F.unix_date(value).cast("double")
    if pa.types.is_timestamp(type):
        if type.tz is None:
            value = value.cast("timestamp")  # the session's zone is UTC: the same clock reading
        return F.unix_micros(value).cast("double")
    return value.cast("double")


def canonical(value: Column, type: pa.DataType, missing_tokens: Sequence[str]) -> Column:
    """A protected value as the audit compares it: null where missing (null, NaN, a token), text
    trimmed and case-folded."""
    its = spark_type(type)
    return present(folded(value, its), its, missing_tokens)

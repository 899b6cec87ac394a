"""Spark expressions that several modules need: values in the forms that scans and plans compare,
types of Arrow on every version of Spark, look-ups in small tables, and the hash of a row."""

from collections.abc import Iterable, Mapping, Sequence
from inspect import signature
from math import ceil, log2
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema, from_arrow_type, to_arrow_schema
from pyspark.sql.types import DataType, StructField, StructType

from anonlib.arrays import Ints
from anonlib.auditing.canonical import fold_value, present
from anonlib.partition.cuts import Singles

#: How whole numbers, numbers, dates and times look in text: casts alone take too much ("1d" is a
#: double to Spark, and a time a date).
WHOLE_TEXT = r"^[+-]?(0|[1-9][0-9]{0,17})$"

DECIMAL_TEXT = r"^[+-]?(0|[1-9][0-9]*|(?=\.))(\.[0-9]*)?([eE][+-]?[0-9]{1,3})?$"

DATE_TEXT = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"

TIME_TEXT = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?(Z|[+-][0-9:]+)?$"
)


def as_double(value: Column, type: pa.DataType) -> Column:
    """A continuous value as a double: dates in days, timestamps in microseconds since 1970."""
    if pa.types.is_date(type):
        return F.unix_date(value).cast("double")
    if pa.types.is_timestamp(type):
        if type.tz is None:
            value = value.cast("timestamp")  # the session's zone is UTC: the same clock reading
        return F.unix_micros(value).cast("double")
    return value.cast("double")


def canonical(value: Column, type: pa.DataType, missing_tokens: Sequence[str]) -> Column:
    """A protected value as the audit compares it: null where missing (null, NaN, a token), text as
    people see it.

    For text, Spark takes it for nondeterministic: project it before it is grouped or aggregated.
    """
    its = spark_type(type)
    return present(fold_value(value, its), its, missing_tokens)


def canonical_columns(
    types: Mapping[str, pa.DataType], missing_tokens: Sequence[str]
) -> dict[str, Column]:
    """The canonical values of columns, by id, for a projection."""
    return {id: canonical(F.col(id), type, missing_tokens) for id, type in types.items()}


#: Before 4.2 times with a zone are in UTC unless asked otherwise, from then on only if asked.
_UTC: dict[str, Any] = (
    {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}
)


def arrow_type(field: StructField) -> pa.DataType:
    """The Arrow type of a column. Raises an error of Spark's where there is none."""
    return to_arrow_schema(StructType([field]), **_UTC).field(0).type


def spark_type(type: pa.DataType) -> DataType:
    """The Spark type of an Arrow type; times without a zone stay such."""
    return from_arrow_type(type, prefer_timestamp_ntz=True)


def spark_schema(schema: pa.Schema) -> StructType:
    """The Spark schema of an Arrow schema, by `spark_type`."""
    return from_arrow_schema(schema, prefer_timestamp_ntz=True)


#: Longer lists are looked up by buckets of their hashes.
LONGEST = 32


def matrix(values: Singles) -> Column:
    """An array of rows of floats as one folded literal: nine digits say a float exactly."""
    text = ",".join("[" + ",".join(f"{v:.9g}" for v in row) + "]" for row in values.tolist())
    return F.from_json(F.lit(f"[{text}]"), "array<array<float>>")


def at(values: Ints, place: Column) -> Column:
    """The value at a place of an array, which is one folded literal."""
    return F.get(_array(values.tolist(), "int"), place)


def look_up(key: Column, hashes: Sequence[int], values: Iterable[int], default: int) -> Column:
    """The value that goes with a key, a hash, `default` where it is not among `hashes`."""
    found = list(zip(hashes, values, strict=True))
    if len(found) <= LONGEST:
        if not found:
            return F.lit(default)
        place = F.array_position(_array([h for h, _ in found], "bigint"), key)
        return F.get(_array([default, *[v for _, v in found]], "int"), place.cast("int"))
    n_buckets = 2 ** ceil(log2(len(found)))
    keys: list[list[int]] = [[] for _ in range(n_buckets)]
    results = [[default] for _ in range(n_buckets)]
    for h, v in found:
        keys[h % n_buckets].append(h)
        results[h % n_buckets].append(v)
    bucket = F.pmod(key, F.lit(n_buckets)).cast("int")
    place = F.array_position(F.get(_nested(keys, "bigint"), bucket), key)
    return F.get(F.get(_nested(results, "int"), bucket), place.cast("int"))


def _array(values: Sequence[int], type: str) -> Column:
    return F.split(F.lit(",".join(map(str, values))), ",").cast(f"array<{type}>")


def _nested(values: Sequence[Sequence[int]], type: str) -> Column:
    text = ",".join("[" + ",".join(map(str, row)) + "]" for row in values)
    return F.from_json(F.lit(f"[{text}]"), f"array<array<{type}>>")


def row_hash(frame: DataFrame) -> Column:
    """xxhash64 of all columns, whatever their names, nulls told apart from absent values."""
    columns = [
        F.to_json(F.struct(F.col(f.name).alias("value"))) if _has_map(f) else F.col(f.name)
        for f in frame.schema.fields
    ]
    nulls = [F.col(f.name).isNull() for f in frame.schema.fields]
    return F.xxhash64(*nulls, *columns)


def _has_map(field: StructField) -> bool:
    return "map<" in field.dataType.simpleString() or "variant" in field.dataType.simpleString()

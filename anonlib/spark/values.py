"""Spark expressions for several modules: values in the form that scans and plans compare, Arrow
types on every version of Spark, and the hash of a row."""

import re
from collections.abc import Mapping, Sequence
from inspect import signature
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema, from_arrow_type, to_arrow_schema
from pyspark.sql.types import ArrayType, DataType, StringType, StructField, StructType

from anonlib.auditing.canonical import clear_missing, fold_value
from anonlib.table.schema import Field

#: More than the partitions of any table.
MANY_PARTITIONS = 2**31 - 1
#: A text that few lists contain, since Unicode gives this sign to nobody. Lists with it take longer
#: to hash.
RARE_TEXT = "\uffff"


def as_double(value: Column, type: pa.DataType) -> Column:
    """A continuous value as a double. Dates are days, timestamps microseconds since 1970."""
    if pa.types.is_date(type):
        return F.unix_date(value).cast("double")
    if pa.types.is_timestamp(type):
        if type.tz is None:
            value = value.cast("timestamp")  # the session's zone is UTC: the same clock reading
        return F.unix_micros(value).cast("double")
    return value.cast("double")


def make_canonical(value: Column, type: pa.DataType, missing_tokens: Sequence[str]) -> Column:
    """A protected value in the form that the audit compares.

    Missing values (null, NaN, tokens) are null. Text is as people see it. Spark treats that as
    nondeterministic: project the column before it is grouped or aggregated.
    """
    its = find_spark_type(type)
    return clear_missing(fold_value(value, its), its, missing_tokens)


def make_canonical_columns(
    types: Mapping[str, pa.DataType], missing_tokens: Sequence[str]
) -> dict[str, Column]:
    """The canonical values of columns, by id, for a projection."""
    return {id: make_canonical(F.col(id), type, missing_tokens) for id, type in types.items()}


def compute_once(frame: DataFrame) -> DataFrame:
    """The same rows. What is built on them takes their values as they are: else Spark writes the
    expression of a value into each place that uses it, and computes it there again."""
    return frame.coalesce(MANY_PARTITIONS)


def count_units(unit: Sequence[str]) -> Column:
    """Counts the persons of a group of rows, by the columns of a unit; without them its rows."""
    return F.count_distinct(*unit) if unit else F.count("*")


#: Before Spark 4.2, times with a zone are in UTC by default. Since then only with this argument.
_UTC: dict[str, Any] = (
    {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}
)


def find_arrow_type(field: StructField) -> pa.DataType:
    """The Arrow type of a column. Spark raises its own error if there is none."""
    return to_arrow_schema(StructType([field]), **_UTC).field(0).type


def read_field(name: str, field: StructField) -> Field:
    """A column of this name, as configs are compared with it."""
    text = field.dataType.simpleString()
    try:
        arrow = find_arrow_type(field)
    except (PySparkException, ValueError):  # ValueError: a list of nothing but null
        arrow = None
    return Field(name, text, arrow)


def find_spark_type(type: pa.DataType) -> DataType:
    """The Spark type of an Arrow type. Times without a zone stay without one."""
    return from_arrow_type(type, prefer_timestamp_ntz=True)


def find_spark_schema(schema: pa.Schema) -> StructType:
    """The Spark schema of an Arrow schema, by `find_spark_type`."""
    return from_arrow_schema(schema, prefer_timestamp_ntz=True)


def hash_row(frame: DataFrame) -> Column:
    """xxhash64 of all columns. Their names don't matter, and nulls differ from absent values."""
    nulls = [F.col(f.name).isNull() for f in frame.schema.fields]
    return F.xxhash64(*nulls, *[make_hashable(f) for f in frame.schema.fields])


def make_hashable(field: StructField, *, collated: bool = True) -> Column:
    """A column as Spark can hash it so that different values differ: maps and variants as JSON,
    lists and structs with their lengths and null flags.

    Args:
        field: The column.
        collated: Whether text is hashed by its collation, else by its bytes.
    """
    column, type = F.col(field.name), field.dataType.simpleString()
    if _needs_json(field.dataType):
        return F.to_json(F.struct(column.alias("value")))
    plain = type if collated else re.sub(r" collate \w+", "", type)
    return _spell(column if plain == type else column.cast(plain), field.dataType)


def _needs_json(type: DataType) -> bool:
    """Whether a type has maps, variants, or names that Spark can't tell apart."""
    if isinstance(type, ArrayType):
        return _needs_json(type.elementType)
    if isinstance(type, StructType):
        names = {name.lower() for name in type.names}
        return len(names) < len(type) or any(_needs_json(field.dataType) for field in type)
    return type.typeName() in ("map", "variant")


def _flag_elements(column: Column, type: DataType) -> Column:
    """A list of structs: whether an element is null, and the element."""
    return F.transform(column, lambda each: F.struct(each.isNull(), _spell(each, type)))


def _spell(column: Column, type: DataType) -> Column:
    """A value with what Spark's hash leaves out: it chains the elements of a list without their
    number, and skips nulls. `hash_rows` adds the same."""
    if isinstance(type, ArrayType):
        size = F.array_size(column)
        flagged = _flag_elements(column, type.elementType)
        if type.elementType != StringType():
            return F.struct(size, flagged)
        # A function of each element is slow, and lists without null, which most are, need none. Of
        # such a list it is false that it contains a text; of one with a null it is true or null.
        # One of the two forms is null, and the hash skips it.
        full = F.coalesce(~F.array_contains(column, F.lit(RARE_TEXT)), F.lit(False))
        plain = F.arrays_zip(F.array_repeat(F.lit(False), size), column)
        return F.struct(size, F.when(full, plain), F.when(~full, flagged))
    if isinstance(type, StructType) and type.fields:
        parts = [(column.getField(field.name), field.dataType) for field in type]
        return F.struct(*[c for part, its in parts for c in (part.isNull(), _spell(part, its))])
    return column

"""Types of Spark and of Arrow, the same on every version of Spark."""

from inspect import signature
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema, from_arrow_type, to_arrow_schema
from pyspark.sql.types import DataType, StructField, StructType

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

"""The places of published rows in their files."""

from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anonlib.spark.values import find_spark_type, hash_row


def find_first_places(released: DataFrame, types: dict[str, pa.DataType], most: int) -> pa.Table:
    """The places of distinct rows. Cost: one aggregate.

    Args:
        released: The published rows, with columns named by id.
        types: The type of each column, by id.
        most: Most distinct rows. The rows with the smallest hashes are taken.

    Returns:
        `file`, `start` and `offset` of the first of equal rows, and for each column a number or a
        text that values can be ranked by.
    """
    place = F.struct(
        F.col("_metadata.file_name").alias("file"),
        F.col("_metadata.file_block_start").alias("start"),
        F.monotonically_increasing_id().alias("offset"),
    )
    released = released.select(
        place.alias("place"),
        hash_row(released.select(*types)).alias("row"),
        *[_leading(F.col(id), find_spark_type(type)).alias(id) for id, type in types.items()],
    )
    distinct = released.groupBy("row").agg(
        F.min("place").alias("place"), *[F.first(id).alias(id) for id in types]
    )
    return distinct.orderBy("row").limit(most).select("place.*", *types).toArrow()


def _leading(column: Column, type: Any) -> Column:
    """A number or a text that values can be ranked by."""
    if isinstance(type, T.StructType) and type.fields:
        return _leading(column.getField(type.names[0]), type.fields[0].dataType)
    if isinstance(type, T.ArrayType):
        return _leading(F.get(column, F.lit(0)), type.elementType)
    return column.cast("double" if isinstance(type, T.NumericType) else "string")

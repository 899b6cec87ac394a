"""Where published rows stand in their files."""

from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anonlib.spark.values import row_hash, spark_type


def first_places(released: DataFrame, types: dict[str, pa.DataType], most: int) -> pa.Table:
    """`file`, `start` and `offset` of the first of equal rows, and what each column is ranked by:
    of the `most` distinct rows with the smallest hashes. Cost: one aggregate."""
    place = F.struct(
        F.col("_metadata.file_name").alias("file"),
        F.col("_metadata.file_block_start").alias("start"),
        F.monotonically_increasing_id().alias("offset"),
    )
    released = released.select(
        place.alias("place"),
        row_hash(released.select(*types)).alias("row"),
        *[_leading(F.col(id), spark_type(type)).alias(id) for id, type in types.items()],
    )
    distinct = released.groupBy("row").agg(
        F.min("place").alias("place"), *[F.first(id).alias(id) for id in types]
    )
    return distinct.orderBy("row").limit(most).select("place.*", *types).toArrow()


def _leading(column: Column, type: Any) -> Column:
    """A number or a text to rank values by."""
    if isinstance(type, T.StructType) and type.fields:
        return _leading(column.getField(type.names[0]), type.fields[0].dataType)
    if isinstance(type, T.ArrayType):
        return _leading(F.get(column, F.lit(0)), type.elementType)
    return column.cast("double" if isinstance(type, T.NumericType) else "string")

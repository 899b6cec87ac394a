"""Files whose names are known, read by Spark."""

import re
from collections.abc import Iterable, Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType


def read_exactly(
    spark: SparkSession,
    kind: str,
    schema: StructType | str,
    paths: Iterable[str],
    options: Mapping[str, str] = {},
) -> DataFrame:
    """Reads just these files or folders. Spark's own readers take brackets, braces and stars in a
    path for patterns: they miss `t[1]`, and read `t1` in its place.

    Args:
        spark: The session.
        kind: json or parquet.
        schema: The columns.
        paths: The files, and folders of files.
        options: Options of Spark's reader.
    """
    literal = [re.sub(r"([][{}*?\\])", r"\\\1", path) for path in paths]
    return spark.read.schema(schema).options(**options).format(kind).load(literal)

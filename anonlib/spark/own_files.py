"""Files whose names are known, read by Spark. Its readers take brackets, braces, stars, question
marks and backslashes in a path for a pattern: they miss `t[1]`, and read `t1` in its place."""

import re
from collections.abc import Iterable, Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from anonlib.spark.jvm import find_java_class, make_scala_map

#: The characters that make a path a pattern.
_WILD = re.compile(r"[][{}*?\\]")


def read_exactly(
    spark: SparkSession,
    kind: str,
    schema: StructType | str,
    paths: Iterable[str],
    options: Mapping[str, str] = {},
) -> DataFrame:
    """Reads just these files or folders.

    Args:
        spark: The session.
        kind: json or parquet.
        schema: The columns.
        paths: The files, and folders of files.
        options: Options of Spark's reader.
    """
    literal = [spell_exactly(path) for path in paths]
    return spark.read.schema(schema).options(**options).format(kind).load(literal)


def spell_exactly(path: str) -> str:
    """A path as Spark's readers must be given it to read just what has that name. Spark's own
    option for this reads several files several times over."""
    return _WILD.sub(r"\\\g<0>", path)


def is_pattern(spark: SparkSession, path: str, options: Mapping[str, str]) -> bool:
    """Whether a path that a user gives is a pattern: it has characters of one, and nothing is there
    by that very name. Only then the store is asked.

    Args:
        spark: The session.
        path: The path.
        options: Options of the reader, which may be the store's.
    """
    if not _WILD.search(path):
        return False
    conf = spark._jsparkSession.sessionState().newHadoopConfWithOptions(
        make_scala_map(spark, options)
    )
    place = find_java_class(spark, "org.apache.hadoop.fs.Path")(path)
    return not place.getFileSystem(conf).exists(place)


def spell_for_reader(spark: SparkSession, path: str, options: Mapping[str, str]) -> str:
    """A path that a user gives, as Spark's readers must be given it: what has that very name is
    read, and only where there is none it is a pattern. Arguments as for `is_pattern`."""
    return path if is_pattern(spark, path, options) else spell_exactly(path)

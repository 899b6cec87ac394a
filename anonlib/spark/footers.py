"""The schemas of single Parquet and ORC files, from their footers."""

from collections.abc import Callable
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from anonlib.spark.jvm import java_class, struct_type

_SQL = "org.apache.spark.sql.execution.datasources"


def read_parquet(spark: SparkSession) -> Callable[[str], StructType]:
    """A function that gives the schema of the Parquet file at a path."""
    state: Any = spark._jsparkSession.sessionState()
    conf, path = state.newHadoopConf(), java_class(spark, "org.apache.hadoop.fs.Path")
    file = java_class(spark, "org.apache.parquet.hadoop.util.HadoopInputFile")
    reader = java_class(spark, "org.apache.parquet.hadoop.ParquetFileReader")
    convert = java_class(spark, f"{_SQL}.parquet.ParquetToSparkSchemaConverter")(state.conf())
    cache: dict[str, StructType] = {}

    def read(place: str) -> StructType:
        opened = reader.open(file.fromPath(path(place), conf))
        try:
            schema = opened.getFooter().getFileMetaData().getSchema()
        finally:
            opened.close()
        text = schema.toString()
        if text not in cache:
            cache[text] = struct_type(convert.convert(schema))
        return cache[text]

    return read


def read_orc(spark: SparkSession) -> Callable[[str], StructType]:
    """A function that gives the schema of the ORC file at a path."""
    state: Any = spark._jsparkSession.sessionState()
    conf, path = state.newHadoopConf(), java_class(spark, "org.apache.hadoop.fs.Path")
    orc = java_class(spark, f"{_SQL}.orc.OrcUtils")

    def read(place: str) -> StructType:
        found = orc.readSchema(path(place), conf, False, False)
        return struct_type(orc.toCatalystSchema(found.get())) if found.isDefined() else StructType()

    return read


#: By format: what makes a function that reads the schema of a file. Threads may share it.
READERS = {"parquet": read_parquet, "orc": read_orc}

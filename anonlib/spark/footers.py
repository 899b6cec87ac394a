"""The schemas of single Parquet and ORC files, from their footers."""

import re
from collections.abc import Callable, Iterator
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from anonlib.spark.jvm import find_java_class, make_struct_type

#: A type that Spark refuses, in its error.
_ILLEGAL = re.compile(r"[Tt]ype: ([\w (),]+)")
#: In the JSON of a schema: a type that Spark makes of Parquet's, and does not read.
_TIME = re.compile(r'"\w*[tT]ype":"time\(')
_SQL = "org.apache.spark.sql.execution.datasources"


def read_parquet(spark: SparkSession) -> Callable[[str], StructType]:
    """A function that gives the schema of the Parquet file at a path."""
    footer, converter = _parquet_footer(spark), _parquet_converter(spark)
    cache: dict[str, StructType] = {}

    def read(place: str) -> StructType:
        schema = footer(place)
        text = schema.toString()
        if text not in cache:
            cache[text] = make_struct_type(converter.convert(schema))
        return cache[text]

    return read


def find_unreadable(spark: SparkSession, place: str) -> Iterator[tuple[str, str]]:
    """The columns of the Parquet file at a path whose types Spark does not read, each with a type
    that it has itself or in a field, in Parquet's words."""
    message = find_java_class(spark, "org.apache.parquet.schema.MessageType")
    converter = _parquet_converter(spark)
    for field in _parquet_footer(spark)(place).getFields():
        try:
            found = converter.convert(message("column", [field])).json()
        except AnalysisException as error:
            type = _ILLEGAL.search(str(error))
            yield field.getName(), type[1] if type else "unknown"
        else:
            if _TIME.search(found):
                yield field.getName(), "TIME"


def _parquet_footer(spark: SparkSession) -> Callable[[str], Any]:
    """A function that gives Parquet's own schema of the file at a path."""
    state: Any = spark._jsparkSession.sessionState()
    conf, path = state.newHadoopConf(), find_java_class(spark, "org.apache.hadoop.fs.Path")
    file = find_java_class(spark, "org.apache.parquet.hadoop.util.HadoopInputFile")
    reader = find_java_class(spark, "org.apache.parquet.hadoop.ParquetFileReader")

    def read(place: str) -> Any:
        opened = reader.open(file.fromPath(path(place), conf))
        try:
            return opened.getFooter().getFileMetaData().getSchema()
        finally:
            opened.close()

    return read


def _parquet_converter(spark: SparkSession) -> Any:
    state: Any = spark._jsparkSession.sessionState()
    return find_java_class(spark, f"{_SQL}.parquet.ParquetToSparkSchemaConverter")(state.conf())


def read_orc(spark: SparkSession) -> Callable[[str], StructType]:
    """A function that gives the schema of the ORC file at a path."""
    state: Any = spark._jsparkSession.sessionState()
    conf, path = state.newHadoopConf(), find_java_class(spark, "org.apache.hadoop.fs.Path")
    orc = find_java_class(spark, f"{_SQL}.orc.OrcUtils")

    def read(place: str) -> StructType:
        found = orc.readSchema(path(place), conf, False, False)
        return (
            make_struct_type(orc.toCatalystSchema(found.get()))
            if found.isDefined()
            else StructType()
        )

    return read


#: By format: what makes a function that reads the schema of a file. Threads may share it.
READERS = {"parquet": read_parquet, "orc": read_orc}

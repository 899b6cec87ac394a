"""The headers of single CSV files, by the parser and the options of Spark's reader."""

from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import SparkSession

from anonlib.spark.jvm import java_class, scala_map

_UNIVOCITY = "com.univocity.parsers.csv.CsvParser"
_OPTIONS = "org.apache.spark.sql.catalyst.csv.CSVOptions"
_STREAMS = "org.apache.spark.sql.execution.datasources.CodecStreams"


def read_header(
    spark: SparkSession, options: Mapping[str, str]
) -> Callable[[str], list[str] | None]:
    """A function that gives the fields of a file's first row; None for an empty file.

    options: Those of Spark's reader, with names in lower case.
    """
    state: Any = spark._jsparkSession.sessionState()
    conf, path = state.newHadoopConf(), java_class(spark, "org.apache.hadoop.fs.Path")
    streams = java_class(spark, _STREAMS)
    parsed = java_class(spark, _OPTIONS)(scala_map(spark, options), False, "UTC")

    def read(place: str) -> list[str] | None:
        settings = parsed.asParserSettings()
        if "linesep" not in options:
            settings.setLineSeparatorDetectionEnabled(True)
        settings.setReadInputOnSeparateThread(False)
        parser = java_class(spark, _UNIVOCITY)(settings)
        stream = streams.createInputStream(conf, path(place))
        try:
            parser.beginParsing(stream, parsed.charset())
            fields = parser.parseNext()
            return None if fields is None else [field or "" for field in fields]
        finally:
            parser.stopParsing()
            stream.close()

    return read

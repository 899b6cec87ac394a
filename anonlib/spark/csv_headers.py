"""The first bytes of single files, and the headers of CSV files by the parser and the options of
Spark's reader."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyspark.sql import SparkSession

from anonlib.spark.jvm import find_java_class, make_scala_map

_UNIVOCITY = "com.univocity.parsers.csv.CsvParser"
_OPTIONS = "org.apache.spark.sql.catalyst.csv.CSVOptions"
_STREAMS = "org.apache.spark.sql.execution.datasources.CodecStreams"
#: Most bytes that `read_start` reads of a file.
_MOST_BYTES = 1 << 18


def read_header(
    spark: SparkSession, options: Mapping[str, str]
) -> Callable[[str], list[str] | None]:
    """A function that gives the fields of a file's first row; None for an empty file.

    options: Those of Spark's reader, with names in lower case.
    """
    state: Any = spark._jsparkSession.sessionState()
    conf, path = state.newHadoopConf(), find_java_class(spark, "org.apache.hadoop.fs.Path")
    streams = find_java_class(spark, _STREAMS)
    charset = options.get("encoding", options.get("charset", "UTF-8"))
    by_lines = options.get("multiline", "false").strip().lower() != "true"
    # Spark knows some encodings by a setting of the thread's session only.
    others = {name: text for name, text in options.items() if name not in ("encoding", "charset")}
    parsed = find_java_class(spark, _OPTIONS)(make_scala_map(spark, others), False, "UTC")

    def read(place: str) -> list[str] | None:
        settings = parsed.asParserSettings()
        if "linesep" not in options:
            settings.setLineSeparatorDetectionEnabled(True)
        settings.setReadInputOnSeparateThread(False)
        parser = find_java_class(spark, _UNIVOCITY)(settings)
        stream = streams.createInputStream(conf, path(place))
        try:
            parser.beginParsing(stream, charset)
            rows = ([field or "" for field in row] for row in iter(parser.parseNext, None))
            # By lines, Spark skips those of blanks.
            return next((row for row in rows if not (by_lines and _is_blank(row))), None)
        finally:
            parser.stopParsing()
            stream.close()

    return read


def _is_blank(row: Sequence[str]) -> bool:
    return len(row) == 1 and not row[0].strip(" \r")  # where only some lines end in CR LF


def read_start(spark: SparkSession) -> Callable[[str], bytes]:
    """A function that gives the first bytes of a file, unpacked: its first lines, as far as 256 KiB
    have them."""
    conf = spark._jsparkSession.sessionState().newHadoopConf()
    path, streams = (
        find_java_class(spark, "org.apache.hadoop.fs.Path"),
        find_java_class(spark, _STREAMS),
    )

    def read(place: str) -> bytes:
        stream = streams.createInputStream(conf, path(place))
        try:
            start = bytes(stream.readNBytes(_MOST_BYTES))
            return start if len(start) < _MOST_BYTES else start[: start.rfind(b"\n") + 1] or start
        finally:
            stream.close()

    return read

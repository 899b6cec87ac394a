"""Options of readers: none may lose rows, or move values to other columns."""

import pytest

from anonlib.config.model import SourceSection
from anonlib.config.reader_options import check_reader_options


def wrong(kind: str, **options: str) -> dict[str, str]:
    source = SourceSection.model_validate({"format": kind, "path": "x", "options": options})
    return {problem.where: problem.text for problem in check_reader_options(source)}


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        *[(kind, "mode", "DropMalformed") for kind in ("csv", "json", "xml", "avro", "table")],
        *[(kind, "mode", "SOMETIMES") for kind in ("csv", "json", "xml")],
        *[(kind, "mode", "FAILFAST") for kind in ("xml", "avro", "delta", "parquet")],
        *[(kind, "ignoreCorruptFiles", "true") for kind in ("csv", "parquet", "orc", "avro")],
        *[(kind, "IgnoreMissingFiles", "true") for kind in ("json", "parquet", "table", "xml")],
        *[(kind, "samplingRatio", "0.5") for kind in ("csv", "json", "xml")],
        *[(kind, "badRecordsPath", "out/bad") for kind in ("csv", "json", "xml", "parquet")],
        *[(kind, "modifiedBefore", "2024-01-01T00:00:00") for kind in ("csv", "orc", "avro")],
        ("csv", "columnNameOfCorruptRecord", "bad"),
        ("csv", "maxCharsPerColumn", "10"),
        ("csv", "unescapedQuoteHandling", "SKIP_VALUE"),
        ("csv", "columnPruning", "true"),
        ("csv", "mapreduce.input.linerecordreader.line.maxlength", "10"),
        ("csv", "comment", "1"),
        ("csv", "quote", "a"),
        ("csv", "encoding", "UTF-16"),
        ("csv", "charset", "UTF-32LE"),
        ("csv", "encoding", "UTF-16LE"),
        ("csv", "encoding", "x-MacRoman"),
        ("json", "dropFieldIfAllNull", "true"),
        ("orc", "orc.force.positional.evolution", "true"),
        ("parquet", "spark.sql.parquet.fieldId.read.enabled", "true"),
    ],
)
def test_refused(kind: str, name: str, value: str) -> None:
    assert list(wrong(kind, **{name: value})) == [f"source.options.{name}"]


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("csv", {"header": "true", "mode": "FAILFAST", "sep": ";", "quote": "'", "escape": '"'}),
        ("csv", {"Mode": "permissive", "multiLine": "true", "encoding": "ISO-8859-1"}),
        ("csv", {"encoding": "UTF-16", "multiLine": "true"}),
        ("csv", {"encoding": "windows-1252"}),
        ("csv", {"charset": "iso-8859-15"}),
        ("csv", {"enforceSchema": "true", "comment": "#", "fs.s3a.endpoint": "http://x"}),
        ("json", {"mode": "FailFast", "multiLine": "true", "pathGlobFilter": "*.json"}),
        ("parquet", {"mergeSchema": "true", "recursiveFileLookup": "true"}),
        ("delta", {"mergeSchema": "true"}),
        ("xml", {"rowTag": "person"}),
        ("jdbc", {"url": "jdbc:x", "mode": "x", "sessionInitStatement": "y"}),
    ],
)
def test_accepted(kind: str, options: dict[str, str]) -> None:
    assert wrong(kind, **options) == {}


def test_what_is_allowed_is_said() -> None:
    text = wrong("csv", unescapedQuoteHandling="SKIP_VALUE")
    assert "header" in text["source.options.unescapedQuoteHandling"]
    assert "windows-1252" in wrong("csv", encoding="cp1252")["source.options.encoding"]
    assert "multiLine" in wrong("csv", encoding="UTF-16")["source.options.encoding"]
    assert "PERMISSIVE or FAILFAST" in wrong("csv", mode="DROPMALFORMED")["source.options.mode"]


def test_no_secret_loses_rows() -> None:
    for name in ("mode", "badRecordsPath", "unescapedQuoteHandling"):
        given = {"format": "csv", "path": "x", "secrets": {name: "VARIABLE"}}
        found = [*check_reader_options(SourceSection.model_validate(given))]
        assert [problem.where for problem in found] == [f"source.secrets.{name}"]
    given = {"format": "csv", "path": "x", "secrets": {"password": "VARIABLE"}}
    assert not [*check_reader_options(SourceSection.model_validate(given))]

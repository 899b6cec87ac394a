"""Reads files by a contract: every column by its name in every file, and no row lost or cut.

A source that breaks the contract ends the run. Errors give counts and paths, never values.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, MapType, StringType, StructField, StructType

from anonlib.config.model import RESERVED_PREFIX
from anonlib.config.reader_options import ONE_BYTE, SAFE, is_known_option
from anonlib.errors import InputError, Problem
from anonlib.source.columnar import explain_types, require_same_columns
from anonlib.source.csv_files import (
    Dialect,
    is_header,
    require_headers,
    require_no_utf8,
    require_quotes,
)
from anonlib.spark.expressions import quote_name
from anonlib.spark.file_list import (
    hide_values,
    list_files,
    list_files_of,
    list_folder_columns,
    list_relations,
    read_file_schema,
    read_options,
    require_all_read,
    require_same_files,
)
from anonlib.spark.own_files import spell_exactly, spell_for_reader

#: The column in which Spark puts rows that it can't read.
_BAD = f"{RESERVED_PREFIX}bad"
#: What Spark reads in place of bytes that the encoding has no character for.
UNREADABLE = "\ufffd"
#: A separator that is in no text, so that each line is one field. Spark reads UTF-16 as CSV only.
_NO_TEXT = "\ue000\ue001\ue000\ue002"
#: Options that choose the files.
_PLACES = ("path", "basepath", "recursivefilelookup", "pathglobfilter")
#: Spark's readers of files -> the format.
_KINDS = {
    "CSVFileFormat": "csv",
    "JsonFileFormat": "json",
    "ParquetFileFormat": "parquet",
    "OrcFileFormat": "orc",
}
#: Options by which no row is lost once the schema is known.
_HARMLESS = frozenset(
    {"samplingratio", "columnnameofcorruptrecord", "serialization.format", "__globpaths__"}
)
#: Options that must be false.
_LOSSLESS = ("ignoreCorruptFiles", "ignoreMissingFiles")


def read_files(
    spark: SparkSession,
    kind: str,
    path: str | None,
    options: Mapping[str, str],
    names: Collection[str],
) -> DataFrame:
    """The rows of a file, of a folder or, if nothing is there by that very name, of what a glob
    names.

    Args:
        spark: The session.
        kind: csv, json, parquet or orc.
        path: The file, folder or glob; None if `options` has it.
        options: Options of Spark's reader.
        names: The columns that must be in every file.

    Raises:
        InputError: Files differ, or rows can't be read in full.
        BusyError: Files changed while they were read.
    """
    given = {name.lower(): text for name, text in options.items()}
    place = path or given.pop("path", None)
    if place is not None:
        place = spell_for_reader(spark, place, given)
    with explain_types(spark, kind, place, given):
        frame = spark.read.format(kind).options(**_strict(kind, given)).load(place)
        if len([*list_relations(frame)]) != 1:
            raise InputError(
                f"source.format: {kind} is not read by Spark's own reader; remove the other one "
                "from the class path, and spark.sql.sources.useV1SourceList from Spark's settings"
            )
        require_contract(frame, names)
    return frame


def require_contract(frame: DataFrame, names: Collection[str]) -> None:
    """Checks all files of CSV, JSON, Parquet and ORC that a frame reads, by itself, by a table of
    the catalog or by a view: every column by its name in every file, every row whole.

    Args:
        frame: The frame.
        names: The columns that must be in every file of those that have them.

    Raises:
        InputError: Files differ, or rows can't be read as they are meant.
        BusyError: Files changed meanwhile.
    """
    spark, files = frame.sparkSession, list_files(frame)
    require_all_read(frame)
    for relation in list_relations(frame):
        kind = _KINDS.get(relation.fileFormat().getClass().getSimpleName())
        if kind is None:
            continue
        options = read_options(spark, relation)
        _require_lossless(kind, options)
        schema = _file_schema(relation)
        _require_own_names(relation, schema)
        paths = sorted(list_files_of(spark, relation))
        if kind in ("parquet", "orc"):
            require_same_columns(spark, kind, paths, names, schema.names)
        else:
            own = {*names} - {*list_folder_columns(relation)}
            _require_texts(spark, kind, paths, options, schema, own)
    require_same_files(files, frame)


def require_same_columns_in_files(frame: DataFrame) -> None:
    """Checks that the files which a frame reads are of one table: the same headers of CSV, the same
    columns of Parquet and ORC. No rows are read. Raises InputError where they differ."""
    spark = frame.sparkSession
    for relation in list_relations(frame):
        kind = _KINDS.get(relation.fileFormat().getClass().getSimpleName())
        paths, names = sorted(list_files_of(spark, relation)), _file_schema(relation).names
        if kind == "csv" and paths:
            require_headers(spark, Dialect(read_options(spark, relation)), paths, names)
        elif kind in ("parquet", "orc"):
            require_same_columns(spark, kind, paths, names, names)


def _require_texts(
    spark: SparkSession,
    kind: str,
    files: list[str],
    options: Mapping[str, str],
    schema: StructType,
    names: Collection[str],
) -> None:
    """Raises InputError unless all rows of CSV or JSON files can be read by this schema."""
    if not files:
        return
    named = {name: text for name, text in options.items() if name not in _PLACES}
    strict = _strict(kind, named)
    lines = {name: text for name, text in strict.items() if name == "linesep"}
    exactly = [*map(spell_exactly, files)]
    text = spark.read.options(**lines).format("text").load(exactly)
    if kind == "csv" and Dialect(options).encoding.strip().lower() == "utf-16":
        lines |= {"encoding": "UTF-16", "multiLine": "true", "sep": _NO_TEXT, "quote": ""}
        text = spark.read.options(**lines).schema("value string").format("csv").load(exactly)
    again = F.lit(False)
    texts = [f.name for f in schema if f.name in names and f.dataType == StringType()]
    if kind == "csv":
        dialect = Dialect(options)
        require_headers(spark, dialect, files, schema.names, names)
        if dialect.encoding.strip().lower() in ONE_BYTE:
            require_no_utf8(text, dialect.encoding)
        require_quotes(text, dialect)
        ids = [f"c{i}" for i in range(len(schema))]
        again = is_header(dialect, schema.names, ids)
        texts = [id for id, name in zip(ids, schema.names, strict=True) if name in texts]
        schema = StructType(
            [StructField(id, f.dataType) for id, f in zip(ids, schema, strict=True)]
        )
    else:
        _require_keys(text, options, schema, names)
    reader = spark.read.format(kind).options(**strict).schema(schema.add(_BAD, "string"))
    rows = reader.load(exactly)
    if _require_whole_rows(rows, again, texts):
        _require_encoding(text, options.get("encoding", options.get("charset", "UTF-8")))


def _require_lossless(kind: str, options: Mapping[str, str]) -> None:
    """Raises InputError for options of a table or frame by which rows may be lost or values
    moved."""
    found = [n for n in _LOSSLESS if options.get(n.lower(), "false").lower() != "false"]
    known = SAFE[kind] | _HARMLESS | {name.lower() for name in _LOSSLESS}
    if kind in ("csv", "json"):
        found += sorted(name for name in options if not is_known_option(name, known))
    if options.get("mode", "").strip().upper() == "DROPMALFORMED":
        found.append("mode DROPMALFORMED")
    if found:
        raise InputError(
            f"source: it reads {kind} files with {', '.join(found)}, by which rows could be lost "
            "or values moved; make the table or DataFrame without"
        )


def _require_own_names(relation: Any, schema: StructType) -> None:
    """Raises InputError for columns of files that Spark takes from the names of folders instead."""
    folders = {*list_folder_columns(relation)}
    if twice := sorted(folders & {*schema.names}):
        raise InputError(
            f"source: column {twice[0]} is in the files and in the names of their folders; rename "
            "the folders, or leave it out of the files"
        )


def _strict(kind: str, options: Mapping[str, str]) -> dict[str, str]:
    """The options with which no row is lost.

    The contract replaces the option `mode`, whose errors quote rows, and Spark's own check of
    headers, whose errors quote headers.
    """
    plain = {name: text for name, text in options.items() if name not in ("mode", "enforceschema")}
    lossless = dict.fromkeys(_LOSSLESS, "false")
    if kind in ("parquet", "orc"):
        return {**plain, **lossless}
    return {**plain, **lossless, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": _BAD}


def _file_schema(relation: Any) -> StructType:
    """The columns that are in the files, not in the names of their folders."""
    schema = read_file_schema(relation)
    return StructType([field for field in schema if field.name != _BAD])


def _require_whole_rows(rows: DataFrame, again: Column, texts: Sequence[str]) -> bool:
    """Raises InputError if rows can't be read, or repeat the header; it says how many, and in which
    file. Returns whether a text holds UNREADABLE.

    Args:
        rows: All rows.
        again: Whether a row repeats the header.
        texts: The columns of text that are used.
    """
    if rows.columns == [_BAD]:
        raise InputError(
            "source: no row can be read; check source.format and source.options (encoding, "
            "multiLine)"
        )
    file, bad = rows.metadataColumn("_metadata").getField("file_path"), F.col(_BAD).isNotNull()
    first = F.count(F.col(quote_name(rows.columns[0])))  # Spark does not read _BAD alone
    odd = [F.col(quote_name(name)).contains(UNREADABLE) for name in texts]
    counts = rows.agg(
        F.count_if(bad),
        F.min(F.when(bad, file)),
        F.count_if(again),
        F.min(F.when(again, file)),
        *[F.bool_or(each).alias(f"o{i}") for i, each in enumerate(odd)],
        first,
    )
    n_bad, of_bad, n_again, of_again, *found, _ = counts.collect()[0]
    problems = []
    if n_bad:
        problems.append(
            f"source: {n_bad} rows have too few or too many fields, or can't be read, as in "
            f"{hide_values(of_bad)}; mend them, or set source.options (sep, quote, escape; "
            'multiLine: "true" where values hold line breaks)'
        )
    if n_again:
        problems.append(
            f"source: {n_again} more headers among the rows, as in {hide_values(of_again)}; take "
            "them out"
        )
    if problems:
        raise InputError("\n".join(problems))
    return any(found)


def _require_encoding(lines: DataFrame, encoding: str) -> None:
    """Raises InputError for bytes that the encoding has no character for: Spark would make the same
    character of all of them, so that different texts would become equal.

    lines: Lines of the files, as they are. Some text of theirs holds UNREADABLE. In UTF-8 it may
        have been written so.
    """
    place = ""
    if encoding.strip().lower().replace("-", "") == "utf8":
        file = lines.metadataColumn("_metadata").getField("file_path")
        wrong = ~F.is_valid_utf8("value")
        n, path = lines.agg(F.count_if(wrong), F.min(F.when(wrong, file))).collect()[0]
        if n == 0:
            return
        place = f" in {n} lines, as in {hide_values(path)}"
    raise InputError(
        f"source: bytes that are no characters of {encoding}{place}; set source.options.encoding, "
        "such as to windows-1252, if the files have it, or convert them to UTF-8"
    )


def _require_keys(
    lines: DataFrame, options: Mapping[str, str], schema: StructType, columns: Collection[str]
) -> None:
    """Raises InputError for JSON columns that a whole file lacks, or that are text in some rows and
    another type in others."""
    names = [field.name for field in schema if field.name in columns]
    if not names:
        return
    nested = any(isinstance(f.dataType, StructType | ArrayType | MapType) for f in schema)
    asked = nested or options.get("primitivesasstring", "").lower() == "true"
    texts = [] if asked else [f.name for f in schema if isinstance(f.dataType, StringType)]
    keys = {name: _key(name, options) for name in names}
    value = F.col("value")
    aggregates = [F.bool_or(value.rlike(keys[name])).alias(f"k{i}") for i, name in enumerate(names)]
    aggregates += [
        F.count_if(value.rlike(rf"{keys[name]}\s*[-0-9tf]")).alias(f"t{i}")
        for i, name in enumerate(names)
        if name in texts
    ]
    file = lines.metadataColumn("_metadata").getField("file_path").alias("file")
    by_file = lines.where("trim(value) != ''").groupBy(file).agg(*aggregates)
    lacks = {i: ~F.col(f"k{i}") for i in range(len(names))}
    mixed = {i: F.col(f"t{i}") for i, name in enumerate(names) if name in texts}
    counts = by_file.agg(
        F.count("*").alias("n"),
        *[F.count_if(lack).alias(f"n{i}") for i, lack in lacks.items()],
        *[F.min(F.when(lack, F.col("file"))).alias(f"f{i}") for i, lack in lacks.items()],
        *[F.sum(n).alias(f"m{i}") for i, n in mixed.items()],
        *[F.min(F.when(n > 0, F.col("file"))).alias(f"g{i}") for i, n in mixed.items()],
    ).collect()[0]
    if problems := [*_key_problems(names, counts.asDict())]:
        raise InputError("\n".join(map(str, problems)))


def _key_problems(names: list[str], counts: Mapping[str, Any]) -> Iterator[Problem]:
    for i, name in enumerate(names):
        if n := counts[f"n{i}"]:
            yield Problem(
                f"column {name}",
                f"{n} of {counts['n']} files lack it, such as "
                f"{hide_values(counts[f'f{i}'])}; write null where it has no value, or "
                "give it `role: drop`",
            )
        if n := counts.get(f"m{i}"):
            yield Problem(
                f"column {name}",
                f"is text, but {n} rows have it as a number or truth value, as in "
                f"{hide_values(counts[f'g{i}'])}; write it as one type",
            )


def _key(name: str, options: Mapping[str, str]) -> str:
    """A Java pattern for a key of JSON."""
    quoted = f'"{"".join(map(_letter, name))}"'
    loose = ("allowunquotedfieldnames", "allowsinglequotes")
    if any(options.get(option, "").lower() == "true" for option in loose):
        quoted = rf"\b{re.escape(name)}\b[\"']?"
    return rf"{quoted}\s*:"


def _letter(letter: str) -> str:
    """A Java pattern for all ways in which JSON can write a letter."""
    units = letter.encode("utf-16-be", "surrogatepass").hex()
    escaped = "".join(rf"\\u(?i:{units[i : i + 4]})" for i in range(0, len(units), 4))
    short = re.escape(json.dumps(letter, ensure_ascii=False)[1:-1])
    slash = r"|\\/" if letter == "/" else ""
    return f"(?:{short}|{escaped}{slash})"


#: The formats that the contract covers.
FORMATS = tuple(SAFE)

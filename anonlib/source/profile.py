"""The profile of a table for `anonlib init`: counts per column, and how to read a text file,
guessed from its first lines. Spark counts hashes and flags, so that no value reaches the
driver."""

import csv
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructType

from anonlib.config.draft import MIN_UNIQUE, ColumnProfile, TableProfile
from anonlib.config.keys import read_secret_options
from anonlib.config.model import SourceSection
from anonlib.errors import InputError
from anonlib.progress import Progress
from anonlib.spark.session import session
from anonlib.spark.storage import Storage
from anonlib.spark.translation import translate_errors
from anonlib.spark.values import DATE_TEXT, DECIMAL_TEXT, TIME_TEXT, WHOLE_TEXT

#: Most rows, and most values, that are looked at for distinct counts.
MAX_SAMPLE, MAX_VALUES = 100_000, 10_000_000

#: Most columns whose uniqueness is counted on the whole table.
MAX_COUNTED = 8

_EXTENSIONS = {
    **dict.fromkeys(("csv", "tsv", "tab", "txt", "psv"), "csv"),
    **dict.fromkeys(("parquet", "pq"), "parquet"),
    **dict.fromkeys(("json", "jsonl", "ndjson"), "json"),
    "orc": "orc",
}

_COMPRESSED = ("gz", "bz2", "zst", "lz4", "snappy", "deflate", "xz")

_EMAIL = r"^[^@\s]+@[^@\s]+\.[A-Za-z]{2,}$"

#: Types that texts are tried as, from the narrowest to the widest, by the bit of their flag.
_TYPES = {"int": 1, "bigint": 2, "double": 4, "date": 8, "timestamp": 16}

_EMAIL_FLAG = 32


@dataclass
class _Where:
    """How a source is read."""

    format: str
    path: str | None = None
    table: str | None = None
    options: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def read(self, spark: SparkSession, secrets: dict[str, str]) -> DataFrame:
        reader = spark.read.options(**self.options, **secrets)
        if self.table is not None:
            return reader.table(self.table)
        return reader.format(self.format).load(self.path)


def profile(
    source: str,
    source_format: str | None,
    options: dict[str, str],
    progress: Progress,
    secrets: dict[str, str] | None = None,
) -> TableProfile:
    """The profile of a file, folder, or table (of a catalog or database). secrets: options, and the
    variables of the environment that have them.

    What the given format and `options` leave open is guessed. Raises InputError when that fails
    or the source can't be read. Costs one count of the rows, one pass over a sample, and one exact
    count of the columns that look unique.
    """
    secrets = secrets or {}
    secret = read_secret_options(
        SourceSection.model_validate({"format": source_format or "", "secrets": secrets})
    )
    with progress.stage("start"):
        spark = session()
    with progress.stage("look", spark), translate_errors("source"):
        where = _where(spark, source, source_format, dict(options))
        frame = where.read(spark, secret)
        names = frame.columns
        raw = frame.toDF(*[f"c{i}" for i in range(len(names))])
        n_rows = raw.count()
    with progress.stage("count", spark), translate_errors("source"):
        n_sample, columns = _columns(raw, names, n_rows)
    notes = [*where.notes, *_name_notes(names)]
    return TableProfile(
        format=where.format,
        path=where.path,
        table=where.table,
        n_rows=n_rows,
        n_sample=n_sample,
        columns=columns,
        options=where.options,
        secrets=secrets,
        notes=tuple(notes),
    )


def _name_notes(names: list[str]) -> list[str]:
    folded = [name.casefold() for name in names]
    if len(set(folded)) == len(folded):
        return []
    return ["some column names differ in case only; rename them in the source"]


def _where(
    spark: SparkSession, source: str, source_format: str | None, options: dict[str, str]
) -> _Where:
    if source_format == "table" or (source_format is None and _is_table(spark, source)):
        return _Where("table", table=source, options=options)
    if source_format == "jdbc":
        return _Where("jdbc", options={**options, "dbtable": source})
    storage = Storage(spark, source)
    kind = source_format or _format(storage, source)
    if kind is None:
        raise InputError(f"{source}: its format is not clear; name it with --format")
    where = _Where(kind, path=source, options=options)
    if kind in ("csv", "json"):
        head = _head(spark, source)
        if not head:
            raise InputError(f"{source}: is empty")
        sniff(kind, head, where.options, where.notes)
    return where


def _is_table(spark: SparkSession, source: str) -> bool:
    """Whether it is a table of the catalog, and no file."""
    if not re.fullmatch(r"\w+(\.\w+){0,2}", source) or _by_name(source):
        return False
    storage = Storage(spark, source)
    return not storage.exists(storage.root) and spark.catalog.tableExists(source)


def _format(storage: Storage, source: str) -> str | None:
    """By the name's extension, else by what is in the folder."""
    if any(c in source for c in "*?[{"):
        return _by_name(source)
    if not storage.exists(storage.root):
        raise InputError(f"{source}: no such file or folder")
    names = storage.listed(storage.root)
    if "_delta_log" in names:
        return "delta"
    inside = [_by_name(name) for name in names if not name.startswith(("_", "."))]
    return _by_name(source) or next((found for found in inside if found), None)


def _by_name(name: str) -> str | None:
    parts = PurePosixPath(name).name.lower().split(".")
    if parts[-1] in _COMPRESSED:
        parts.pop()
    return _EXTENSIONS.get(parts[-1])


def _head(spark: SparkSession, source: str) -> list[str]:
    """The first lines that are not blank."""
    rows = spark.read.text(source).limit(100).collect()
    return [row[0] for row in rows if row[0].strip()]


def _columns(
    raw: DataFrame, names: list[str], n_rows: int
) -> tuple[int, tuple[ColumnProfile, ...]]:
    types = {name: field.dataType for name, field in zip(raw.columns, raw.schema, strict=True)}
    most = max(1_000, min(MAX_SAMPLE, MAX_VALUES // max(1, len(names))))
    sample = raw if n_rows <= most else raw.sample(fraction=most / n_rows, seed=0)
    seen = sample.select(F.lit(1).alias("row"), *_fingerprints(types)).toArrow()
    n_sample = seen.num_rows
    counted = {id: _counts(seen, id) for id in types}
    alike = [
        id for id, (present, distinct, _) in counted.items() if present == distinct == n_sample
    ]
    unique = _unique(raw, [id for id in alike if n_sample >= MIN_UNIQUE], n_rows, n_sample)
    columns = []
    for id, name in zip(types, names, strict=True):
        present, distinct, flags = counted[id]
        parses_as, emails = _parse_head(flags)
        columns.append(
            ColumnProfile(
                name=name,
                type=types[id].simpleString(),
                n_present=present,
                n_distinct=distinct,
                unique=id in unique,
                parses_as=parses_as,
                emails=emails,
            )
        )
    return n_sample, tuple(columns)


def _fingerprints(types: dict[str, DataType]) -> list[Column]:
    """Per column a hash (h) of its value, and for texts flags (f) of what they can be read as;
    null where the value is missing."""
    result = []
    for id, type in types.items():
        column = F.col(id)
        if isinstance(type, StringType):
            text = F.trim(column)
            present = column.isNotNull() & ~text.isin("", "?")
            result += [F.when(present, F.xxhash64(column)).alias(f"h{id}")]
            result += [F.when(present, _flags(text)).alias(f"f{id}")]
        elif not isinstance(type, ArrayType | MapType | StructType) and _hashable(type):
            present = column.isNotNull()
            if type.simpleString() in ("float", "double"):
                present &= ~F.isnan(column)
            result.append(F.when(present, F.xxhash64(column)).alias(f"h{id}"))
    return result


def _hashable(type: DataType) -> bool:
    return not type.simpleString().startswith(("variant", "void", "geo"))


def _flags(text: Column) -> Column:
    whole = text.rlike(WHOLE_TEXT)
    fits = {
        "int": whole & text.try_cast("int").isNotNull(),
        "bigint": whole & text.try_cast("bigint").isNotNull(),
        "double": text.rlike(DECIMAL_TEXT) & text.try_cast("double").isNotNull(),
        "date": text.rlike(DATE_TEXT) & text.try_cast("date").isNotNull(),
        "timestamp": text.rlike(TIME_TEXT) & text.try_cast("timestamp").isNotNull(),
    }
    flags = F.when(text.rlike(_EMAIL), _EMAIL_FLAG).otherwise(0)
    for type, bit in _TYPES.items():
        flags = flags + F.when(fits[type], bit).otherwise(0)
    return flags


def _counts(table: pa.Table, id: str) -> tuple[int, int, Any]:
    """Present values, distinct ones, and the flags of texts."""
    if f"h{id}" not in table.column_names:
        return 0, 0, None
    hashes = table[f"h{id}"].drop_null().to_numpy()
    flags = table[f"f{id}"].drop_null().to_numpy() if f"f{id}" in table.column_names else None
    return len(hashes), len(np.unique(hashes)), flags


def _parse_head(flags: Any) -> tuple[str | None, float]:
    """The narrowest type that all texts can be read as, and the share of e-mail addresses."""
    if flags is None or not len(flags):
        return None, 0.0
    common = int(np.bitwise_and.reduce(flags))
    fitting = [type for type, bit in _TYPES.items() if common & bit]
    return next(iter(fitting), None), float(np.mean((flags & _EMAIL_FLAG) != 0))


def _unique(raw: DataFrame, ids: list[str], n_rows: int, n_sample: int) -> set[str]:
    """Those of the columns without a repeated or missing value in the whole table."""
    if n_sample == n_rows:
        return set(ids)
    unique = set()
    for id in ids[:MAX_COUNTED]:  # apart, since Spark copies every row for each of several
        n_distinct = raw.agg(F.count_distinct(id)).head()
        if n_distinct is not None and n_distinct[0] == n_rows:
            unique.add(id)
    return unique


_DELIMITERS = ",;\t|"

_NUMBER = re.compile(r"\s*[+-]?(\d+([.,]\d*)?|[.,]\d+)\s*")

#: What Spark puts where bytes are no UTF-8.
_BROKEN = "\ufffd"


def sniff(kind: str, head: Sequence[str], options: dict[str, str], notes: list[str]) -> None:
    """Adds the reader's options that the user has not given, and notes for the draft."""
    names = {key.lower() for key in options}
    if kind == "json":
        if head[0].lstrip().startswith("[") and "multiline" not in names:
            options["multiLine"] = "true"
        return
    found = _csv(head, options.get("delimiter", options.get("sep")))
    if "sep" in names:
        found.pop("delimiter", None)
    options |= {key: text for key, text in found.items() if key.lower() not in names}
    if options.get("header") == "false":
        notes.append("the first line does not look like column names")
    if "encoding" in found and "encoding" not in names:
        notes.append("the file is not UTF-8; the encoding is a guess")


def _csv(head: Sequence[str], delimiter: str | None) -> dict[str, str]:
    delimiter = delimiter or _delimiter(head)
    options = {"header": "true" if _has_header(head[0], delimiter) else "false"}
    if delimiter != ",":
        options["delimiter"] = delimiter
    n_delimiters = sum(line.count(delimiter) for line in head)
    if delimiter.strip() and n_delimiters:
        padded = sum(line.count(f"{delimiter} ") for line in head)
        if padded > 0.9 * n_delimiters:
            options["ignoreLeadingWhiteSpace"] = "true"
    empty = re.compile(rf'(?<![^{re.escape(delimiter)}])""(?![^{re.escape(delimiter)}])')
    doubled = any('""' in empty.sub("", line) for line in head)
    if doubled and not any('\\"' in line for line in head):
        options["escape"] = '"'  # quotes within quotes are doubled, not escaped
    if any(_BROKEN in line for line in head):
        options["encoding"] = "ISO-8859-1"
    return options


def _delimiter(head: Sequence[str]) -> str:
    """The one that gives most lines the same number of fields, the more fields the better."""

    def score(delimiter: str) -> tuple[float, int]:
        n_fields, n_lines = Counter(len(_fields(line, delimiter)) for line in head).most_common(1)[
            0
        ]
        return (n_lines / len(head) if n_fields > 1 else 0.0, n_fields)

    return max(_DELIMITERS, key=score)


def _has_header(line: str, delimiter: str) -> bool:
    cells = [cell.strip() for cell in _fields(line, delimiter)]
    return len(set(cells)) == len(cells) and not any(
        not cell or _NUMBER.fullmatch(cell) for cell in cells
    )


def _fields(line: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])
    except csv.Error:  # a field of more than 128 KB
        return []

"""The profile of a table for `anonlib init`: counts per column, and how to read a text file,
guessed from its first lines."""

import csv
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from anonlib.config.draft import TableProfile
from anonlib.config.extension import guess_format
from anonlib.config.keys import read_secret_options
from anonlib.config.model import SourceSection
from anonlib.config.paths import hint_at_file, is_local
from anonlib.errors import InputError
from anonlib.progress import Progress
from anonlib.source.columnar import explain_types
from anonlib.source.contract import require_same_columns_in_files
from anonlib.source.fingerprint import profile_columns
from anonlib.spark.own_files import is_pattern, spell_exactly
from anonlib.spark.session import session
from anonlib.spark.storage import Storage
from anonlib.spark.translation import translate_errors


@dataclass
class _Where:
    """How a source is read. place: `path` as Spark's readers are given it."""

    format: str
    path: str | None = None
    place: str | None = None
    table: str | None = None
    options: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def read(self, spark: SparkSession, secrets: dict[str, str]) -> DataFrame:
        reader = spark.read.options(**self.options, **secrets)
        if self.table is not None:
            return reader.table(self.table)
        return reader.format(self.format).load(self.place)


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
    or the source can't be read. Costs one count of the rows, two or three passes over a sample, and
    one exact count of the columns that look unique.
    """
    secrets = secrets or {}
    secret = read_secret_options(
        SourceSection.model_validate({"format": source_format or "", "secrets": secrets})
    )
    _require_table(source, source_format)
    with progress.stage("start"):
        spark = session()
    with progress.stage("look", spark), translate_errors("source"):
        where = _where(spark, source, source_format, dict(options))
        with explain_types(spark, where.format, where.place, where.options):
            frame = where.read(spark, secret)
            require_same_columns_in_files(frame)
        names = frame.columns
        raw = frame.toDF(*[f"c{i}" for i in range(len(names))])
        n_rows = raw.count()
        if n_rows == 0:
            raise InputError(f"{source}: has no rows, of which a config could be guessed")
    with progress.stage("count", spark), translate_errors("source"):
        n_sample, columns, hashes = profile_columns(raw, names, n_rows)
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
        hashes=hashes,
    )


def _require_table(source: str, kind: str | None) -> None:
    """Raises InputError if Spark, which takes seconds to start, would find no table in a file."""
    if kind in ("jdbc", "table") or not is_local(source) or re.search(r"[*?\[{]", source):
        return
    path = Path(source)
    if not path.exists():
        of_catalog = kind is None and re.fullmatch(r"\w+(\.\w+){0,2}", source)
        if not of_catalog or guess_format(source):
            raise InputError(f"{source}: no such file or folder{hint_at_file(source)}")
    elif path.is_file():
        if path.stat().st_size == 0:
            raise InputError(f"{source}: is empty")
        if kind is None and path.suffix.lower() in (".yaml", ".yml"):
            raise InputError(f"{source}: is YAML, as configs are, and no table")
        if kind is None and guess_format(source) is None:
            raise InputError(f"{source}: its format is not clear; name it with --format")


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
    pattern = is_pattern(spark, source, options)
    kind = source_format or _format(Storage(spark, source), source, is_pattern=pattern)
    if kind is None:
        raise InputError(f"{source}: its format is not clear; name it with --format")
    place = source if pattern or kind == "delta" else spell_exactly(source)
    where = _Where(kind, path=source, place=place, options=options)
    if kind in ("csv", "json"):
        head = _head(spark, place)
        if not head:
            raise InputError(f"{source}: is empty")
        sniff(kind, head, where.options, where.notes)
    return where


def _is_table(spark: SparkSession, source: str) -> bool:
    """Whether it is a table of the catalog, and no file."""
    if not re.fullmatch(r"\w+(\.\w+){0,2}", source) or guess_format(source):
        return False
    storage = Storage(spark, source)
    return not storage.exists(storage.root) and spark.catalog.tableExists(source)


def _format(storage: Storage, source: str, *, is_pattern: bool) -> str | None:
    """By the name's extension, else by what is in the folder."""
    if is_pattern:
        return guess_format(source)
    if not storage.exists(storage.root):
        raise InputError(f"{source}: no such file or folder{hint_at_file(source)}")
    names = storage.listed(storage.root)
    if "_delta_log" in names:
        return "delta"
    if found := guess_format(source):
        return found
    inside = {guess_format(name) for name in names if not name.startswith(("_", "."))} - {None}
    if len(inside) > 1:
        raise InputError(
            f"{source}: the folder has files of several formats; name a pattern such as "
            f"{source.rstrip('/')}/*.csv, or the format with --format"
        )
    return next(iter(inside), None)


def _head(spark: SparkSession, place: str) -> list[str]:
    """The first lines that are not blank."""
    rows = spark.read.text(place).limit(100).collect()
    return [row[0] for row in rows if row[0].strip()]


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
    delimiter = options.get("delimiter", options.get("sep")) or _delimiter(head)
    found = _csv(head, delimiter)
    if "sep" in names:
        found.pop("delimiter", None)
    options |= {key: text for key, text in found.items() if key.lower() not in names}
    if options.get("header") == "false":
        notes.append("the first line does not look like column names")
    elif "" in _cells(head[0], delimiter):
        notes.append(
            "the first line leaves names out: by their place, such columns are _c0, _c1, ..."
        )
    if "encoding" in found and "encoding" not in names:
        notes.append("the file is not UTF-8; the encoding is a guess")


def _csv(head: Sequence[str], delimiter: str) -> dict[str, str]:
    options = {"header": "true" if _has_header(head, delimiter) else "false"}
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


def _has_header(head: Sequence[str], delimiter: str) -> bool:
    """Whether the first line names columns: no cell is a number, and at most half of the cells are
    values of their columns further down. Of a line with empty cells, as pandas writes the head of
    its index, or with equal ones, none is."""
    first, *rows = (_cells(line, delimiter) for line in head)
    names = {i: name for i, name in enumerate(first) if name}
    if not names or any(map(_NUMBER.fullmatch, names.values())):
        return False
    below = [row for row in rows if row != first]  # headers of files that were put together
    n_again = sum(any(row[i : i + 1] == [name] for row in below) for i, name in names.items())
    return n_again <= (len(first) / 2 if len({*names.values()}) == len(first) else 0)


def _cells(line: str, delimiter: str) -> list[str]:
    return [cell.strip() for cell in _fields(line, delimiter)]


def _fields(line: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])
    except csv.Error:  # a field of more than 128 KB
        return []

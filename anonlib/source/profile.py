"""The profile of a table for `anonlib init`: counts per column, and how to read a text file,
guessed from its first lines."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from anonlib.config.extension import guess_format
from anonlib.config.keys import read_secret_options
from anonlib.config.model import SourceSection
from anonlib.config.paths import hint_at_file, is_local
from anonlib.errors import InputError
from anonlib.guesses.draft import TableProfile
from anonlib.progress import Progress
from anonlib.source.columnar import explain_types
from anonlib.source.contract import require_same_columns_in_files
from anonlib.source.csv_files import is_utf8
from anonlib.source.csv_start import (
    MOST_ABOVE,
    UTF_16,
    breaks_lines,
    find_lower_header,
    guess_delimiter,
    has_header,
    seems_of_units,
    split_cells,
    split_lines,
)
from anonlib.source.sample_profile import profile_columns
from anonlib.spark.csv_headers import read_start
from anonlib.spark.file_list import list_files
from anonlib.spark.own_files import is_pattern, spell_exactly
from anonlib.spark.session import session
from anonlib.spark.storage import Storage
from anonlib.spark.translation import translate_errors
from anonlib.text import find_alike

#: The most lines by which the options of a reader are guessed.
MOST_LINES = 100
#: What rows of totals, or of averages, begin with, by language.
_TOTALS = (
    *("total", "totals", "grand total", "subtotal", "sum", "average", "mean"),
    *("summe", "gesamt", "gesamtsumme", "insgesamt", "zwischensumme", "mittelwert", "durchschnitt"),
    *("somme", "total général", "total general", "sous-total", "moyenne"),
    *("suma", "razem", "ogółem", "łącznie", "średnia", "suma total", "promedio"),
    *("totale", "somma", "totale generale", "totaal", "eindtotaal", "som", "gemiddelde"),
)


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
    or the source can't be read. Costs one count of the rows, one or two passes over a sample, and
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
        totals = _is_total(raw) if where.format == "csv" else F.lit(False)
        n_rows, n_totals = raw.agg(F.count("*"), F.count_if(totals)).collect()[0]
        if n_rows == 0:
            raise InputError(f"{source}: has no rows, of which a config could be guessed")
        if n_totals:
            where.notes.append(
                f"rows that look like totals, with empty cells after a word such as Total: "
                f"{n_totals}; take them out of the file, or leave them out by source.where"
            )
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


def _is_total(raw: DataFrame) -> Column:
    """Whether a row begins with a word for totals, and has empty cells."""
    first, *others = (F.col(id).cast("string") for id in raw.columns)
    if not others:
        return F.lit(False)
    word = F.lower(F.regexp_replace(first, r"^\s+|[\s:]+$", ""))
    return word.isin(*_TOTALS) & reduce(or_, [each.isNull() for each in others])


def _require_table(source: str, kind: str | None) -> None:
    """Raises InputError if Spark, which takes seconds to start, would find no table in a file."""
    if kind in ("jdbc", "table") or not is_local(source) or re.search(r"[*?\[{]", source):
        return
    path = Path(source)
    if not path.exists():
        of_catalog = kind is None and re.fullmatch(r"\w+(\.\w+){0,2}", source)
        near = hint_at_file(source)
        if not of_catalog or guess_format(source) or near:
            raise InputError(f"{source}: no such file or folder{near}")
    elif path.is_file():
        if path.stat().st_size == 0:
            raise InputError(f"{source}: is empty")
        if kind is None and path.suffix.lower() in (".yaml", ".yml"):
            raise InputError(f"{source}: is YAML, as configs are, and no table")
        if kind is None and guess_format(source) is None:
            raise InputError(f"{source}: its format is not clear; name it with --format")


def _name_notes(names: list[str]) -> list[str]:
    told = "some column names differ in case only; rename them in the source"
    return [told] if find_alike(names) else []


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
        lines = _first_lines(spark, where)
        head = [line for line in lines if line.strip()][:MOST_LINES]
        if not head:
            raise InputError(f"{source}: is empty")
        if kind == "csv":
            _require_header_first(source, lines, where.options)
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


def _first_lines(spark: SparkSession, where: _Where) -> list[str]:
    """The first lines of the first file that is not blank; lines of comments are empty. Adds the
    encoding of CSV files to the options, if it is not given."""
    text = spark.read.text(where.place or "")
    starts = map(read_start(spark), sorted(list_files(text)))
    start = next((each for each in starts if each.strip()), b"")
    given = {key.lower(): text for key, text in where.options.items()}
    encoding = given.get("encoding", given.get("charset"))
    if encoding is None and where.format == "csv":
        if start.startswith(UTF_16):
            encoding = "UTF-16"
            where.options["multiLine"] = "true"
        elif 4 * start.count(0) > len(start):
            raise InputError(
                f"{where.place}: seems to be UTF-16 without a mark at its beginning; convert it to "
                "UTF-8 (`iconv -f UTF-16LE -t UTF-8 OLD > NEW`, or UTF-16BE)"
            )
        elif not is_utf8(text):
            encoding = "windows-1252"
        if encoding is not None:
            where.options["encoding"] = encoding
            where.notes.append(
                f"the encoding {encoding} is a guess from the files, which are not UTF-8"
            )
    lines = split_lines(start, encoding or "UTF-8")[: MOST_LINES + MOST_ABOVE]
    comment = given.get("comment")
    return ["" if comment and line.startswith(comment) else line for line in lines]


def _require_header_first(source: str, lines: Sequence[str], options: Mapping[str, str]) -> None:
    """Raises InputError for a file that seems to have its header below other lines. Options that
    say whether its first line is one are believed."""
    line = find_lower_header(lines, _delimiter(lines, options))
    if line is not None and "header" not in {name.lower() for name in options}:
        raise InputError(
            f"{source}: its header seems to be line {line}, and the lines above it are no rows; "
            f"read a copy without them, made by `tail -n +{line} OLD > NEW` (unpack a packed file "
            "first, and convert UTF-16 to UTF-8). If the first line is the header, or a row, say "
            "so: --option header=true or header=false"
        )


def sniff(kind: str, head: Sequence[str], options: dict[str, str], notes: list[str]) -> None:
    """Adds the reader's options that the user has not given, and notes for the draft."""
    names = {key.lower() for key in options}
    if kind == "json":
        if head[0].lstrip().startswith("[") and "multiline" not in names:
            options["multiLine"] = "true"
        return
    delimiter = _delimiter(head, options)
    found = _csv(head, delimiter)
    if "sep" in names:
        found.pop("delimiter", None)
    options |= {key: text for key, text in found.items() if key.lower() not in names}
    if options.get("header") == "false":
        notes.append("the first line does not look like column names")
    elif "" in split_cells(head[0], delimiter):
        notes.append(
            "the first line leaves names out: by their place, such columns are _c0, _c1, ..."
        )
    if options.get("header") != "false" and seems_of_units(
        [split_cells(line, delimiter) for line in head[1:]]
    ):
        notes.append(
            "the first row has texts where all others have numbers; if it has units of "
            "measurement, take it out of the file"
        )


def _delimiter(lines: Sequence[str], options: Mapping[str, str]) -> str:
    given = {name.lower(): text.replace("\\t", "\t") for name, text in options.items()}
    told = given.get("sep", given.get("delimiter"))
    return told or guess_delimiter([line for line in lines if line.strip()])


def _csv(head: Sequence[str], delimiter: str) -> dict[str, str]:
    cells = [split_cells(line, delimiter) for line in head]
    options = {"header": "true" if has_header(cells) else "false"}
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
    if breaks_lines(head, delimiter):
        options["multiLine"] = "true"
    return options

"""Checks CSV files: the same header in every file, quotes that open and close fields."""

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from anonlib.errors import InputError
from anonlib.source.csv_start import find_names, split_lines
from anonlib.spark.csv_headers import read_header, read_start
from anonlib.spark.file_list import N_THREADS, hide_values


class Dialect:
    """How CSV files are written: the options of their reader, with names in lower case."""

    def __init__(self, options: Mapping[str, str]):
        self.options = dict(options)
        self.sep = options.get("sep", options.get("delimiter", ",")).replace("\\t", "\t")
        self.quote = options.get("quote", '"').strip("\0")
        self.escape = options.get("escape", "\\").strip("\0")
        self.comment = options.get("comment", "").strip("\0")
        self.header = options.get("header", "false").strip().lower() == "true"
        self.multiline = options.get("multiline", "false").strip().lower() == "true"
        self.encoding = options.get("encoding", options.get("charset", "UTF-8"))
        self.trims = options.get("ignoreleadingwhitespace", "false").strip().lower() == "true"

    @property
    def line(self) -> str:
        """A Java pattern for lines in which every quote that opens a field also closes it."""
        sep, quote = rf"\Q{self.sep}\E", rf"\Q{self.quote}\E"
        inside = rf"(?:(?!{quote}).)*+"
        if self.escape == self.quote:
            inside = rf"(?:(?!{quote}).|{quote}{quote})*+"
        elif self.escape:
            escape = rf"\Q{self.escape}\E"
            inside = rf"(?:(?!{quote}|{escape}).|{escape}.)*+"
        blanks = rf"(?:(?!{sep})[\x00-\x20])*+"
        before = blanks if self.trims else ""
        field = rf"(?:{before}{quote}{inside}{quote}{blanks}|(?!{before}{quote})(?:(?!{sep}).)*+)"
        return rf"(?s)\A{field}(?:{sep}{field})*+\z"


def require_headers(
    spark: SparkSession,
    dialect: Dialect,
    paths: Collection[str],
    names: Sequence[str],
    own: Collection[str] = (),
) -> None:
    """Checks that all files have the same header. Reads the first line of every file.

    Args:
        spark: The session.
        dialect: How the files are written.
        paths: The files.
        names: The columns that Spark has found.
        own: Columns that the files should have.

    Raises InputError with the number of files whose header differs, or is below other lines, and
    the path of one.
    """
    if not dialect.header:
        if len(paths) > 1:
            raise InputError(
                f"source.options.header: without headers it is unknown whether the {len(paths)} "
                "files have the same columns; give them headers, or make one file of them"
            )
        return
    with ThreadPoolExecutor(N_THREADS) as threads:
        headers = dict(
            zip(paths, threads.map(read_header(spark, dialect.options), paths), strict=True)
        )
    found = {path: header for path, header in headers.items() if header is not None}
    null = dialect.options.get("nullvalue", "")
    for header in found.values():
        header[:] = [f"_c{i}" if n in ("", null) else n for i, n in enumerate(header)]
    _require_first(spark, dialect, [p for p, h in found.items() if not {*own} <= {*h}], own)
    exact = spark.conf.get("spark.sql.caseSensitive") == "true"
    repeated = {path: _find_repeated(header, exact=exact) for path, header in found.items()}
    if twice := [path for path, places in repeated.items() if places]:
        *others, last = repeated[min(twice)]
        same = "the same name" if exact else "the same name, or names that differ in case only"
        raise InputError(
            f"source: in the header of {_files(twice)} columns {', '.join(map(str, others))} and "
            f"{last} have {same}; give each column a name of its own"
        )
    if other := [path for path, header in found.items() if header != [*names]]:
        raise InputError(
            f"source: the header differs in {_files(other)} of {len(paths)}; give all files the "
            "same header, in the same order, and with the quotes of source.options"
        )


def _require_first(
    spark: SparkSession, dialect: Dialect, paths: Sequence[str], names: Collection[str]
) -> None:
    """Raises InputError for files in which a line further down has all these names."""
    with ThreadPoolExecutor(N_THREADS) as threads:
        starts = dict(zip(paths, threads.map(read_start(spark), paths), strict=True))
    texts = {path: split_lines(start, dialect.encoding) for path, start in starts.items()}
    lines = {path: find_names(each, dialect.sep, names) for path, each in texts.items()}
    if below := sorted(path for path, line in lines.items() if line is not None):
        line = lines[below[0]]
        raise InputError(
            f"source: the header is line {line} of {_files(below)} and Spark takes the first line "
            f"for it; read a copy without the lines above, made by `tail -n +{line} OLD > NEW` "
            "(unpack a packed file first, and convert UTF-16 to UTF-8)"
        )


def _find_repeated(header: Sequence[str], *, exact: bool) -> list[int]:
    """The places, from 1, of a name that a header has several times; empty if there is none. Errors
    give places: a file without a header has values there."""
    places: dict[str, list[int]] = {}
    for i, name in enumerate(header, 1):
        places.setdefault(name if exact else name.lower(), []).append(i)
    return next((each for each in places.values() if len(each) > 1), [])


def _files(paths: Sequence[str]) -> str:
    path = hide_values(min(paths))
    return f"{len(paths)} files, such as {path}," if len(paths) > 1 else f"file {path}"


def is_header(dialect: Dialect, names: Sequence[str], ids: Sequence[str]) -> Column:
    """Whether the values of a row are the names of the columns, in any order."""
    if not dialect.header or not names:
        return F.lit(False)
    values = [F.coalesce(F.col(id).cast("string"), F.lit("")) for id in ids]
    return values[0].isin([*names]) & (
        F.array_sort(F.array(*values)) == F.array(*map(F.lit, sorted(names)))
    )


def require_quotes(lines: DataFrame, dialect: Dialect) -> None:
    """Raises InputError if quotes don't open and close fields; it says in how many lines, and in
    which file.

    Args:
        lines: The files as text.
        dialect: How they are written.
    """
    if not dialect.quote:
        return
    file, value = lines.metadataColumn("_metadata").getField("file_path"), F.col("value")
    if dialect.multiline:
        escaped = ""
        if dialect.escape and dialect.escape != dialect.quote:
            escaped = rf"(?s)\Q{dialect.escape}\E."
        plain = F.regexp_replace(value, escaped, "") if escaped else value
        n_quotes = F.length(plain) - F.length(F.replace(plain, F.lit(dialect.quote), F.lit("")))
        odd = lines.groupBy(file.alias("file")).agg(F.sum(n_quotes).alias("n")).where("n % 2 = 1")
        n, path = odd.agg(F.count("*"), F.min("file")).collect()[0]
        if n:
            raise InputError(
                f"source: a quote is not closed in {n} files, such as {hide_values(path)}; "
                "mend it, or set source.options.quote and escape"
            )
        return
    wrong = value.contains(dialect.quote) & ~value.rlike(dialect.line)
    if dialect.comment:
        wrong &= ~value.startswith(dialect.comment)
    n, path = lines.agg(F.count_if(wrong), F.min(F.when(wrong, file))).collect()[0]
    if n:
        raise InputError(
            f"source: in {n} lines quotes don't open and close a field, as in "
            f"{hide_values(path)}; if quoted "
            'values hold line breaks, set source.options.multiLine: "true"; if quotes in them are '
            "doubled, set source.options.escape: '\"'"
        )


def is_utf8(lines: DataFrame) -> bool:
    """Whether files are UTF-8. One pass over them.

    Raises InputError if some are and others are not, or if they are not windows-1252 either.

    lines: The files as text.
    """
    text = F.col("value")
    bytes_of, of_none = text.cast("binary"), (b"\x81", b"\x8d", b"\x8f", b"\x90", b"\x9d")
    odd = reduce(or_, [F.contains(bytes_of, F.lit(byte)) for byte in of_none])
    by_file = _count_utf8(lines, F.bool_or(~F.is_valid_utf8(text) & odd).alias("odd"))
    counts = by_file.agg(
        F.count_if(~F.col("utf8")),
        F.min(F.when(~F.col("utf8"), F.col("file"))),
        F.count_if(F.col("utf8") & (F.col("wide") > 0)),
        F.bool_or("odd"),
    )
    n_others, path, n_utf8, is_odd = counts.collect()[0]
    if n_others and n_utf8:
        raise InputError(
            f"source: files that are UTF-8: {n_utf8}; that are not: {n_others}, such as "
            f"{hide_values(path)}; convert these to UTF-8"
        )
    if is_odd:
        raise InputError(
            f"source: {hide_values(path)} is neither UTF-8 nor windows-1252; name the encoding "
            "with --option encoding=NAME, such as windows-1250, or convert it to UTF-8"
        )
    return not n_others


def require_no_utf8(lines: DataFrame, encoding: str) -> None:
    """Raises InputError for files that are UTF-8 and are read by another encoding: the same text
    would be another one in other files. One pass over them.

    Args:
        lines: The files as text.
        encoding: One in which each byte is a character.
    """
    found = _count_utf8(lines).where("utf8 and wide > 0")
    n, path = found.agg(F.count("*"), F.min("file")).collect()[0]
    if n:
        raise InputError(
            f"source: files that are UTF-8, and not {encoding}: {n}, such as {hide_values(path)}; "
            "remove the encoding from source.options, and convert files that are not UTF-8"
        )


def _count_utf8(lines: DataFrame, *more: Column) -> DataFrame:
    """By `file`: `wide`, its lines in UTF-8 that have more than ASCII, and whether it is `utf8`:
    whether fewer lines are not. Hardly a line in another encoding is one in UTF-8 by chance, so a
    damaged line makes no other encoding of a file."""
    text = F.col("value")
    file = lines.metadataColumn("_metadata").getField("file_path").alias("file")
    is_valid = F.is_valid_utf8(text)
    n_wide = F.count_if(is_valid & (F.octet_length(text) > F.char_length(text)))
    n_bad = F.count_if(~is_valid)
    utf8 = ((n_bad == 0) | (n_bad < n_wide)).alias("utf8")
    return lines.groupBy(file).agg(utf8, n_wide.alias("wide"), *more)

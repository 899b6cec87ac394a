"""Checks Parquet and ORC files: types that Spark reads, the same columns, with the same types, in
every file."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from anonlib.errors import InputError, Problem
from anonlib.spark.file_list import N_THREADS, hide_values, list_files
from anonlib.spark.footers import READERS, find_unreadable
from anonlib.spark.translation import find_conditions

#: The beginnings of Spark's names of errors for types of Parquet that it does not read.
_UNREADABLE = ("PARQUET_TYPE_", "UNSUPPORTED_TIME_TYPE")
#: Options that choose the files, in lower case.
_CHOOSING = ("recursivefilelookup", "pathglobfilter")


@contextmanager
def explain_types(
    spark: SparkSession, kind: str, path: str | None, options: Mapping[str, str]
) -> Iterator[None]:
    """Explains failures of the body that come from types of Parquet which Spark does not read: its
    own errors name no column.

    Args:
        spark: The session.
        kind: The format.
        path: The file, folder or glob that the body reads, as readers are given it; None for a
            table.
        options: Options of its reader.

    Raises InputError with the columns of the first file that has some, and what to do.
    """
    try:
        yield
    except AnalysisException as error:
        if kind != "parquet" or path is None or not _is_of_type(error):
            raise
        chosen = {name: text for name, text in options.items() if name.lower() in _CHOOSING}
        files = list_files(spark.read.format("binaryFile").options(**chosen).load(path))
        found = ([*find_unreadable(spark, place)] for place in sorted(files))
        columns = next(filter(None, found), [])
        if not columns:
            raise
    else:
        return
    problems = [Problem(f"column {name}", _describe_type(type)) for name, type in columns]
    raise InputError("\n".join(map(str, problems)))


def _is_of_type(error: Exception) -> bool:
    return any(name.startswith(_UNREADABLE) for name, _ in find_conditions(error))


def _describe_type(type: str) -> str:
    """What is said of a column that has a type, in Parquet's words, which Spark does not read."""
    if "TIMESTAMP(NANOS" in type:
        return (
            "has times in nanoseconds, which Spark can't read; write them in microseconds, with "
            'pandas by df.to_parquet(..., coerce_timestamps="us", '
            "allow_truncated_timestamps=True)"
        )
    if "TIME" in type:
        return "has times of day, which Spark can't read; make them text or numbers"
    return f"has a type that Spark can't read, {type.strip()}; write it as another one"


def require_same_columns(
    spark: SparkSession,
    kind: str,
    paths: Collection[str],
    names: Collection[str],
    known: Collection[str],
) -> None:
    """Checks that all files have the columns, with one type. Reads the footer of every file.

    Args:
        spark: The session.
        kind: parquet or orc.
        paths: The files.
        names: The columns that must be in every file, with one type, if they are in any or `known`.
        known: The columns that are read from the files.

    Raises InputError with the number of files that lack a column, or have another type than most
    files, and the path of one.
    """
    if len(paths) < 2:
        return
    read = READERS[kind](spark)
    with ThreadPoolExecutor(N_THREADS) as threads:
        footers = dict(zip(paths, threads.map(read, paths), strict=True))
    exact = spark.conf.get("spark.sql.caseSensitive") == "true"
    problems = [*find_differences(footers, names, known, exact=exact)]
    if problems:
        raise InputError("\n".join(map(str, problems)))


def find_differences(
    footers: Mapping[str, StructType],
    names: Collection[str],
    known: Collection[str],
    *,
    exact: bool,
) -> Iterable[Problem]:
    """The columns that files lack, or have with another type.

    Args:
        footers: By path of a file: its columns.
        names: The columns that are read.
        known: Those that some files have.
        exact: Whether names that differ in case are two columns.
    """

    def key(name: str) -> str:
        return name if exact else name.lower()

    read = {*map(key, known)}
    types = {
        path: {key(field.name): field.dataType.simpleString() for field in schema}
        for path, schema in footers.items()
    }
    for name in names:
        found = {path: columns.get(key(name)) for path, columns in types.items()}
        there = [type for type in found.values() if type is not None]
        if not there and key(name) not in read:
            continue
        usual = max(sorted(set(there)), key=there.count, default=None)
        lacking = sorted(path for path, type in found.items() if type is None)
        other = sorted(path for path, type in found.items() if type not in (None, usual))
        if lacking:
            yield Problem(
                f"column {name}",
                f"{len(lacking)} of {len(types)} files lack it, such as "
                f"{hide_values(lacking[0])}; add it there, or give it `role: drop`",
            )
        if other:
            yield Problem(
                f"column {name}",
                f"is {usual}, but {len(other)} of {len(types)} files have another type, such as "
                f"{hide_values(other[0])}; write them with one type",
            )

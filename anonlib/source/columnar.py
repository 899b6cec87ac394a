"""Checks Parquet and ORC files: the same columns, with the same types, in every file."""

from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from anonlib.errors import InputError, Problem
from anonlib.spark.file_list import hide_values
from anonlib.spark.footers import READERS

#: Footers read in parallel.
N_THREADS = 16


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
    problems = [*_differences(footers, names, known, exact=exact)]
    if problems:
        raise InputError("\n".join(map(str, problems)))


def _differences(
    footers: Mapping[str, StructType],
    names: Collection[str],
    known: Collection[str],
    *,
    exact: bool,
) -> Iterable[Problem]:
    def key(name: str) -> str:
        return name if exact else name.casefold()

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

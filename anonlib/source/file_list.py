"""The files that a DataFrame reads, as Spark lists them: paths, lengths, times of modification."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pyspark.sql import DataFrame

from anonlib.errors import BusyError, InputError
from anonlib.spark.jvm import scala_seq
from anonlib.spark.translation import translate_errors

#: By path of a file: its length and its time of modification.
Listing = Mapping[str, tuple[int, int]]

#: Spark's classes of file lists, without those of Delta, whose versions pin the files.
_INDEXES = ("InMemoryFileIndex", "CatalogFileIndex")
#: A file in the text of a list.
_STATUS = re.compile(
    r"FileStatus\{path=(.*?); isDirectory=false; length=(\d+);.*?modification_time=(\d+)", re.DOTALL
)


def relations(frame: DataFrame) -> Iterator[Any]:
    """What a DataFrame reads from files, as Spark's HadoopFsRelation."""
    leaves = frame._jdf.queryExecution().analyzed().collectLeaves()
    for i in range(leaves.size()):
        leaf = leaves.apply(i)
        if leaf.getClass().getSimpleName() == "LogicalRelation":
            relation = leaf.relation()
            if relation.getClass().getSimpleName() == "HadoopFsRelation":
                yield relation


def list_files(frame: DataFrame, *, again: bool = False) -> Listing:
    """The files that a DataFrame reads, without empty ones and those of Delta tables.

    again: Whether to list them anew.
    """
    files: dict[str, tuple[int, int]] = {}
    none = scala_seq(frame.sparkSession, [])
    for relation in relations(frame):
        index = relation.location()
        if index.getClass().getSimpleName() not in _INDEXES:
            continue
        if again:
            index.refresh()
        text = index.listFiles(none, none).mkString("\n")
        files |= {path: (int(size), int(at)) for path, size, at in _STATUS.findall(text)}
    return files


def require_all_read(frame: DataFrame) -> None:
    """Raises InputError if there are files in subfolders that Spark would not read."""
    for relation in relations(frame):
        index = relation.location()
        if index.getClass().getSimpleName() != "InMemoryFileIndex":
            continue
        options = relation.options()
        if any(options.contains(name) for name in ("pathGlobFilter", "pathglobfilter")):
            continue
        n_left = index.leafFiles().size() - index.allFiles().size()
        if n_left > 0:
            raise InputError(
                f"source.path: {n_left} files in folders below it would not be read; set "
                'source.options.recursiveFileLookup: "true", or name the files by a glob'
            )


def require_same_files(before: Listing, frame: DataFrame) -> None:
    """Raises BusyError unless the files of a DataFrame are the same as before."""
    with translate_errors("source"):
        now = list_files(frame, again=True) if before else before
    if now == before:
        return
    added, gone = sorted(now.keys() - before.keys()), sorted(before.keys() - now.keys())
    changed = sorted(path for path in now.keys() & before.keys() if now[path] != before[path])
    parts = (("added", added), ("gone", gone), ("changed", changed))
    found = ", ".join(f"{len(paths)} {said} ({paths[0]})" for said, paths in parts if paths)
    raise BusyError(
        f"source: its files changed while they were read: {found}; nothing was published; run "
        "again when nobody writes to them, or on a copy"
    )

"""The files that a DataFrame reads, as Spark lists them: paths, lengths, times of modification."""

import re
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from anonlib.errors import BusyError, InputError
from anonlib.spark.jvm import find_class, make_scala_seq, make_struct_type, read_scala_map
from anonlib.spark.translation import translate_errors

#: By path of a file: its length and its time of modification.
Listing = Mapping[str, tuple[int, int]]

#: Delta's relations are of classes without a name below this one.
_RELATION = "org.apache.spark.sql.execution.datasources.HadoopFsRelation"
#: What files are of in Spark's other readers.
_OTHER = "org.apache.spark.sql.execution.datasources.v2.FileTable"
#: Spark's lists of files. Those of Delta are pinned by versions.
_INDEXES = ("InMemoryFileIndex", "CatalogFileIndex")
#: Delta's list of the files of a table.
_DELTA = "TahoeLogFileIndex"
#: What reads formats that are quick to read again.
_COLUMNAR = ("ParquetFileFormat", "OrcFileFormat", "DeltaParquetFileFormat")
#: A file in the text of a list.
_STATUS = re.compile(
    r"FileStatus\{path=(.*?); isDirectory=false; length=(\d+);.*?modification_time=(\d+)", re.DOTALL
)
#: Files of a source that are read in parallel.
N_THREADS = 16


def hide_values(path: str) -> str:
    """The path of a file without the values of columns in the names of its folders, for errors:
    /people/city=.../part-0.csv."""
    return re.sub(r"(?<=/)([^/=]+=)[^/]+(?=/)", r"\1...", path)


def list_relations(frame: DataFrame) -> Iterator[Any]:
    """The folders of files that a frame reads, as Spark's HadoopFsRelation, Delta tables included.

    Raises InputError for files that are read by another reader than Spark's own.
    """
    kind, other = (find_class(frame.sparkSession, name) for name in (_RELATION, _OTHER))
    plan = frame._jdf.queryExecution().analyzed()
    for part in (plan, *_members(plan.subqueriesAll())):
        for leaf in _members(part.collectLeaves()):
            name = leaf.getClass().getSimpleName()
            if name == "DataSourceV2Relation" and other.isInstance(leaf.table()):
                raise InputError(
                    "source: its files are read by another reader than Spark's own; remove it from "
                    "Spark's classes, and spark.sql.sources.useV1SourceList from its settings"
                )
            if name == "LogicalRelation" and kind.isInstance(leaf.relation()):
                yield leaf.relation()


def read_options(spark: SparkSession, relation: Any) -> dict[str, str]:
    """The options that a relation's files are read by, with names in lower case."""
    return {name.lower(): text for name, text in read_scala_map(spark, relation.options()).items()}


def read_file_schema(relation: Any) -> StructType:
    """The columns that are in a relation's files."""
    return make_struct_type(relation.dataSchema())


def list_folder_columns(relation: Any) -> list[str]:
    """The columns that are in the names of the folders of a relation's files."""
    return list(make_struct_type(relation.partitionSchema()).names)


def _columnar_table(frame: DataFrame) -> Any:
    """The relation of a frame that is one table of columnar files and nothing else. None for other
    frames: what they join, compute or read by row would be done again in every pass."""
    plan = frame._jdf.queryExecution().analyzed()
    while plan.getClass().getSimpleName() == "SubqueryAlias":
        plan = plan.child()
    if plan.getClass().getSimpleName() != "LogicalRelation":
        return None
    found = [*list_relations(frame)]
    kinds = [relation.fileFormat().getClass().getSimpleName() for relation in found]
    return found[0] if kinds and kinds[0] in _COLUMNAR else None


def can_read_again(frame: DataFrame) -> bool:
    """Whether it is cheap to read a frame several times, and each time reads the same files: a list
    of columnar files, or a version of a Delta table."""
    table = _columnar_table(frame)
    if table is None:
        return False
    index = table.location()
    kind = index.getClass().getSimpleName()
    return kind in _INDEXES or (kind == _DELTA and index.isTimeTravelQuery())


def find_newest_version(frame: DataFrame) -> int | None:
    """The version that a Delta table is at, for a frame that reads it whole; None for others."""
    table = _columnar_table(frame)
    if table is None or table.location().getClass().getSimpleName() != _DELTA:
        return None
    return int(table.location().getSnapshot().version())


def _members(sequence: Any) -> Iterator[Any]:
    return (sequence.apply(i) for i in range(sequence.size()))


def list_files(frame: DataFrame, *, again: bool = False) -> Listing:
    """The files that a DataFrame reads, without empty ones and those of Delta tables.

    again: Whether to list them anew.
    """
    found: dict[str, tuple[int, int]] = {}
    for relation in list_relations(frame):
        if again and relation.location().getClass().getSimpleName() in _INDEXES:
            relation.location().refresh()
        found |= list_files_of(frame.sparkSession, relation)
    return found


def digest_listing(files: Listing) -> str:
    """The SHA-256 of a listing, in hex: it changes if a file is added, removed or written again."""
    lines = (f"{path}\0{size}\0{at}\n" for path, (size, at) in sorted(files.items()))
    return sha256("".join(lines).encode()).hexdigest()


def list_files_of(spark: SparkSession, relation: Any) -> Listing:
    """The files of one of a frame's relations, as `list_files` has them."""
    index, all_of_them = relation.location(), make_scala_seq(spark, [])
    if index.getClass().getSimpleName() not in _INDEXES:
        return {}
    text = index.listFiles(all_of_them, all_of_them).mkString("\n")
    return {path: (int(size), int(at)) for path, size, at in _STATUS.findall(text)}


def list_roots(frame: DataFrame) -> frozenset[str]:
    """The folders, and files, that a frame's relations are of, Delta tables included."""
    return frozenset(
        root.toString()
        for relation in list_relations(frame)
        for root in _members(relation.location().rootPaths())
    )


def require_all_read(frame: DataFrame) -> None:
    """Raises InputError if there are files in subfolders that Spark would not read."""
    for relation in list_relations(frame):
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
    found = ", ".join(
        f"{len(paths)} {said} ({hide_values(paths[0])})" for said, paths in parts if paths
    )
    raise BusyError(
        f"source: its files changed while they were read: {found}; nothing was published; run "
        "again when nobody writes to them, or on a copy"
    )

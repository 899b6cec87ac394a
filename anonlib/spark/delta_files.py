"""The data files of a Delta table.

They are written before, or without, the commit that names them. They are read by their paths, since
Delta would list the files of a table anew for every query.
"""

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import time_ns
from typing import Any
from urllib.parse import unquote

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    DataType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from anonlib.errors import InputError, StorageError
from anonlib.spark.digest import digest
from anonlib.spark.expressions import quote_name
from anonlib.spark.jvm import (
    find_java_class,
    make_none,
    make_scala_map,
    make_scala_seq,
    make_struct_type,
)
from anonlib.spark.own_files import read_exactly
from anonlib.spark.storage import Storage
from anonlib.table.table_digest import Digest

#: Characters that Delta allows in a column name only with column mapping.
MAPPED = set(" ,;{}()\n\t=")
PHYSICAL_NAME = "delta.columnMapping.physicalName"
DELTA = "org.apache.spark.sql.delta"
_COMMIT = re.compile(r"\d{20}\.json")
#: The file of a row, while the values of its folder are looked up.
_FILE = "__anonlib_file_name"


@dataclass(frozen=True)
class Transaction:
    """A Delta transaction on a table.

    Attributes:
        spark: The session.
        root: The path of the table.
        log: Delta's log object.
        handle: Delta's transaction object.
    """

    spark: SparkSession
    root: str
    log: Any
    handle: Any

    @classmethod
    def begin(cls, spark: SparkSession, root: str) -> "Transaction":
        """Begins a transaction on the table at a path. The table may not exist yet."""
        log = open_delta_log(spark, root)
        return cls(spark, root, log, log.startTransaction())

    def write(
        self,
        frame: DataFrame,
        mode: Any,
        partition_by: Sequence[str] = (),
        options: Mapping[str, str] = {},
        properties: Mapping[str, str] = {},
    ) -> Any:
        """Writes the rows of a frame, without a commit.

        Args:
            frame: The rows.
            mode: Spark's save mode, from `save_mode`.
            partition_by: The columns that files are laid out by.
            options: Options of Delta's writer.
            properties: Properties of the table.

        Returns:
            The actions that a commit needs to add the rows to the table. Files of failed tasks are
            not among them.
        """
        spark, absent = self.spark, make_none(self.spark)
        session: Any = spark._jsparkSession
        given = make_scala_map(spark, options), session.sessionState().conf()
        command = find_java_class(spark, f"{DELTA}.commands.WriteIntoDelta")(
            self.log,
            mode,
            find_java_class(spark, f"{DELTA}.DeltaOptions")(*given),
            make_scala_seq(spark, partition_by),
            make_scala_map(spark, {**properties, **name_mapping(frame.schema)}),
            frame._jdf,
            absent,
            absent,
            False,
        )
        return command.write(self.handle, session, absent, False)

    @property
    def schema(self) -> StructType:
        """The columns of the table, as Delta describes them."""
        return make_struct_type(self.handle.metadata().schema())

    def metadata_without(self, name: str) -> Any:
        """Delta's metadata of the table, without the property of a name."""
        action = json.loads(self.handle.metadata().json())
        action["metaData"]["configuration"].pop(name, None)
        actions = find_java_class(self.spark, f"{DELTA}.actions.Action")
        return actions.fromJson(json.dumps(action))

    def with_removals(self, actions: Any, *, of_all: bool) -> Any:
        """Actions without those that remove files, or with those that remove all files of the
        table."""
        found = [actions.apply(i) for i in range(actions.size())]
        kept = [a for a in found if a.getClass().getSimpleName() != "RemoveFile"]
        removed = []
        if of_all:
            there, now = self.handle.filterFiles(), time_ns() // 1_000_000
            removed = [there.apply(i).removeWithTimestamp(now, True) for i in range(there.size())]
        return make_scala_seq(self.spark, [*kept, *removed])

    def read(self, actions: Any, like: StructType, *, file: str | None = None) -> DataFrame:
        """Reads the rows of the files that some actions add. Any value may be null.

        Args:
            actions: The actions.
            like: The written columns in their order: their names and types in the result.
            file: The name of a further column, which has the file of each row; None for none.
        """
        inside = make_nullable(
            self.schema, lambda field: field.metadata.get(PHYSICAL_NAME, field.name)
        )
        entries = [json.loads(action.json())["add"] for action in _list_adds(actions)]
        paths = [f"{self.root}/{unquote(add['path'])}" for add in entries]
        laid_out_by = {name for add in entries for name in add["partitionValues"]}
        folders = [name for name in inside.names if name in laid_out_by]
        within = StructType([field for field in inside.fields if field.name not in folders])
        rows = read_exactly(self.spark, "parquet", within, paths)
        named = [] if file is None else [F.input_file_name().alias(file)]
        if folders:
            named.append(F.substring_index(F.input_file_name(), "/", -1).alias(_FILE))
        found = rows.select(*map(_column, within.names), *named)
        if folders:
            values = _read_folders(self.spark, entries, inside, folders)
            found = found.join(F.broadcast(values), _FILE).drop(_FILE)
        # Cast also to the names inside structs, since hashes of maps depend on them.
        outside = make_nullable(like)
        cast = [
            _column(name).cast(field.dataType).alias(field.name)
            for name, field in zip(inside.names, outside, strict=True)
        ]
        return found.select(*cast, *([] if file is None else [_column(file)]))


def _read_folders(
    spark: SparkSession,
    entries: Sequence[Mapping[str, Any]],
    schema: StructType,
    folders: Sequence[str],
) -> DataFrame:
    """The values of the columns that files are laid out by, for each file: those of the log, cast
    as Delta casts them for readers. The names of folders may have others: Delta's writer loses the
    era of a time before the year 1 in the log."""
    texts = StructType([StructField(name, StringType()) for name in (_FILE, *folders)])
    rows = [
        (unquote(add["path"]).rpartition("/")[2], *map(add["partitionValues"].get, folders))
        for add in entries
    ]
    times = [i for i, n in enumerate(folders, 1) if isinstance(schema[n].dataType, TimestampType)]
    if any(row[i] is not None and not row[i].endswith("Z") for row in rows for i in times):
        raise StorageError(
            "release.path: Delta's log has times of folders without a zone, which each reader "
            "takes for others; nothing was published: remove what sets "
            "spark.databricks.delta.write.utcTimestampPartitionValues, or remove the column from "
            "release.partition_by"
        )
    cast = [_column(name).try_cast(schema[name].dataType).alias(name) for name in folders]
    return spark.createDataFrame(rows, texts).select(_FILE, *cast)


def digest_files(
    spark: SparkSession, root: str, version: int, names: Collection[str]
) -> tuple[Digest, set[str]]:
    """The digest of the rows that a version of a table has in files of these names, wherever they
    lie, and the names that were found. Rows that are marked as deleted are left out."""
    table = spark.read.format("delta").option("versionAsOf", version).load(root)
    name = F.col("_metadata.file_name")
    rows = table.where(name.isin(*names))
    found = {row[0] for row in rows.select(name.alias("name")).distinct().collect()}
    return digest(rows.select(*map(_column, table.columns))), found


def open_delta_log(spark: SparkSession, root: str) -> Any:
    """Delta's log of the table at a path. The table need not exist."""
    return find_java_class(spark, f"{DELTA}.DeltaLog").forTable(spark._jsparkSession, root)


@contextmanager
def explain_damage(spark: SparkSession, path: str, where: str) -> Iterator[None]:
    """Explains a failure of the body that comes from a damaged log of the Delta table at a path:
    names the first commit that can't be read. `where` is what the error begins with."""
    try:
        yield
    except (InputError, StorageError):
        damaged = find_damage(Storage(spark, path))
        if damaged is None:
            raise
        raise InputError(
            f"{where}: {damaged} is damaged: restore it from a copy, or use another table"
        ) from None


def find_damage(storage: Storage) -> str | None:
    """The first commit of a table that is missing between others, or is no JSON."""
    log = f"{storage.root}/_delta_log"
    commits = [name for name in storage.listed(log) if _COMMIT.fullmatch(name)]
    for i, name in enumerate(commits):
        expected = f"{int(commits[0][:20]) + i:020}.json"
        if name != expected:
            return f"{log}/{expected}, which is missing,"
        try:
            actions = read_commit(storage, f"{log}/{name}")
        except ValueError:
            return f"{log}/{name}"
        if not all(isinstance(action, dict) for action in actions):
            return f"{log}/{name}"
    return None


def read_commit(storage: Storage, path: str) -> list[Any]:
    """The actions of a commit's file. Raises ValueError if it is no JSON."""
    # Not by `splitlines`: values in statistics may have other ends of lines.
    return [json.loads(line) for line in storage.read(path).split("\n") if line.strip()]


def forget(spark: SparkSession, root: str) -> None:
    """Drops the driver's cache of a table's log.

    Delta keeps a log for an hour, with the table's state as Spark blocks, even if the table is
    gone. So a driver's memory would grow with each release.
    """
    path = find_java_class(spark, "org.apache.hadoop.fs.Path")(root)
    find_java_class(spark, f"{DELTA}.DeltaLog").invalidateCache(spark._jsparkSession, path)


def save_mode(spark: SparkSession, name: str) -> Any:
    """Spark's save mode of a name, such as Append or Overwrite."""
    return getattr(find_java_class(spark, "org.apache.spark.sql.SaveMode"), name)


def name_mapping(schema: StructType) -> dict[str, str]:
    """The properties that a Delta table needs for the names in a schema."""
    needed = any(set(name) & MAPPED for name in _names(schema))
    return {"delta.columnMapping.mode": "name"} if needed else {}


def _column(name: str) -> Column:
    return F.col(quote_name(name))


def _names(type: DataType) -> list[str]:
    """The names of all fields, including those inside structs."""
    if isinstance(type, StructType):
        return [n for field in type.fields for n in (field.name, *_names(field.dataType))]
    if isinstance(type, ArrayType):
        return _names(type.elementType)
    return [*_names(type.keyType), *_names(type.valueType)] if isinstance(type, MapType) else []


def make_nullable(type: Any, name: Callable[[StructField], str] = lambda field: field.name) -> Any:
    """A type with every part nullable, as it is in files, and fields named by `name`."""
    if isinstance(type, StructType):
        fields = [StructField(name(f), make_nullable(f.dataType, name)) for f in type.fields]
        return StructType(fields)
    if isinstance(type, ArrayType):
        return ArrayType(make_nullable(type.elementType, name))
    if isinstance(type, MapType):
        return MapType(make_nullable(type.keyType, name), make_nullable(type.valueType, name))
    return type


def list_added_files(actions: Any) -> list[str]:
    """The paths of new files within the table. They are decoded, since the log encodes them."""
    return [unquote(action.path()) for action in _list_adds(actions)]


def _list_adds(actions: Any) -> list[Any]:
    found = [actions.apply(i) for i in range(actions.size())]
    return [action for action in found if action.getClass().getSimpleName() == "AddFile"]

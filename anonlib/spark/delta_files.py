"""The data files of a Delta table: written before, or without, the commit that names them, and read
by their paths, since Delta lists the files of a table anew for every query of it."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from anonlib.spark.jvm import java_class, none, scala_map, scala_seq

#: Characters that Delta takes in a column name with column mapping only.
MAPPED = set(" ,;{}()\n\t=")
PHYSICAL_NAME = "delta.columnMapping.physicalName"
DELTA = "org.apache.spark.sql.delta"


@dataclass(frozen=True)
class Transaction:
    """A transaction of Delta's on the table at `root`, by its log: both are Delta's own objects."""

    spark: SparkSession
    root: str
    log: Any
    begun: Any

    @classmethod
    def begin(cls, spark: SparkSession, root: str) -> "Transaction":
        """On the table at a path, or on none yet."""
        log = delta_log(spark, root)
        return cls(spark, root, log, log.startTransaction())

    def write(
        self,
        frame: DataFrame,
        mode: Any,
        partition_by: Sequence[str] = (),
        options: Mapping[str, str] = {},
        properties: Mapping[str, str] = {},
    ) -> Any:
        """Writes the rows of a frame, and returns the actions of a commit that would add them to
        the table in one of Spark's save modes. Files of failed tasks are not among them."""
        spark, absent = self.spark, none(self.spark)
        session: Any = spark._jsparkSession
        given = scala_map(spark, options), session.sessionState().conf()
        command = java_class(spark, f"{DELTA}.commands.WriteIntoDelta")(
            self.log,
            mode,
            java_class(spark, f"{DELTA}.DeltaOptions")(*given),
            scala_seq(spark, partition_by),
            scala_map(spark, {**properties, **name_mapping(frame.schema)}),
            frame._jdf,
            absent,
            absent,
            False,
        )
        return command.write(self.begun, session, absent, False)

    def read(self, actions: Any, like: StructType) -> DataFrame:
        """The rows of the files that these actions add. Names and types are those of `like`, the
        written columns in their order; any value may be null."""
        schema = StructType.fromJson(json.loads(self.begun.metadata().schema().json()))
        inside = _nullable(schema, lambda field: field.metadata.get(PHYSICAL_NAME, field.name))
        paths = [_literal(f"{self.root}/{path}") for path in list_added_files(actions)]
        reader = self.spark.read.schema(inside).option("basePath", self.root)
        # By name: columns that files are laid out by come last.
        found = reader.parquet(*paths).select(*[_column(name) for name in inside.names])
        # With the names inside structs, too, which hashes of maps show.
        outside = _nullable(like, lambda field: field.name)
        named = zip(found.columns, outside, strict=True)
        return found.select(*[_column(n).cast(f.dataType).alias(f.name) for n, f in named])


def delta_log(spark: SparkSession, root: str) -> Any:
    """Delta's log of the table at a path; there may be none."""
    return java_class(spark, f"{DELTA}.DeltaLog").forTable(spark._jsparkSession, root)


def forget(spark: SparkSession, root: str) -> None:
    """Drops what the driver keeps of the log of the table at a path.

    Delta keeps it for an hour, with the state of the table as Spark blocks, even after the table is
    gone: the memory of a driver would grow with each release.
    """
    path = java_class(spark, "org.apache.hadoop.fs.Path")(root)
    java_class(spark, f"{DELTA}.DeltaLog").invalidateCache(spark._jsparkSession, path)


def save_mode(spark: SparkSession, name: str) -> Any:
    """Spark's Append, Overwrite, or another of its save modes."""
    return getattr(java_class(spark, "org.apache.spark.sql.SaveMode"), name)


def name_mapping(schema: StructType) -> dict[str, str]:
    """The properties of a Delta table that names in this schema need."""
    needed = any(set(name) & MAPPED for name in _names(schema))
    return {"delta.columnMapping.mode": "name"} if needed else {}


def _column(name: str) -> Column:
    return F.col("`" + name.replace("`", "``") + "`")


def _literal(path: str) -> str:
    """A path for Spark's readers, escaped: they take brackets and stars for patterns."""
    return re.sub(r"([][{}*?\\])", r"\\\1", path)


def _names(type: DataType) -> list[str]:
    """The names of all fields, those inside structs included."""
    if isinstance(type, StructType):
        return [n for field in type.fields for n in (field.name, *_names(field.dataType))]
    if isinstance(type, ArrayType):
        return _names(type.elementType)
    return [*_names(type.keyType), *_names(type.valueType)] if isinstance(type, MapType) else []


def _nullable(type: Any, name: Callable[[StructField], str]) -> Any:
    """A type with these names of fields; all in it may be null, as all in files may."""
    if isinstance(type, StructType):
        fields = [StructField(name(f), _nullable(f.dataType, name)) for f in type.fields]
        return StructType(fields)
    if isinstance(type, ArrayType):
        return ArrayType(_nullable(type.elementType, name))
    if isinstance(type, MapType):
        return MapType(_nullable(type.keyType, name), _nullable(type.valueType, name))
    return type


def list_added_files(actions: Any) -> list[str]:
    """The paths of new files within the table, as they are on disk: the log has them encoded."""
    found = [actions.apply(i) for i in range(actions.size())]
    return [unquote(a.path()) for a in found if a.getClass().getSimpleName() == "AddFile"]

"""What Delta's log says of a table, and what a commit says of itself."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from anonlib.spark.delta_files import DELTA
from anonlib.spark.expressions import quote_name
from anonlib.spark.jvm import (
    find_class,
    find_java_class,
    make_none,
    make_scala_seq,
    make_some,
    make_struct_type,
    read_scala_seq,
)

#: What metadata of columns begin with whose values Delta makes.
_GENERATED = ("delta.generationExpression", "delta.identity.")


@dataclass(frozen=True)
class TableMetadata:
    """What Delta knows of a table, and asks of those who add files to it.

    Attributes:
        schema: Its columns, as the log has them.
        properties: The names of its properties.
        features: The names of its features.
    """

    schema: StructType
    properties: frozenset[str]
    features: frozenset[str]


def read_snapshot(spark: SparkSession, log: Any) -> Any:
    """The newest state of a table, as Delta's Snapshot. Reads what the log has grown by."""
    return log.update(False, *[make_none(spark)] * 2)


def read_metadata(spark: SparkSession, snapshot: Any) -> TableMetadata:
    """The metadata of the table of a snapshot."""
    metadata = snapshot.metadata()
    features = snapshot.protocol().readerAndWriterFeatureNames()
    return TableMetadata(
        make_struct_type(metadata.schema()),
        frozenset(map(str, read_scala_seq(spark, metadata.configuration().keys()))),
        frozenset(map(str, read_scala_seq(spark, features))),
    )


def read_constraints(spark: SparkSession, snapshot: Any, *, of_columns: bool) -> dict[str, str]:
    """By name: the SQL condition that every row of the table must meet. of_columns: Whether columns
    that must not be null have one, too."""
    metadata = snapshot.metadata()
    configuration, prefix = metadata.configuration(), "delta.constraints."
    names = [str(key) for key in read_scala_seq(spark, configuration.keys())]
    found = {
        name.removeprefix(prefix): str(configuration.apply(name))
        for name in names
        if name.startswith(prefix)
    }
    for field in make_struct_type(metadata.schema()).fields:
        if of_columns and not field.nullable:
            found[f"NOT NULL of {field.name}"] = f"{quote_name(field.name)} IS NOT NULL"
    return found


def has_property(snapshot: Any, name: str) -> bool:
    """Whether the table of a snapshot has a property of a name."""
    return bool(snapshot.metadata().configuration().contains(name))


def read_property(snapshot: Any, name: str) -> str:
    """A property of the table of a snapshot, in lower case; empty if it is not set."""
    found = snapshot.metadata().configuration().get(name)
    return str(found.get()).lower() if found.isDefined() else ""


def is_append_only(snapshot: Any) -> bool:
    """Whether Delta refuses commits that remove rows of the table of a snapshot."""
    return read_property(snapshot, "delta.appendOnly") == "true"


def describe_definitions(columns: StructType) -> list[str]:
    """What those who made a table said of its columns, and an overwrite of them leaves out."""
    kinds = {
        "NOT NULL": [field.name for field in columns if not field.nullable],
        "comments": [field.name for field in columns if "comment" in field.metadata],
        "generated values": [
            field.name
            for field in columns
            if any(key.startswith(_GENERATED) for key in field.metadata)
        ],
    }
    return [f"{kind} of {', '.join(names)}" for kind, names in kinds.items() if names]


def list_clustering(spark: SparkSession, path: str) -> list[str]:
    """The columns that the table at a path is clustered by."""
    details = spark.sql(f"DESCRIBE DETAIL delta.{quote_name(path)}")
    found = details.select("clusteringColumns").collect()
    return [*found[0][0]]


def list_identity_columns(columns: StructType) -> list[str]:
    """Those of a table's columns whose values Delta makes, and takes from nobody."""
    return [
        field.name
        for field in columns
        if field.metadata.get("delta.identity.allowExplicitInsert") is False
    ]


def read_partitioning(log: Any) -> list[str]:
    """The columns that the files of a table are laid out by, as of the last look."""
    found = log.unsafeVolatileMetadata().partitionColumns()
    return [str(found.apply(i)) for i in range(found.size())]


def list_applications(snapshot: Any) -> list[str]:
    """The ids of the applications that ever made a transaction that the log still knows."""
    found = snapshot.setTransactions()
    return [str(found.apply(i).appId()) for i in range(found.size())]


def list_data_files(spark: SparkSession, log: Any) -> DataFrame:
    """`path` and `deletionVector` of every data file of a table, as of the last look."""
    files = DataFrame(log.unsafeVolatileSnapshot().allFiles().toDF(), spark)
    return files.select("path", "deletionVector")


def write_checkpoint(spark: SparkSession, log: Any) -> int:
    """Writes a checkpoint of the newest state. Returns its version."""
    snapshot = read_snapshot(spark, log)
    log.checkpoint(snapshot, make_none(spark))
    return int(snapshot.version())


def write_operation(spark: SparkSession, mode: Any, partition_by: Sequence[str], text: str) -> Any:
    """What a commit that writes rows says of itself.

    Args:
        spark: The session.
        mode: Spark's save mode, from `save_mode`.
        partition_by: The columns that files are laid out by.
        text: The metadata of the user.
    """
    name, absent = f"{DELTA}.DeltaOperations$Write", make_none(spark)
    # Mode, partitioning, predicate, metadata; later versions append further options.
    rest = find_class(spark, name).getConstructors()[0].getParameterCount() - 4
    by = make_some(spark, make_scala_seq(spark, partition_by))
    return find_java_class(spark, name)(mode, by, absent, make_some(spark, text), *[absent] * rest)

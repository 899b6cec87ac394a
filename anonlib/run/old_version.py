"""What is left of a replaced version of a Delta table: the files of the log that are about it, and
the files of the table that these name."""

import re
from base64 import b85decode
from collections.abc import Collection, Iterable
from pathlib import PurePosixPath
from urllib.parse import unquote
from uuid import UUID

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from anonlib.spark.own_files import read_exactly
from anonlib.spark.storage import Storage

#: What files of the log, whole or not, begin with: the (first) version that they are about.
_VERSION = re.compile(r"\.?(\d{20})\.")
_CHECKPOINT = ".checkpoint."
#: The folder of the parts that checkpoints of the second kind name; they have no versions.
_PARTS = "_sidecars"
_NAMED_PARTS = "sidecar struct<path: string>"
#: Where actions of the log name files of the table.
_VECTOR = "deletionVector: struct<storageType: string, pathOrInlineDv: string>"
_NAMED = (
    f"add struct<path: string, {_VECTOR}>, remove struct<path: string, {_VECTOR}>, "
    "cdc struct<path: string>"
)
#: The digits of base 85 as Delta writes them (ZeroMQ's), and as Python reads them.
_DIGITS = str.maketrans(
    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#",
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~",
)


def list_old_log(
    spark: SparkSession, storage: Storage, log: str, version: int, checkpoint: int
) -> list[str]:
    """The files of a log that may tell of a replaced version, in the order to delete them in: parts
    of checkpoints before what names them, older versions first.

    Args:
        spark: The session.
        storage: The store of the table.
        log: The folder of the log.
        version: The version that replaced all others: it is told of with those before it.
        checkpoint: The version of a newer checkpoint. Checkpoints before it are old, too, since
            they have the names of removed files.

    Returns:
        Their paths in the folder.
    """
    top = storage.listed(log)
    inside = {
        f"{folder}/{name}"
        for folder in top
        if folder.startswith("_")
        for name in storage.listed(f"{log}/{folder}")
    }
    old = {file for file in {*top} | inside if _is_old(file, version, checkpoint)}
    if _PARTS in top:
        checkpoints = {file for file in top if _CHECKPOINT in file}
        old |= _list_parts(spark, log, checkpoints & old) & inside
        old -= _list_parts(spark, log, checkpoints - old)
    return sorted(old, key=lambda file: ("/" not in file, file))


def _is_old(file: str, version: int, checkpoint: int) -> bool:
    found = _VERSION.match(PurePosixPath(file).name)
    if found is None:
        return False
    own = int(found.group(1))
    return own <= version or (_CHECKPOINT in file and own < checkpoint)


def _list_parts(spark: SparkSession, log: str, checkpoints: Collection[str]) -> set[str]:
    """The parts that checkpoints name, by their paths in the log's folder."""
    rows = _read(spark, log, checkpoints, _NAMED_PARTS).select("sidecar.path").distinct().collect()
    return {f"{_PARTS}/{PurePosixPath(unquote(row[0])).name}" for row in rows if row[0] is not None}


def _read(spark: SparkSession, log: str, files: Iterable[str], schema: str) -> DataFrame:
    """Actions in these files of a log."""
    actions = spark.createDataFrame([], schema)
    for kind in ("json", "parquet"):
        if found := [f"{log}/{file}" for file in sorted(files) if file.endswith(f".{kind}")]:
            actions = actions.unionAll(read_exactly(spark, kind, schema, found))
    return actions


def list_unused(
    spark: SparkSession, log: str, old: Collection[str], files: DataFrame
) -> list[PurePosixPath]:
    """The files of a table that old files of its log name, and the table does not use now, by their
    paths in it. Files outside the table, of a clone's source, are not its own.

    Args:
        spark: The session.
        log: The folder of the log.
        old: The files of the log, by their paths in it.
        files: `path` and `deletionVector` of the data files that the table uses.
    """
    places = [_data(f"{action}.path") for action in ("add", "remove", "cdc")]
    places += [_vector(f"{action}.deletionVector") for action in ("add", "remove")]
    named = _explode(_read(spark, log, old, _NAMED), places)
    used = _explode(files, [_data("path"), _vector("deletionVector")])
    rows = named.join(used, ["kind", "name"], "left_anti").collect()
    paths = [
        PurePosixPath(unquote(row["name"]) if row["kind"] == "data" else locate_vector(row["name"]))
        for row in rows
    ]
    return [
        p for p in paths if not p.is_absolute() and ":" not in p.parts[0] and ".." not in p.parts
    ]


def _data(path: str) -> Column:
    return F.struct(F.lit("data").alias("kind"), F.col(path).alias("name"))


def _vector(place: str) -> Column:
    """Only those in files of the table: others are in the log itself, or of a clone's source."""
    name = F.when(F.col(f"{place}.storageType") == "u", F.col(f"{place}.pathOrInlineDv"))
    return F.struct(F.lit("vector").alias("kind"), name.alias("name"))


def _explode(actions: DataFrame, places: Iterable[Column]) -> DataFrame:
    """`kind` and `name` of the files that actions name in these places."""
    found = actions.select(F.explode(F.array(*places)).alias("found")).select("found.*")
    return found.where("name is not null").distinct()


def locate_vector(code: str) -> str:
    """The path in the table of a file of deletion vectors, from its code in the log: the name of a
    folder, or nothing, and 20 digits of base 85."""
    folder, digits = code[:-20], code[-20:]
    name = f"deletion_vector_{UUID(bytes=b85decode(digits.translate(_DIGITS)))}.bin"
    return f"{folder}/{name}" if folder else name

"""What a table in Spark tells of its certificate."""

from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, StructField

from anonlib import auditing
from anonlib.run.confirmation import Testimony
from anonlib.run.manifest_reading import read_manifest
from anonlib.spark.digest import digest_table
from anonlib.spark.file_list import find_newest_version
from anonlib.spark.values import read_field
from anonlib.table.type_words import TypeWords, spell_type


def take_testimony(table: DataFrame, folder: str | None, version: int | None = None) -> Testimony:
    """Takes the testimony of a table.

    Cost: a pass for the digest.

    Args:
        table: The table.
        folder: Its folder, where the manifest is; None for a table in hand.
        version: The version of the table, if it is not the latest: the manifest is that of the run
            that left it.
    """
    manifest = {} if folder is None else read_manifest(table.sparkSession, folder, version)
    return Testimony(
        columns=tuple(table.columns),
        types=tuple(_spell_field(field) for field in table.schema),
        lists=frozenset(f.name for f in table.schema if isinstance(f.dataType, ArrayType)),
        take_digest=lambda places: digest_table(table, places),
        manifest=manifest or {},
        count=partial(auditing.audit_table, table),
        version=find_newest_version(table) if version is None and folder is not None else version,
    )


def _spell_field(field: StructField) -> TypeWords:
    """The words of a column's type; Spark's own where Arrow has no such type."""
    read = read_field(field.name, field)
    return read.type if read.arrow is None else spell_type(read.arrow)

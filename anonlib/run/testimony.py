"""What a table in Spark tells of its certificate."""

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType

from anonlib import auditing
from anonlib.run.confirmation import Testimony
from anonlib.run.past import digest_table
from anonlib.run.publish import manifest_path
from anonlib.spark.storage import Storage


def take_testimony(table: DataFrame, folder: str | None) -> Testimony:
    """Takes the testimony of a table.

    Cost: a pass for the digest.

    Args:
        table: The table.
        folder: Its folder, where the manifest is; None for a table in hand.
    """
    return Testimony(
        columns=tuple(table.columns),
        lists=frozenset(f.name for f in table.schema if isinstance(f.dataType, ArrayType)),
        digest=digest_table(table),
        manifest={} if folder is None else _read_manifest(table.sparkSession, folder),
        count=partial(auditing.audit_table, table),
    )


def _read_manifest(spark: SparkSession, folder: str) -> Mapping[str, Any]:
    """The public manifest; empty if there is none that can be read."""
    storage = Storage(spark, folder)
    path = manifest_path(storage.root)
    try:
        found = json.loads(storage.read(path)) if storage.exists(path) else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}

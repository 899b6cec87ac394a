"""What a table in Spark tells of its certificate."""

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType

from anonlib import auditing
from anonlib.config.model import ReleaseSection
from anonlib.run.confirmation import Testimony
from anonlib.run.past import digest_table
from anonlib.run.publish import Target, manifest_path
from anonlib.spark.storage import Storage


def take_testimony(table: DataFrame, folder: str | None, version: int | None = None) -> Testimony:
    """Takes the testimony of a table.

    Cost: a pass for the digest.

    Args:
        table: The table.
        folder: Its folder, where the manifest is; None for a table in hand.
        version: The version of the table, if it is not the latest: the manifest is that of the run
            that left it.
    """
    return Testimony(
        columns=tuple(table.columns),
        lists=frozenset(f.name for f in table.schema if isinstance(f.dataType, ArrayType)),
        take_digest=lambda places: digest_table(table, places),
        manifest=_read_manifest(table.sparkSession, folder, version),
        count=partial(auditing.audit_table, table),
    )


def _read_manifest(
    spark: SparkSession, folder: str | None, version: int | None
) -> Mapping[str, Any]:
    """The public manifest; empty if there is none that can be read."""
    if folder is None:
        return {}
    try:
        if version is None:
            storage = Storage(spark, folder)
            path = manifest_path(storage.root)
            text = storage.read(path) if storage.exists(path) else "{}"
        else:
            target = Target(spark, ReleaseSection.model_validate({"path": folder}))
            text = choose_manifest(target, version)
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def choose_manifest(target: Target, version: int) -> str:
    """The text of the manifest of the run that left a version of a table; no manifest, `{}`, if the
    log does not describe that run's commit any more."""
    found = target.commits(version)
    if found:
        return found[0].text
    # Where the log describes no run, none came after the oldest version that can be read.
    return "{}" if target.commits() else target.newest_manifest() or "{}"

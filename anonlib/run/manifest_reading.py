"""The public manifest of a published table, as it is read again."""

import json
from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from anonlib.config.model import ReleaseSection
from anonlib.run.publish import Target, manifest_path
from anonlib.spark.storage import Storage


def read_manifest(spark: SparkSession, folder: str, version: int | None) -> Mapping[str, Any]:
    """The public manifest of a version of a table, the latest by default; empty if there is none
    that can be read."""
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

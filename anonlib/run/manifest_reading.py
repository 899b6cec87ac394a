"""The public manifest of a published table, as it is read again."""

import json
from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from anonlib.config.model import ReleaseSection
from anonlib.errors import InputError
from anonlib.run.publish import Target


def read_manifest(spark: SparkSession, folder: str, version: int | None) -> Mapping[str, Any]:
    """The public manifest of a version of a table, the latest by default; empty if there is none
    that can be read. Cost: a query of the table's history."""
    target = Target(spark, ReleaseSection.model_validate({"path": folder}))
    try:
        found = json.loads(choose_manifest(target, version))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def choose_manifest(target: Target, version: int | None) -> str:
    """The text of the manifest of the run that left a version of a table, the latest by default; no
    manifest, `{}`, if the log does not describe that run's commit any more. The log goes before
    what lies beside the table: after a RESTORE that is still of the run that was taken back."""
    if version is None:
        try:
            return target.newest_manifest() or "{}"
        except InputError:  # the table was told to forget its runs, so that this is all there is
            return target.manifest() or "{}"
    found = target.commits(version)
    if found:
        return found[0].text
    # Where the log describes no run, none came after the oldest version that can be read.
    return "{}" if target.commits() else target.newest_manifest() or "{}"

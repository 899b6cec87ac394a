"""The public manifest of a published table, as it is read again."""

import json
from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from anonlib.config.model import ReleaseSection
from anonlib.errors import InputError
from anonlib.run.publish import Target

#: What a public manifest has.
Manifest = Mapping[str, Any]


def read_manifest(spark: SparkSession, folder: str, version: int | None) -> Manifest | None:
    """The public manifest of a version of a table, the latest by default; empty if no run published
    there, and None if one did and its manifest is unknown. Cost: a query of the table's history."""
    target = Target(spark, ReleaseSection.model_validate({"path": folder}))
    try:
        found = json.loads(choose_manifest(target, version))
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def choose_manifest(target: Target, version: int | None) -> str:
    """The text of the manifest of the run that left a version of a table, the latest by default; no
    manifest, `{}`, if no run published there, and no text if it is unknown which one left it. The
    log goes before what lies beside the table: after a RESTORE that is still of the run that was
    taken back."""
    try:
        found = target.commits(version)
        if found:
            return found[0].text
        if version is not None and target.commits():
            return "{}" if target.is_before_runs(version) else ""
        # Where the log describes no run, none came after the oldest version that can be read.
        return target.newest_manifest() or ("" if target.runs() else "{}")
    except InputError:  # the table was told to forget its runs
        return target.manifest() if version is None else ""

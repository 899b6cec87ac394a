"""What a run owes once it is committed: the manifest beside the table, the replaced version
purged, its record in its place. If it dies before that, the next run on the table does it."""

import json
from contextlib import suppress
from typing import Any

from pyspark.sql import SparkSession

from anonlib.config.model import Config
from anonlib.config.paths import find_dictionary_path, find_manifest_path, find_record_path
from anonlib.errors import InputError
from anonlib.run.dictionary import write_dictionary
from anonlib.run.publish import Target
from anonlib.run.purge import find_owed_purge, purge
from anonlib.spark.lease import AHEAD, Lease, work_folder
from anonlib.spark.storage import Storage


def is_owed(spark: SparkSession, target: Target) -> bool:
    """Whether a run that was committed has not done all that it owes."""
    return bool(
        read_ahead(spark, target) or _find_manifest(target) is not None or find_owed_purge(target)
    )


def complete_last(spark: SparkSession, config: Config, target: Target, lease: Lease) -> None:
    """Does what the last committed run owes, whichever run it was; nothing if it owes nothing.

    Args:
        spark: The session.
        config: A config of the table: the record goes to its folder, if its own is not known.
        target: The table.
        lease: The lease of the run that does it.
    """
    text = _find_manifest(target)
    if text is not None:
        write_manifest(spark, target.path, text)
    purge(spark, target, lease)
    ahead = read_ahead(spark, target)
    if ahead is not None:  # last: it names the version that the purge left
        _keep(spark, config.record_folder, target, ahead)
        Storage(spark, lease.work).delete(f"{lease.work}/{AHEAD}")


def _find_manifest(target: Target) -> str | None:
    """The manifest of the newest commit, unless it is beside the table."""
    newest = next(iter(target.commits()), None)
    if newest is None:
        return None
    target.require_places()
    return None if newest.text == target.manifest() else newest.text


def write_ahead(spark: SparkSession, work: str, text: str) -> None:
    """Writes the record of a run that is about to commit among its own files."""
    Storage(spark, work).write(f"{work}/{AHEAD}", text)


def read_ahead(spark: SparkSession, target: Target) -> dict[str, Any] | None:
    """The record that a committed run wrote before its commit; None if it is gone."""
    path = f"{work_folder(target.path)}/{AHEAD}"
    storage = Storage(spark, path)
    content: dict[str, Any] = {}
    with suppress(ValueError, InputError):  # another run is writing, or removing it
        content = json.loads(storage.read(path)) if storage.exists(path) else {}
    return content if content.get("run_id") in target.runs() else None


def _keep(spark: SparkSession, records: str, target: Target, ahead: dict[str, Any]) -> None:
    """Moves a record to the place that its run had for it."""
    from anonlib.pages.output import report  # this imports matplotlib

    run_id, own = ahead["run_id"], str(ahead.get("record") or "…")
    # A record leaves out passwords that a path has.
    path = locate_record(spark, records, run_id) if "…" in own else own
    storage = Storage(spark, path)
    if not storage.exists(path):
        content = ahead | {"table_version": target.version_of(run_id)}
        storage.write(path, json.dumps(content, indent=2, ensure_ascii=False))
        with suppress(Exception):  # a page that can't be made is no reason to fail
            report(path)


def write_manifest(spark: SparkSession, table: str, text: str) -> None:
    """Writes the manifest beside the table, and before it the data dictionary that explains it."""
    storage = Storage(spark, table)
    dictionary = write_dictionary(json.loads(text))
    storage.write(find_dictionary_path(storage.root), dictionary, public=True)
    storage.write(find_manifest_path(storage.root), text, public=True)


def locate_record(spark: SparkSession, records: str, run_id: str) -> str:
    """The place of a run's private record in the folder `records`."""
    return find_record_path(Storage(spark, records).root, run_id)

"""After the commit: purges what a new version replaced, and registers the release's name in the
catalog."""

from pyspark.sql import SparkSession

from anonlib.config.model import ReleaseSection
from anonlib.errors import AnonlibError, InputError, StorageError
from anonlib.run.history import RETENTION, Commit, mark_purge
from anonlib.run.old_version import list_old_log, list_unused
from anonlib.run.publish import Target
from anonlib.spark.expressions import quote_name
from anonlib.spark.lease import Lease
from anonlib.spark.session import fork_session
from anonlib.spark.storage import Storage
from anonlib.spark.translation import translate_errors

_METADATA = "spark.databricks.delta.commitInfo.userMetadata"

FAILED = "the table is published, but its old version is not removed yet; run it again"


def find_owed_purge(target: Target) -> Commit | None:
    """The newest commit that replaced a table and is still in the log. A purge removes it last, so
    if it is there, the purge was interrupted."""
    return next((c for c in target.commits() if c.mode == "Overwrite" and c.version > 0), None)


def purge(spark: SparkSession, target: Target, lease: Lease) -> None:
    """Removes a replaced version: its files, with those of deleted rows, and its part of the log.

    The table stays readable at every step: first comes a checkpoint without a trace of the old
    version, then its files go, then its part of the log, oldest first. Readers of the old
    version fail from then on. The ids of the runs and the manifest stay in the log. A retention of
    deleted files that the table had set is unset. What others commit meanwhile stays: then
    `Target.version_of` does not take the versions after it for the run's.

    Cost: a few small Delta commits, and a pass over the log.
    """
    replaced = find_owed_purge(target)
    if replaced is None:
        return
    with translate_errors(FAILED), lease.committing():
        newest = target.commits()[0]
        mark = mark_purge(newest, target.version_of(newest.run_id))
        committer = fork_session(spark, {_METADATA: mark})
        name = f"delta.{quote_name(target.path)}"
        committer.sql(
            f"ALTER TABLE {name} SET TBLPROPERTIES ('{RETENTION}' = 'interval 0 seconds')"
        )
        checkpoint = target.checkpoint()
        storage, log = Storage(spark, target.path), f"{target.path}/_delta_log"
        old = list_old_log(spark, storage, log, replaced.version, checkpoint)
        storage.delete_files(target.path, list_unused(spark, log, old, target.files()))
        last = f"{replaced.version:020}.json"
        for file in old:
            if file != last:
                storage.delete(f"{log}/{file}")
        committer.sql(f"ALTER TABLE {name} UNSET TBLPROPERTIES IF EXISTS ('{RETENTION}')")
        storage.delete(f"{log}/{last}")


WHERE = "release.register"


def is_registered(spark: SparkSession, release: ReleaseSection) -> bool:
    """Whether the catalog has the release's name for this table. False if the release has no name.

    Raises InputError if the catalog has no such schema, or the name belongs to another table.
    """
    name = release.catalog_table
    if name is None:
        return False
    quoted = _quote(name)
    schema = quoted.rpartition(".")[0]
    with translate_errors(WHERE):
        if not spark.catalog.databaseExists(schema):
            raise InputError(
                f"{WHERE}: the catalog has no schema {schema}; make it (CREATE SCHEMA), "
                "or name another"
            )
        if not _exists(spark, quoted):
            return False
        rows = spark.sql(f"DESCRIBE TABLE EXTENDED {quoted}").collect()
    # The details come last: columns of the table may have the same names.
    found = {row["col_name"]: row["data_type"] for row in rows}
    ours = Storage(spark, release.path).root
    place = found.get("Location")
    if found.get("Provider") != "delta" or not place or Storage(spark, place).root != ours:
        raise InputError(
            f"{WHERE}: {name} is in the catalog, and is not the table at {ours}; name "
            "another, or drop it there"
        )
    return True


def _exists(spark: SparkSession, table: str) -> bool:
    try:
        return spark.catalog.tableExists(table)
    except Exception as error:
        condition = getattr(error, "getCondition", str)() or ""
        if not condition.startswith("DELTA_"):
            raise
        raise InputError(
            f"{WHERE}: {table} is in the catalog, and no table is where it points to; "
            "drop it there (DROP TABLE), or name another"
        ) from error


def register(spark: SparkSession, release: ReleaseSection) -> None:
    """Gives the published table its name in the catalog, unless it has it. Raises StorageError if
    that fails."""
    name = release.catalog_table
    if name is None:
        return
    quoted, path = _quote(name), Storage(spark, release.path).root
    try:
        if not is_registered(spark, release):
            with translate_errors(WHERE):
                spark.catalog.createTable(quoted, path=path, source="delta")
            if not is_registered(spark, release):
                raise StorageError(f"{WHERE}: the catalog did not keep the name")
    except AnonlibError as error:
        place = path.replace("\\", "\\\\").replace("'", "\\'")
        raise StorageError(
            f"{error}; the catalog lacks the table, which is made by: CREATE TABLE IF NOT EXISTS "
            f"{quoted} USING DELTA LOCATION '{place}'"
        ) from error


def _quote(name: str) -> str:
    return ".".join(f"`{part}`" for part in name.split("."))

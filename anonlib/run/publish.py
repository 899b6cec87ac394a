"""Publishes an audited table: one Delta commit, checked before it is visible."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import StructField, StructType

from anonlib.config.model import ReleaseSection
from anonlib.errors import BusyError, InputError, StorageError
from anonlib.run.data_files import (
    APP,
    NO_VALUES,
    PROPERTIES,
    DataFiles,
    count_files,
    order_in_table,
    write_files,
)
from anonlib.run.dictionary import dictionary_path
from anonlib.run.log_actions import find_restored, read_actions
from anonlib.spark.delta_files import (
    Transaction,
    delta_log,
    digest_files,
    explain_damage,
    list_added_files,
    name_mapping,
    nullable,
    save_mode,
)
from anonlib.spark.delta_log import (
    describe_definitions,
    has_property,
    is_append_only,
    list_applications,
    list_clustering,
    list_data_files,
    list_identity_columns,
    read_constraints,
    read_metadata,
    read_partitioning,
    read_property,
    read_snapshot,
    write_checkpoint,
    write_operation,
)
from anonlib.spark.digest import digest
from anonlib.spark.lease import Lease
from anonlib.spark.storage import Storage
from anonlib.spark.tasks import (
    count_cores,
    give_each_file_a_task,
    run_uninterrupted,
    settle_tasks,
)
from anonlib.spark.translation import translate, translate_errors
from anonlib.table.schema import Schema
from anonlib.table.table_digest import Digest

#: Spark's names of the modes of a release.
SAVE_MODES = {"error": "ErrorIfExists", "append": "Append", "overwrite": "Overwrite"}
FORGETTING = "delta.setTransactionRetentionDuration"
#: Checkpoints repeat the names and partition values of removed files for this long.
RETENTION = "delta.deletedFileRetentionDuration"
#: The key that marks the commits of a purge in their metadata, with the version that it keeps.
PURGE_OF = "purge_of"
MAPPING = "delta.columnMapping.mode"
#: Properties of a table that ask nothing of those who add files to it.
PLAIN = frozenset(
    f"delta.{name}"
    for name in (
        "isolationLevel",
        "logRetentionDuration",
        "deletedFileRetentionDuration",
        "checkpointInterval",
        "enableDeletionVectors",
    )
)
#: Features of a table of which the same holds.
FEATURES = frozenset({"appendOnly", "invariants", "deletionVectors", "vacuumProtocolCheck"})
#: Domains of Delta's metadata that say nothing of rows or columns: which numbers rows have, and by
#: which columns files are clustered.
DOMAINS = frozenset({"delta.rowTracking", "delta.clustering"})
#: Files that are moved at the same time; a store in a network copies each.
N_MOVES = 8
CHANGED = "the target changed while the release was made; run it again"


@dataclass(frozen=True)
class Commit:
    """A commit of a run, or of the purge after it, as the log describes it.

    Attributes:
        version: The version that it made.
        run_id: The run.
        mode: One of SAVE_MODES for commits that wrote rows, else None.
        text: The manifest.
        purge_of: For commits of a purge: the version of the run when the purge began.
    """

    version: int
    run_id: str
    mode: str | None
    text: str
    purge_of: int | None = None


@dataclass(frozen=True)
class Restoration:
    """A commit that gave a table the rows of an earlier version (RESTORE).

    Attributes:
        version: The version that it made.
        to: The earlier version; -1 if the log does not tell.
    """

    version: int
    to: int


class Target:
    """The table that a run publishes to, as it was when the run began."""

    def __init__(self, spark: SparkSession, release: ReleaseSection):
        self._spark = spark
        self._release = release
        self._storage = Storage(spark, release.path)
        self.path = self._storage.root
        self._snapshot: Any = None
        self._runs: frozenset[str] | None = None
        self._events: list[Commit | Restoration] | None = None
        self._made: dict[str, int] = {}  # by run: the version that this driver committed
        where = "release.path"
        with explain_damage(spark, self.path, where), translate_errors(where):
            self._log: Any = delta_log(spark, self.path)
            self.version = self._latest()

    def _latest(self) -> int:
        """The newest version. Reads the log again if it has grown."""
        found = read_snapshot(self._spark, self._log)
        if found != self._snapshot:
            self._snapshot, self._runs, self._events = found, None, None
        return int(found.version())

    def check_free(self) -> None:
        """Raises InputError when the mode does not allow to publish here, or nothing can be written
        in the manifest's place."""
        self.require_places()
        mode = self._release.mode
        if self.version >= 0:
            if mode == "error":
                raise InputError(
                    f"release.path: a table is already at {self.path}; choose another path, or "
                    "`mode: append` or `mode: overwrite`"
                )
            if mode == "overwrite" and is_append_only(self._snapshot):
                raise InputError(
                    f"release.path: the table at {self.path} has the property delta.appendOnly, "
                    "which forbids `mode: overwrite`; unset it (ALTER TABLE ... UNSET "
                    "TBLPROPERTIES), or choose another path"
                )
        elif mode == "append":
            raise InputError(
                f"release.path: no table is at {self.path} to append to; `mode: error` makes it"
            )
        elif self._storage.has_files_beside_log(self.path):
            raise InputError(f"release.path: {self.path} holds other files; choose another path")

    def require_places(self) -> None:
        """Raises InputError if nothing can be written in the place of the manifest or of its
        dictionary."""
        place, other = manifest_path(self.path), dictionary_path(self.path)
        for path, wanted in ((place.rpartition("/")[0], True), (place, False), (other, False)):
            if self._storage.is_folder(path) is not (wanted and self._storage.exists(path)):
                raise InputError(
                    f"release.path: {path} must be a {'folder' if wanted else 'file'}: the "
                    "manifest, or its dictionary, belongs there; move what is in its place"
                )

    def runs(self) -> frozenset[str]:
        """The ids of all runs that were ever committed here. They stay when Delta or a purge
        removes log entries."""
        if self._latest() < 0:
            return frozenset()
        if self._runs is None:
            with translate_errors("release.path"):
                self._runs = self._list_committed()
        return self._runs

    def published_version(self, run_id: str) -> int | None:
        """The version that a run left; -1 if the log does not describe it any more. None if the run
        was not committed, or that is unknown."""
        found = self._made.get(run_id)
        with suppress(Exception):  # the store may be gone, or the JVM
            if found is not None or run_id in self.runs():
                found = max(self.version_of(run_id), -1 if found is None else found)
        return found

    def _list_committed(self) -> frozenset[str]:
        if has_property(self._snapshot, FORGETTING):
            raise InputError(
                f"release.path: the table property {FORGETTING} makes Delta forget which "
                "runs published; unset it"
            )
        ids = list_applications(self._snapshot)
        return frozenset(id.removeprefix(APP) for id in ids if id.startswith(APP))

    def commits(self, upto: int | None = None) -> list[Commit]:
        """The commits of runs that the log still describes and no RESTORE took back, newest first.

        upto: As of this version; by default as of the newest.
        """
        return [commit for commit, taken_back in self._judge(upto) if taken_back is None]

    def taken_back(self, run_id: str) -> tuple[Commit, Restoration] | None:
        """A run's commit and the RESTORE that took its rows out of the table again. None if none
        did, or the log does not describe it any more."""
        found = [each for each in self._judge() if each[0].run_id == run_id]
        restorations = [restoration for _, restoration in found if restoration is not None]
        taken = bool(found) and len(restorations) == len(found)
        return (found[-1][0], restorations[-1]) if taken else None

    def _judge(self, upto: int | None = None) -> Iterator[tuple[Commit, Restoration | None]]:
        """Each commit of a run, newest first, with the RESTORE that took it back."""
        last = None
        for event in self._list_events():
            if upto is not None and event.version > upto:
                continue
            is_back = last is not None and event.version > last.to
            if isinstance(event, Commit):
                yield event, last if is_back else None
            elif not is_back:  # else another RESTORE took this one back
                last = event

    def _list_events(self) -> list[Commit | Restoration]:
        if self._latest() < 0:
            return []
        if self._events is None:
            self._events = self._list_described()
        return self._events

    def _list_described(self) -> list[Commit | Restoration]:
        name, parameters = self.path.replace("`", "``"), F.col("operationParameters")
        restores = F.col("operation").eqNullSafe("RESTORE").alias("restores")
        mode, to = parameters["mode"].alias("mode"), parameters["version"].alias("to")
        with translate_errors("release.path"):
            table = self._spark.sql(f"DESCRIBE HISTORY delta.`{name}`")
            found = table.select("version", "userMetadata", mode, restores, to)
            rows = found.where("userMetadata is not null or restores").collect()
        # Who else writes may have a `run_id` of its own in its metadata.
        events: list[Commit | Restoration] = []
        for row in rows:
            version, text = int(row["version"]), row["userMetadata"]
            if row["restores"]:
                to = row["to"]  # None if it was to a time
                known = find_restored(self._storage, self.path, version) if to is None else int(to)
                events.append(Restoration(version, known))
            elif (commit := _describe(version, row["mode"], text)) is not None:
                events += [commit] if commit.run_id in self.runs() else []
        return events

    def is_before_runs(self, version: int) -> bool:
        """Whether it is certain that no run had published when a version was made: the log
        describes all runs, and they came later."""
        made = [event for event in self._list_events() if isinstance(event, Commit)]
        is_later = all(commit.version > version for commit in made)
        return is_later and self.runs() <= {commit.run_id for commit in made}

    def newest_manifest(self) -> str:
        """The manifest of the newest run whose rows the table has: as the log has it or, where that
        does not describe it any more, from beside the table. Empty without one, and where that
        beside the table may be of a run that a RESTORE took back."""
        newest = next(iter(self.commits()), None)
        if newest is not None:
            return newest.text
        is_known = not any(isinstance(event, Restoration) for event in self._list_events())
        return self.manifest() if is_known else ""

    def manifest(self) -> str:
        """The text of the manifest beside the table; empty without one."""
        path = manifest_path(self.path)
        return self._storage.read(path) if self._storage.exists(path) else ""

    def version_of(self, run_id: str) -> int:
        """The newest version that holds just what a run's commit left; -1 if the log does not
        describe it any more. It is that commit's, or one of the purge after it, as long as nobody's
        commit lies between."""
        own = [commit for commit in self.commits() if commit.run_id == run_id]
        purges = {c.version: c.purge_of for c in own if c.purge_of is not None}
        committed = [c.version for c in own if c.mode is not None]
        version = min([*committed, *purges.values()], default=-1)
        while version + 1 in purges:
            version += 1
        return version

    def published(self) -> DataFrame:
        """The table as it was when the run began."""
        reader = self._spark.read.format("delta").option("versionAsOf", self.version)
        with translate_errors("release.path"):
            return reader.load(self.path)

    def partitioned_by(self) -> list[str]:
        """The columns that the files are laid out by."""
        with translate_errors("release.path"):
            return read_partitioning(self._log)

    def files(self) -> DataFrame:
        """`path` and `deletionVector` of every data file of the current table, as in the log."""
        self._latest()
        return list_data_files(self._spark, self._log)

    def checkpoint(self) -> int:
        """Writes a checkpoint of the current table. Returns its version."""
        return write_checkpoint(self._spark, self._log)

    def renew(self) -> None:
        """Reads the table's state again, after commits of this run."""
        self.version = self._latest()

    def require_unchanged(self) -> None:
        """Raises BusyError if rows or columns of the table changed since the run began. Later
        commits that change neither (OPTIMIZE, VACUUM, a purge) are accepted."""
        while (latest := self._latest()) != self.version:
            if not self._keep_rows(range(self.version + 1, latest + 1)):
                raise BusyError(CHANGED)
            self.version = latest

    def keeps_rows_since(self, version: int) -> bool:
        """Whether every commit after a version, up to where the run began, kept rows and columns as
        they were."""
        return self._keep_rows(range(version + 1, self.version + 1))

    def is_as_left(
        self, version: int, upto: int | None = None, *, with_batches: bool = False
    ) -> bool:
        """Whether another version, by default the newest, has rows and columns as a version left
        them: later commits kept them, or were taken back by a RESTORE. with_batches: Also with rows
        that runs appended since."""
        events = {event.version: event for event in self._list_events()}
        at = self._latest() if upto is None else upto
        while at > version:
            event = events.get(at)
            if isinstance(event, Restoration) and event.to >= version:
                at = event.to
            elif (with_batches and _appends(event)) or self._keeps_rows(at):
                at -= 1
            else:
                return False
        return True

    def _keep_rows(self, versions: Iterable[int]) -> bool:
        return all(map(self._keeps_rows, versions))

    def _keeps_rows(self, version: int) -> bool:
        """Whether a version's commit only moved the same rows to other files, or is of a purge. Any
        writer can say that rows are the same: so those of these files are compared. False if they
        can't be read any more."""
        found = read_actions(self._storage, self.path, version)
        if found is None:
            return False
        files = [(kind, each) for kind, each in found if kind in ("add", "remove")]
        told = {"add", "remove", "commitInfo"}
        others = {kind for kind, each in found if kind not in told and not _is_aside(kind, each)}
        if not files and others == {"metaData"}:
            return _is_of_purge(dict(found).get("commitInfo", {}), self.runs())
        if others or any(each["dataChange"] is not False for _, each in files):
            return False
        if not files:
            return True
        old, new = (
            {unquote(each["path"]).rpartition("/")[2] for kind, each in files if kind == wanted}
            for wanted in ("remove", "add")
        )
        with suppress(Exception):  # files that a VACUUM removed
            (before, removed), (after, added) = (
                digest_files(self._spark, self.path, each, old | new)
                for each in (version - 1, version)
            )
            # Files that were not found by their names would be equal, too: there are no rows.
            return before == after and old <= removed and new <= added
        return False

    def publish(
        self,
        staged_rows: DataFrame,
        names: Mapping[str, str],
        staged_digest: Digest,
        is_dealt: bool,
        files: DataFiles | None,
        lease: Lease,
        run_id: str,
        text: str,
    ) -> int:
        """Moves the files of the audited rows into the table, and commits them with the manifest as
        metadata.

        Where the audited files can't be the release, their rows are written again, read again, and
        compared with the audited ones: file by file if they are dealt to files, else in random
        order. Delta's own writer does that if the table asks for more than files, such as
        constraints or other names of columns. If it dies, files of tasks that had ended are left to
        VACUUM. No reader sees them, and they hold audited rows.

        The lease is checked right before the commit, since on object stores Delta can't keep the
        commits of two drivers apart. After a failure the files are removed, unless the commit was
        sent and may still arrive.

        Args:
            staged_rows: The audited rows.
            names: Id -> name of the columns to publish, in the order of the table.
            staged_digest: The digest of the audited rows.
            is_dealt: Whether the audited files have whole cells each, and their rows in random
                order.
            files: The files of the audited rows, if they can be the release as they are.
            lease: The lease of the run.
            run_id: The run.
            text: The manifest.

        Returns:
            The new version.

        Raises:
            BusyError: The table changed since the run began.
            StorageError: The written rows are not the staged ones, or the lease is lost.
        """
        with translate_errors("release.path"):
            transaction, actions = self._begin(), None
            try:
                rows = staged_rows.select(*names)
                frame = rows if is_dealt else self._order(rows, staged_digest.n_rows)
                frame = frame.toDF(*names.values())
                with settle_tasks(self._spark), give_each_file_a_task(self._spark):
                    if files is None and self._takes(nullable(frame.schema)):
                        place, by = f"{lease.work}/table", self._release.partition_by
                        files = write_files(self._spark, place, frame, run_id, by)
                        # With the names and types that the digest of the audited rows is of.
                        _require_equal(files.read(rows.schema), staged_digest)
                    if files is not None and self._takes(files.schema):
                        actions = self._adopt(files, transaction, lease)
                    else:
                        # Delta's writer would leave files behind.
                        self._check_constraints(rows.toDF(*names.values()))
                        actions = self._add(frame, transaction, run_id)
                        _require_equal(transaction.read(actions, rows.schema), staged_digest)
                operation = self._operation(text)
                with lease.committing(publishing=True):
                    begun = self.version
                    self.require_unchanged()
                    if self.version != begun:
                        transaction, actions = self._begin_again(transaction, actions)
                    version = self._commit(transaction, actions, operation, lease)
                    self._made[run_id] = version
                return version
            except BaseException:
                if not lease.doubtful:
                    self._remove(actions, lease, run_id)
                raise

    def _begin(self) -> Transaction:
        self.require_unchanged()
        transaction = Transaction.begin(self._spark, self.path)
        if int(transaction.handle.readVersion()) != self.version:
            raise BusyError(CHANGED)
        # The audit looked at all of it: Delta then refuses to commit after any other change.
        transaction.handle.readWholeTable()
        return transaction

    def _begin_again(self, before: Transaction, actions: Any) -> tuple[Transaction, Any]:
        """A transaction on the newest version, and the actions that replace its files."""
        transaction = self._begin()
        metadata = before.handle.metadata()
        if metadata != transaction.handle.metadata():
            transaction.handle.updateMetadata(metadata, False)
        return transaction, self._with_removals(transaction, actions)

    def _with_removals(self, transaction: Transaction, actions: Any) -> Any:
        """The actions that add files, and, to overwrite, those that remove all others."""
        replaces = self._release.mode == "overwrite" and self.version >= 0
        return transaction.with_removals(actions, of_all=replaces)

    def _commit(self, transaction: Transaction, actions: Any, operation: Any, lease: Lease) -> int:
        try:
            return run_uninterrupted(lambda: int(transaction.handle.commit(actions, operation)))
        except Exception as error:
            # Whether another was faster is known; what a silent store has done is not.
            if lease.remote and not isinstance(translate(error, "commit"), BusyError):
                lease.doubt()
            raise

    def _order(self, rows: DataFrame, n_rows: int) -> DataFrame:
        cores = count_cores(self._spark)
        return order_in_table(rows, count_files(n_rows, self._release.rows_per_file, cores))

    def _takes(self, schema: StructType) -> bool:
        """Whether files of these columns may be added to the table as they are: it has the same
        columns and folders, and asks for nothing else."""
        if self.version < 0:
            return True
        there = read_metadata(self._spark, self._snapshot)
        return (
            # Columns that have other names inside files have these in the metadata of their fields.
            there.schema == schema == nullable(schema)
            and self.partitioned_by() == [*self._release.partition_by]
            and there.properties <= PLAIN
            and there.features <= FEATURES
        )

    def _adopt(self, files: DataFiles, transaction: Transaction, lease: Lease) -> Any:
        """Lists files and moves them to the table. So it is always known which files belong to the
        run. Returns the actions of the commit."""
        own = files.transaction
        if self.version < 0:
            transaction.handle.updateMetadata(own.metadata_without(NO_VALUES), False)
            schemas = [each.handle.metadata().schema().json() for each in (own, transaction)]
            if schemas[0] != schemas[1]:
                text = "release.path: Delta gives the table other columns than its files"
                raise StorageError(text)
        lease.list_files(files.paths)

        def move(path: str) -> None:
            self._storage.move(f"{own.root}/{path}", f"{self.path}/{path}")

        with ThreadPoolExecutor(N_MOVES) as pool:
            [*pool.map(move, files.paths)]
        return self._with_removals(transaction, files.actions)

    def _add(self, frame: DataFrame, transaction: Transaction, run_id: str) -> Any:
        """Writes rows into the table by Delta's own writer. Returns the actions of the commit."""
        options = {"txnAppId": f"{APP}{run_id}", "txnVersion": "1"}
        if self._release.mode != "append":
            options["overwriteSchema"] = "true"
        by = self._release.partition_by
        return transaction.write(frame, self._save_mode(), by, options, PROPERTIES)

    def _check_constraints(self, rows: DataFrame) -> None:
        """Raises InputError if rows break what the table demands of them."""
        if self.version < 0:
            return
        # An overwrite gives the table other columns, which may be null; conditions stay.
        append = self._release.mode == "append"
        constraints = read_constraints(self._spark, self._snapshot, of_columns=append)
        broken = [
            F.count_if(~F.coalesce(F.expr(condition), F.lit(False)))
            for condition in constraints.values()
        ]
        counts = rows.agg(*broken).collect()[0] if broken else ()
        for name, n in zip(constraints, counts, strict=True):
            if n:
                text = f"the table's constraint {name} does not hold in {n} rows; change it, or"
                raise InputError(f"release.path: {text} release to another table")

    def require_constraints(self, columns: StructType) -> None:
        """Raises InputError if the table demands something that can't be asked of rows of these
        columns, such as of a column that they lack."""
        constraints = read_constraints(self._spark, self._snapshot, of_columns=False)
        rows = self._spark.createDataFrame([], columns)
        for name, condition in constraints.items():
            try:
                rows.select(F.expr(condition))
            except AnalysisException:
                raise InputError(
                    f"release.path: the table's constraint {name} can't be asked of the release: "
                    "it names a column that this lacks, or has with another type; drop it (ALTER "
                    f"TABLE ... DROP CONSTRAINT {name}), or release to another table"
                ) from None

    def require_names(self, columns: StructType) -> None:
        """Raises InputError if Delta can't put columns of these names in place of the table's."""
        if name_mapping(columns) and read_property(self._snapshot, MAPPING) in ("", "none"):
            raise InputError(
                "release.path: the release has columns with names that Delta takes by column "
                f"mapping only, and the table at {self.path} has none: give it that (ALTER TABLE "
                f"... SET TBLPROPERTIES ('{MAPPING}' = 'name')), rename them in the source, or "
                "release to another table"
            )
        made = list_identity_columns(read_metadata(self._spark, self._snapshot).schema)
        ours = {name.casefold() for name in columns.names}
        for name in made:
            if name.casefold() in ours:
                raise InputError(
                    f"release.path: the table at {self.path} makes the values of column {name} "
                    "itself (GENERATED ALWAYS AS IDENTITY), and takes none; rename the column of "
                    "the source, or release to another table"
                )

    def describe_losses(self) -> Iterator[str]:
        """A note if an overwrite leaves out what others said of the table's columns."""
        with translate_errors("release.path"):
            there = read_metadata(self._spark, self._snapshot)
            lost = describe_definitions(there.schema)
            if "clustering" in there.features:
                by = ", ".join(list_clustering(self._spark, self.path))
                lost += [f"CLUSTER BY {by}"] * bool(by)
        if lost:
            yield (
                f"the new table lacks what the replaced one had: {'; '.join(lost)}. Set that anew "
                "(ALTER TABLE) if it is needed"
            )

    def _operation(self, text: str) -> Any:
        by = self._release.partition_by
        return write_operation(self._spark, self._save_mode(), by, text)

    def _save_mode(self) -> Any:
        return save_mode(self._spark, SAVE_MODES[self._release.mode])

    def _remove(self, actions: Any, lease: Lease, run_id: str) -> None:
        """Removes the files of a failed publication, unless its commit succeeded after all."""
        with suppress(Exception):
            if lease.still_held():
                lease.remove_files()
            if actions is not None and run_id not in self.runs():
                for path in list_added_files(actions):
                    self._storage.delete(f"{self.path}/{path}")


def manifest_path(table: str) -> str:
    """The place of a table's manifest."""
    return f"{table}/_anonlib/manifest.json"


def _require_equal(rows: DataFrame, digest_of_rows: Digest) -> None:
    if digest(rows) != digest_of_rows:
        raise StorageError("the written files differ from the audited table")


def reader_notes(schema: Schema) -> tuple[str, ...]:
    """Limits for readers without Spark, as measured with polars 2.1 and deltalake 1.6."""
    types = {column.name: from_arrow_type(column.released_type) for column in schema.released}
    mapped = [n for n, type in types.items() if name_mapping(StructType([StructField(n, type)]))]
    if not mapped:
        return ()
    text = (
        f"columns {', '.join(mapped)}: Delta takes such names by column mapping only, which polars "
        "refuses to read, and deltalake's pyarrow reads as nulls; rename them for readers without "
        "Spark"
    )
    return (text,)


def mark_purge(newest: Commit, version: int) -> str:
    """The metadata of a purge's commits: the manifest, since the newest commit that has it may be
    removed, and the version of its run."""
    return json.dumps({**json.loads(newest.text), PURGE_OF: version}, ensure_ascii=False)


def _describe(version: int, mode: str | None, metadata: str) -> Commit | None:
    """A commit by its metadata; None if this is not of a run."""
    try:
        found = json.loads(metadata)
    except ValueError:
        return None
    if not isinstance(found, dict) or not isinstance(found.get("run_id"), str):
        return None
    purge_of = found.pop(PURGE_OF, None)
    if mode is not None or not isinstance(purge_of, int):
        return Commit(version, found["run_id"], mode, metadata)
    # As it is written beside the table.
    text = json.dumps(found, indent=2, ensure_ascii=False)
    return Commit(version, found["run_id"], mode, text, purge_of)


def _appends(event: Commit | Restoration | None) -> bool:
    return isinstance(event, Commit) and event.mode == SAVE_MODES["append"]


def _is_aside(kind: str, action: Mapping[str, Any]) -> bool:
    """Whether an action of a commit says nothing of rows or columns."""
    return kind == "domainMetadata" and action.get("domain") in DOMAINS


def _is_of_purge(info: Mapping[str, Any], runs: Collection[str]) -> bool:
    """Whether a commit that changes a table's metadata is of a purge of ours, and changes only what
    such a purge does. info: What the commit says of itself."""
    commit = _describe(0, None, info.get("userMetadata") or "")
    if commit is None or commit.purge_of is None or commit.run_id not in runs:
        return False
    with suppress(KeyError, TypeError, ValueError):
        changed = json.loads(info["operationParameters"]["properties"])
        is_change = info.get("operation") in ("SET TBLPROPERTIES", "UNSET TBLPROPERTIES")
        return is_change and {*changed} == {RETENTION}
    return False

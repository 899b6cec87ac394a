"""Publishes an audited table: one Delta commit, checked before it is visible."""

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import StructField, StructType

from anonlib.config.model import ReleaseSection
from anonlib.config.paths import find_dictionary_path, find_manifest_path
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
from anonlib.run.history import SAVE_MODES, History
from anonlib.spark.delta_files import (
    Transaction,
    list_added_files,
    make_nullable,
    name_mapping,
    save_mode,
)
from anonlib.spark.delta_log import (
    describe_definitions,
    is_append_only,
    list_clustering,
    list_data_files,
    list_identity_columns,
    read_constraints,
    read_metadata,
    read_partitioning,
    read_property,
    write_checkpoint,
    write_operation,
)
from anonlib.spark.digest import digest
from anonlib.spark.lease import Lease
from anonlib.spark.tasks import (
    count_cores,
    give_each_file_a_task,
    run_uninterrupted,
    settle_tasks,
)
from anonlib.spark.translation import translate, translate_errors
from anonlib.table.schema import Schema
from anonlib.table.table_digest import Digest

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
#: Files that are moved at the same time; a store in a network copies each.
N_MOVES = 8
CHANGED = "the target changed while the release was made; run it again"


class Target(History):
    """The table that a run publishes to, as it was when the run began."""

    def __init__(self, spark: SparkSession, release: ReleaseSection):
        super().__init__(spark, release.path)
        self._release = release

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
        place, other = find_manifest_path(self.path), find_dictionary_path(self.path)
        for path, wanted in ((place.rpartition("/")[0], True), (place, False), (other, False)):
            if self._storage.is_folder(path) is not (wanted and self._storage.exists(path)):
                raise InputError(
                    f"release.path: {path} must be a {'folder' if wanted else 'file'}: the "
                    "manifest, or its dictionary, belongs there; move what is in its place"
                )

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
                    if files is None and self._takes(make_nullable(frame.schema)):
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
            there.schema == schema == make_nullable(schema)
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
                raise StorageError(
                    "release.path: Delta gives the table other columns than its files; nothing was "
                    "published: release to another table"
                )
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
        ours = {name.lower() for name in columns.names}
        for name in made:
            if name.lower() in ours:
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


def _require_equal(rows: DataFrame, digest_of_rows: Digest) -> None:
    if digest(rows) != digest_of_rows:
        raise StorageError(
            "release.path: the written files differ from the audited table; nothing was published: "
            "run it again"
        )


def note_readers(schema: Schema) -> tuple[str, ...]:
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

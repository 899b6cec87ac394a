"""Private Delta tables that runs append rows to: tables of figures and of runs."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from anonlib.errors import BusyError
from anonlib.progress import wait_for
from anonlib.spark.delta_files import forget
from anonlib.spark.lease import lease
from anonlib.spark.storage import Storage
from anonlib.spark.translation import translate_errors

#: If only one driver can append at a time: how long others wait for it. It may have died.
PATIENCE_SECONDS = 300.0
#: If two drivers create the table at the same moment, one of them tries again for this long.
MAKING_SECONDS = 30.0


class PrivateTable:
    """A Delta table that is created with its first rows. `what` names it in errors."""

    def __init__(self, spark: SparkSession, path: str, what: str):
        self._spark = spark
        self._storage = Storage(spark, path)
        self._what = what
        self.path = self._storage.root

    def make_folder(self) -> None:
        """Makes the table's folder, for its owner only. An existing folder stays as it is, since
        several users may share it.

        Raises:
            StorageError: The folder can't be made.
            InputError: The store can't keep concurrent writers apart.
        """
        self._storage.require_conditional()
        if not self._storage.exists(self.path):
            self._storage.make_private(self.path)

    def append(self, rows: Sequence[tuple[Any, ...]], schema: StructType) -> None:
        """Appends rows, in one commit. If an older table lacks columns, they are added to it.

        Several drivers may append to one table.

        Raises:
            BusyError: Others keep the table too long.
        """
        self.make_folder()
        with self._alone():
            self._until_free(lambda: self._add(rows, schema), MAKING_SECONDS, 0.2)

    def _add(self, rows: Sequence[tuple[Any, ...]], schema: StructType) -> None:
        with translate_errors(self._what):
            frame = self._spark.createDataFrame([*rows], schema).coalesce(1)
            writer = frame.write.format("delta").mode("append")
            writer.option("mergeSchema", "true").save(self.path)
            forget(self._spark, self.path)
        self._storage.close(self.path)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Locks out other drivers if Delta can't. On S3 the later of two commits of one version
        would replace the earlier one. On other stores one of them fails, and is tried again."""
        if self._storage.atomic:
            yield
            return
        # The lease is inside the table, where everybody who may append may write. Delta ignores
        # names that begin with `_`.
        work = f"{self.path}/_anonlib"
        with ExitStack() as stack:
            held = partial(lease, self._spark, self.path, self._what, work=work)
            self._until_free(lambda: stack.enter_context(held()), PATIENCE_SECONDS, 1.0)
            yield

    def _until_free(self, work: Callable[[], object], most: float, every: float) -> None:
        """Does the work as soon as no other driver uses the table. Raises BusyError if that takes
        too long."""
        busy: list[BusyError] = []

        def free() -> bool:
            try:
                work()
            except BusyError as error:
                busy[:] = [error]
                return False
            return True

        what = f"others who add rows to {self._what}"
        if not wait_for(what, free, most=most, every=every):
            raise busy[0]

    def rows(self) -> DataFrame | None:
        """All rows; None if none was ever appended."""
        if not self._storage.has_table(self.path):
            return None
        with translate_errors(self._what):
            return self._spark.read.format("delta").load(self.path)

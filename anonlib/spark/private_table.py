"""Private Delta tables that runs add rows to: of figures, of runs."""

import time
from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from anonlib.errors import BusyError
from anonlib.spark.errors import translated
from anonlib.spark.storage import Storage

#: Two drivers that make the table at the same moment: one of them tries again.
TRIES = 5


class PrivateTable:
    """A Delta table that is made when its first rows come. `what` names it in errors."""

    def __init__(self, spark: SparkSession, path: str, what: str):
        self._spark = spark
        self._storage = Storage(spark, path)
        self._what = what
        self.path = self._storage.root

    def make_folder(self) -> None:
        """Makes its folder, for its owner only; one that is there stays as it is, since several
        users may share it. Raises StorageError where it can't be made."""
        if not self._storage.exists(self.path):
            self._storage.make_private(self.path)

    def append(self, rows: Sequence[tuple[Any, ...]], schema: StructType) -> None:
        """Adds rows, in one commit. Columns that an older table lacks are added to it.

        Appends of several drivers don't conflict where the store lets one of two commits of the
        same version win: disks, HDFS, and object stores with conditional puts.
        """
        self.make_folder()
        for left in reversed(range(TRIES)):
            try:
                with translated(self._what):
                    frame = self._spark.createDataFrame([*rows], schema).coalesce(1)
                    writer = frame.write.format("delta").mode("append")
                    writer.option("mergeSchema", "true").save(self.path)
                return
            except BusyError:
                if not left:
                    raise
                time.sleep(0.2)

    def rows(self) -> DataFrame | None:
        """All rows; None where none was ever added."""
        if not self._storage.exists(f"{self.path}/_delta_log"):
            return None
        with translated(self._what):
            return self._spark.read.format("delta").load(self.path)

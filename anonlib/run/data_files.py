"""The files of released rows: how many, in which order, and as written without a commit."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from secrets import randbits
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from anonlib.spark.delta_files import Transaction, forget, list_added_files, save_mode
from anonlib.spark.values import hash_row

#: What the ids of our transactions begin with; the run's id follows.
APP = "anonlib:"
#: The properties of a table that runs make.
PROPERTIES = {"delta.isolationLevel": "Serializable"}
#: The property of the run's own folder that leaves the values of columns out of its log.
NO_VALUES = "delta.dataSkippingNumIndexedCols"
#: A table of fewer rows is not divided among cores.
FEWEST_ROWS = 100_000
_ORDER = "__anonlib_order"


@dataclass(frozen=True)
class DataFiles:
    """Files in a folder of the run.

    Attributes:
        transaction: The transaction that wrote them.
        actions: What a commit needs to add them to a table.
    """

    transaction: Transaction
    actions: Any

    @property
    def paths(self) -> list[str]:
        """Their paths within the folder."""
        return list_added_files(self.actions)

    @property
    def schema(self) -> StructType:
        """The columns of their table, as Delta describes them."""
        return self.transaction.schema

    def read(self, like: StructType, *, file: str | None = None) -> DataFrame:
        """Their rows, with the names and types of `like`. file: A further column, which has the
        file of each row."""
        return self.transaction.read(self.actions, like, file=file)


def write_files(
    spark: SparkSession,
    root: str,
    frame: DataFrame,
    run_id: str,
    partition_by: Sequence[str] = (),
) -> DataFiles:
    """Writes rows as the files of a Delta table, without a commit: one file for each task, or for
    each task and folder. The log gets the number of their rows, but no least and greatest values.
    No reader could skip a file by these, since rows are dealt to files at random, and Delta takes
    long to find them.

    Args:
        spark: The session.
        root: A folder that does not exist.
        frame: The rows, under the names of the table.
        run_id: The run that a commit of these files names.
        partition_by: The columns that files are laid out by.
    """
    transaction = Transaction.begin(spark, root)
    # A session may be set to cut files, or to shuffle rows before they are written.
    options = {"maxRecordsPerFile": "0", "optimizeWrite": "false"}
    options |= {"txnAppId": f"{APP}{run_id}", "txnVersion": "1"}
    properties, mode = PROPERTIES | {NO_VALUES: "0"}, save_mode(spark, "ErrorIfExists")
    try:
        actions = transaction.write(frame, mode, partition_by, options, properties)
    finally:
        forget(spark, root)
    return DataFiles(transaction, actions)


def count_files(n_rows: int, rows_per_file: int, n_cores: int) -> int:
    """The number of files for `n_rows` rows."""
    busy = min(n_cores, ceil(n_rows / FEWEST_ROWS))
    return max(ceil(n_rows / rows_per_file), busy, 1)


def order_in_table(frame: DataFrame, n_files: int) -> DataFrame:
    """Deals rows to tasks, and orders those of each, by a hash of their values with a fresh secret:
    no order of the source, of blocks or of cells remains. Cost: a shuffle."""
    secret = F.xxhash64(F.lit(randbits(63)), hash_row(frame))
    return _sort(frame.withColumn(_ORDER, secret).repartition(n_files, _ORDER))


def order_in_files(frame: DataFrame, n_files: int) -> DataFrame:
    """Joins the tasks of a frame to at most `n_files`, and orders the rows of each at random, by a
    fresh secret. Rows stay with those of their task, and no other task reads them: so the order may
    be another one when a task is run again, and costs no hash of their values."""
    return _sort(frame.withColumn(_ORDER, F.rand(randbits(63))).coalesce(n_files))


def _sort(frame: DataFrame) -> DataFrame:
    return frame.sortWithinPartitions(_ORDER).drop(_ORDER)

"""Record linkage as Spark tasks. Each task compares some rows with all tuples."""

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anonlib.arrays import Ints
from anonlib.errors import run_sanitized
from anonlib.measure.nearest import Attack, Links
from anonlib.spark.tasks import count_cores


def count_tuples(rows: DataFrame, ids: Sequence[str], most: int) -> tuple[pa.Table, Ints] | None:
    """The distinct tuples of columns. Cost: one aggregate.

    Returns:
        The tuples, and int64[tuples], the rows of each. None if there are more than `most` tuples.
    """
    counts = rows.groupBy(*ids).agg(F.count("*").alias("n"))
    found = counts.limit(most + 1).toArrow()
    if found.num_rows > most:
        return None
    return found.select(ids), found.column("n").to_numpy()


def link_rows(spark: SparkSession, attack: Attack, n: int) -> Links:
    """The links of the first n rows of an attack.

    Rows and tuples are sent with the function, as numbers, since pyspark can't broadcast large
    arrays when it encrypts.
    """
    size = attack.chunk
    tasks = min(-(-n // size), 4 * count_cores(spark))
    # pyspark can't read the annotations of a partial; a lambda has none.
    found = spark.range(0, n, size, tasks).mapInArrow(
        lambda batches: _link_batches(batches, attack, size, n),
        "first long, own array<long>, n_tuples array<long>, n_rows array<long>",
    )
    table = found.toArrow().sort_by("first")
    columns = (table.column(i).combine_chunks().flatten().to_numpy() for i in range(1, 4))
    return Links(*columns)


def _link_batches(
    batches: Iterator[pa.RecordBatch], attack: Attack, size: int, n: int
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for first in batch.column(0).to_pylist():
            rows = slice(first, min(n, first + size))
            found = run_sanitized(f"linking {rows.stop - first} rows", partial(attack.linked, rows))
            lists = [pa.array([each.astype(np.int64)]) for each in found]
            yield pa.RecordBatch.from_arrays([pa.array([first]), *lists], ["first", *found._fields])

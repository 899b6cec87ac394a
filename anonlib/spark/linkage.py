"""Record linkage as Spark tasks: each compares some of the rows with all tuples."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from anonlib.errors import sanitized
from anonlib.risk._nearest import Attack, Linked


def linked(spark: SparkSession, attack: Attack, n: int) -> Linked:
    """What the attack finds for the first n rows.

    Rows and tuples are broadcast as numbers, and removed from the workers afterwards.
    """
    size = attack.chunk
    tasks = min(-(-n // size), 4 * spark.sparkContext.defaultParallelism)
    sent = spark.sparkContext.broadcast(attack)
    try:
        chunks = spark.range(0, n, size, tasks)
        # pyspark can't read the annotations of a partial; a lambda has none.
        found = chunks.mapInArrow(
            lambda batches: _linked(batches, sent, size, n),
            "first long, own array<long>, n_tuples array<long>, n_rows array<long>",
        ).toArrow()
    finally:
        sent.destroy()
    found = found.sort_by("first").combine_chunks()
    columns = (found.column(i).combine_chunks().flatten().to_numpy() for i in range(1, 4))
    return Linked(*columns)


def _linked(
    batches: Iterator[pa.RecordBatch], sent: Any, size: int, n: int
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for first in batch.column(0).to_pylist():
            rows = slice(first, min(n, first + size))
            what = f"linking {rows.stop - rows.start} rows"
            found = sanitized(what, partial(sent.value.linked, rows))
            lists = [pa.array([each.astype(np.int64)]) for each in found]
            yield pa.RecordBatch.from_arrays(
                [pa.array([first]), *lists], names=["first", *Linked._fields]
            )

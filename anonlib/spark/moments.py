"""The moments of the target's classes over the whole table, so that all blocks share them."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial, reduce

import pyarrow as pa
from pyspark.sql import DataFrame

from anonlib.block import ClassMoments
from anonlib.errors import sanitized
from anonlib.kernels._discriminant import class_moments
from anonlib.work import HASH, Task, to_block


def table_moments(rows: DataFrame, task: Task) -> ClassMoments:
    """The moments of all rows, exact: one pass through Python, without a shuffle."""
    assert task.target is not None
    ids = [encoding.id for encoding in (*task.encodings, task.target)]
    # What is not needed for moments stays here: keys, sensitive values.
    slim = replace(
        task,
        protected=(),
        values={},
        unit=(),
        models=(),
        context=(),
        own={},
        token_key=b"",
        pseudonym_key=b"",
    )
    frame = rows.select(*ids, HASH).coalesce(rows.sparkSession.sparkContext.defaultParallelism)
    found = frame.mapInArrow(lambda batches: _partial(batches, slim), "moments string").collect()
    return reduce(ClassMoments.merge, (ClassMoments.from_json(row.moments) for row in found))


def _partial(batches: Iterator[pa.RecordBatch], task: Task) -> Iterator[pa.RecordBatch]:
    """The moments of one task's rows."""
    texts = sanitized("class moments", partial(_added_up, batches, task))
    yield pa.record_batch({"moments": pa.array(texts, pa.string())})


def _added_up(batches: Iterator[pa.RecordBatch], task: Task) -> list[str]:
    """The moments of all batches together, as JSON; none of no batches."""
    found = (_moments(batch, task) for batch in batches)
    first = next(found, None)
    return [] if first is None else [reduce(ClassMoments.merge, found, first).to_json()]


def _moments(batch: pa.RecordBatch, task: Task) -> ClassMoments:
    return class_moments(to_block(pa.Table.from_batches([batch]), task)[0])

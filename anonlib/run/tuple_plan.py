"""Plans by tuples: the distinct tuples of a whole table are counted in Spark and searched in one
task, and a broadcast join gives every row the released values of its tuple."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import Accumulator
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anonlib.arrays import Floats
from anonlib.config.model import PartitionSection
from anonlib.errors import run_sanitized
from anonlib.partition.tuples import TuplesPartitioner
from anonlib.run.plan import Plan, StagedFigures, merge_read
from anonlib.run.sample import hash_tuple
from anonlib.run.scan import Scan
from anonlib.spark.values import find_spark_schema
from anonlib.table.columns import (
    BLOCK,
    HASH,
    HIGH,
    LOW,
    TUPLE,
)
from anonlib.table.schema import Schema
from anonlib.table.table_digest import Digest
from anonlib.worker.cell_counts import CellStates, merge_counts, read_counts
from anonlib.worker.losses import describe_losses, rate_losses, rate_losses_by_column
from anonlib.worker.task import Task, Totals, complete_rows, total_rows
from anonlib.worker.tuple_search import CHECK, COUNT, SUMMARY, Bounds, search, search_schema


@dataclass(frozen=True, kw_only=True)
class TuplePlan(Plan):
    """One search over the distinct tuples of the whole table; `n_rows` are those of the tuples that
    it did not suppress.

    Attributes:
        released: TUPLE and the released quasi-identifiers, of the tuples that are not suppressed.
        n_tuples: Distinct tuples.
        n_cells: Cells.
        states: The states of the metrics.
        counts: By counter of the task: its states.
        note: What the kernel says about its search; None for nothing.
    """

    released: DataFrame
    n_tuples: int
    n_cells: int
    states: list[Floats]
    counts: CellStates
    note: str | None

    @property
    def most_files(self) -> int:
        return 1  # rows of a cell are in any task

    def stage(
        self,
        rows: DataFrame,
        schema: Schema,
        task: Task,
        totals: "Accumulator[list[Totals]]",
        *,
        n_partitions: int | None,
        pandas: bool,
    ) -> DataFrame:
        """No shuffle, and one crossing into Python, as Arrow."""
        frame = rows.withColumn(TUPLE, hash_tuple(rows, schema))
        frame = frame.drop(*[column.id for column in schema.quasi_identifiers])
        frame = frame.join(F.broadcast(self.released), TUPLE)
        frame = frame.select(*task.output.names, LOW, HIGH)
        # pyspark can't read the annotations of a partial; a lambda has none.
        return frame.mapInArrow(
            lambda batches: _stage_batches(batches, task, lambda each: totals.add([each])),
            find_spark_schema(task.output),
        )

    def left_out(self, rows: DataFrame, schema: Schema) -> DataFrame:
        """The rows of suppressed tuples."""
        frame = rows.withColumn(TUPLE, hash_tuple(rows, schema))
        return frame.join(F.broadcast(self.released.select(TUPLE)), TUPLE, "left_anti")

    def add_up(
        self, released: Digest, totals: Sequence[Totals], schema: Schema, task: Task
    ) -> StagedFigures:
        read = merge_read(totals)
        losses = rate_losses(task, self.states)
        by_column = rate_losses_by_column(task, self.states, schema)
        counts = merge_counts(task.counters, [self.counts])
        told = () if self.note is None else (self.note,)
        notes = (*told, *describe_losses(task, self.states))
        return StagedFigures(
            read.n_rows, self.n_cells, 1, losses, released, read, by_column, counts, notes
        )

    def to_dict(self) -> dict[str, Any]:
        """For the private run record."""
        content = {"n_tuples": self.n_tuples, "n_cells": self.n_cells}
        return content if self.levels is None else {**content, "levels": self.levels}


def plan_tuples(
    rows: DataFrame,
    schema: Schema,
    scan: Scan,
    partition: PartitionSection,
    max_suppressed: int,
    task: Task,
) -> TuplePlan:
    """Runs the search, which suppresses at most `max_suppressed` rows.

    Raises BlockError if there are too many tuples, or if too few of them can be placed.
    """
    step = next(step for step in partition.steps if isinstance(step, TuplesPartitioner))
    bounds = Bounds(step.max_tuples, max_suppressed)
    quasi = [column.id for column in schema.quasi_identifiers]
    apart = [id for id in schema.protected if id not in quasi]
    frame = rows.withColumn(TUPLE, hash_tuple(rows, schema))
    frame = frame.withColumn(CHECK, F.xxhash64(F.lit(1), TUPLE, *quasi))
    counted = frame.groupBy(TUPLE, CHECK, *apart).agg(
        F.count(F.lit(1)).alias(COUNT), *[F.first(id).alias(id) for id in quasi]
    )
    hashed = F.xxhash64(TUPLE, *[F.col(id).isNull() for id in apart], *apart)
    limited = counted.withColumn(HASH, hashed).limit(bounds.max_tuples + 1)
    output = search_schema(task)
    result = (
        limited.withColumn(BLOCK, F.lit(0))
        .groupBy(BLOCK)
        # pyspark can't read the annotations of a partial; a lambda has none.
        .applyInArrow(lambda table: search(table, task, bounds), find_spark_schema(output))
        .toArrow()
        .combine_chunks()
    )
    summary = result.column(SUMMARY).drop_null()[0].as_py()
    return TuplePlan(
        released=rows.sparkSession.createDataFrame(result.drop([SUMMARY])),
        n_rows=summary["n_rows"],
        n_tuples=summary["n_tuples"],
        n_cells=summary["n_cells"],
        states=[np.array(state, np.float64) for state in summary["states"]],
        counts=read_counts(summary["counts"]),
        levels=_by_name(summary["levels"], schema, scan),
        note=summary["note"],
        values=scan.values,
    )


def _by_name(levels: list[int] | None, schema: Schema, scan: Scan) -> dict[str, int] | None:
    if levels is None:
        return None
    nominal = [schema.by_id(e.id).name for e in scan.encodings if e.nominal]
    return dict(zip(nominal, levels, strict=True))


def _stage_batches(
    batches: Iterator[pa.RecordBatch], task: Task, tell: Callable[[Totals], None]
) -> Iterator[pa.RecordBatch]:
    """The staged batches: adds pseudonyms and links."""
    read: list[Totals] = []
    for batch in batches:
        if batch.num_rows:
            read.append(total_rows(batch))
            yield run_sanitized(f"{batch.num_rows} rows", partial(_with_keys, batch, task))
    n_rows, low, high = (sum(getattr(t, half) for t in read) for half in ("n_rows", "low", "high"))
    tell(Totals(n_rows, low, high))


def _with_keys(batch: pa.RecordBatch, task: Task) -> pa.RecordBatch:
    released = complete_rows(pa.Table.from_batches([batch]), {}, task)
    return pa.RecordBatch.from_arrays(
        [released[name] for name in task.output.names], schema=task.output
    )

"""One pass over a table: each task makes states of its rows; states are merged by name."""

from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa
from pyspark.sql import DataFrame

from anonlib.arrays import Floats
from anonlib.errors import run_sanitized
from anonlib.measure.states import Count, Merge, States
from anonlib.spark.tasks import count_cores

#: Rows to process together.
ROWS = 50_000
#: Tasks per core.
TASKS_PER_CORE = 4
#: Most tasks. The states of each task have about 100 kB for ten columns, and up to about 30 MB for
#: many wide columns and for attacks.
MOST_TASKS = 256
#: Of at most so many tasks, the driver merges the states: to start tasks for it takes longer.
FEW_TASKS = 16

_STATES = "part string, state array<double>"


def fold(frame: DataFrame, count: Count, merge: Merge) -> States:
    """Makes states of all rows, merged by name.

    Cost: one crossing into Python. Of more than FEW_TASKS tasks, a shuffle of their states: the
    driver gets one state per name.

    Args:
        frame: The rows.
        count: Makes states of the rows of one task.
        merge: Merges two states of a name.
    """
    cores = count_cores(frame.sparkSession)
    n_tasks = min(TASKS_PER_CORE * cores, MOST_TASKS)

    def count_task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tables = _gather_tables(batches)
        yield _batch(run_sanitized("comparing columns", lambda: count(tables)))

    def merge_task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield _batch(run_sanitized("comparing columns", lambda: _merge_states(batches, merge)))

    found = frame.coalesce(n_tasks).mapInArrow(count_task, _STATES)
    if n_tasks > FEW_TASKS:
        n_merging = min(cores, MOST_TASKS)
        found = found.repartition(n_merging, "part").mapInArrow(merge_task, _STATES)
    return _merge_states(found.toArrow().to_batches(), merge)


def _batch(states: States) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {"part": list(states), "state": [state.tolist() for state in states.values()]},
        pa.schema([("part", pa.string()), ("state", pa.list_(pa.float64()))]),
    )


def _merge_states(batches: Iterable[pa.RecordBatch], merge: Merge) -> Mapping[str, Floats]:
    states: dict[str, Floats] = {}
    for batch in batches:
        for name, state in zip(*(c.to_numpy(False) for c in batch.columns), strict=True):
            states[name] = merge(name, states[name], state) if name in states else state
    return states


def _gather_tables(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yields the rows as tables of at least ROWS rows. The last table may have fewer."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(each.num_rows for each in waiting) >= ROWS:
            yield pa.Table.from_batches(waiting)
            waiting = []
    if waiting:
        yield pa.Table.from_batches(waiting)

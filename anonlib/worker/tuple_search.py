"""One search over a whole table, without Spark. Finds the released values of distinct tuples."""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from anonlib import registry
from anonlib.arrays import Ints
from anonlib.errors import BlockError, run_sanitized
from anonlib.kernels import Kernel, KernelResult
from anonlib.loss import ReleasedBlock
from anonlib.recode import Cells
from anonlib.table.block import Block, part
from anonlib.table.columns import TUPLE
from anonlib.worker.cell_counts import count_cells
from anonlib.worker.contracts import search_cells, update_metric
from anonlib.worker.task import (
    Task,
    find_released_extents,
    find_released_levels,
    recode_cells,
    spread_cells,
    to_block,
)

CHECK = "__anonlib_check"  # a second hash of the quasi-identifiers
COUNT = "__anonlib_count"
SUMMARY = "__anonlib_summary"

SUMMARY_TYPE = pa.struct(
    [
        ("n_rows", pa.int64()),
        ("n_tuples", pa.int64()),
        ("n_cells", pa.int64()),
        ("levels", pa.list_(pa.int64())),  # of nominal columns; null if cells differ
        ("note", pa.string()),  # on the search; null for none
        ("states", pa.list_(pa.list_(pa.float64()))),
        ("counts", pa.list_(pa.map_(pa.string(), pa.list_(pa.float64())))),
    ]
)


@dataclass(frozen=True)
class Bounds:
    """The limits of a search.

    Attributes:
        max_tuples: The most tuples that are searched.
        may_suppress: The most rows that may have no cell.
    """

    max_tuples: int
    may_suppress: int


def search_schema(task: Task) -> pa.Schema:
    """The columns of a result: TUPLE, the released quasi-identifiers, and SUMMARY. Only the first
    row has a SUMMARY."""
    ids = [id for id, _, _ in task.recoders]
    released = [task.output.field(id) for id in ids]
    return pa.schema([pa.field(TUPLE, pa.int64()), *released, pa.field(SUMMARY, SUMMARY_TYPE)])


def search(table: pa.Table, task: Task, bounds: Bounds) -> pa.Table:
    """Finds the released quasi-identifiers of each tuple.

    Args:
        table: The distinct combinations of quasi-identifiers and protected columns. Further columns
            are TUPLE and CHECK (two hashes of the quasi-identifiers), HASH (a hash of all) and
            COUNT (rows).
        task: The task.
        bounds: The limits of the search.

    Returns:
        A table with the columns of `search_schema`. Suppressed tuples are left out.

    Raises:
        BlockError: Any error of the search. Its cause is dropped, since its text may contain data.
    """
    return run_sanitized("the search", lambda: _search(table.combine_chunks(), task, bounds))


def _search(table: pa.Table, task: Task, bounds: Bounds) -> pa.Table:
    if table.num_rows > bounds.max_tuples:
        raise BlockError(
            f"more than max_tuples = {bounds.max_tuples} distinct combinations of "
            "quasi-identifiers and protected columns; partition by kmeans, coarsen columns, or "
            "raise max_tuples"
        )
    plain = replace(task, unit=(), context=(), target=None, own={})
    block, table = to_block(table, plain)
    weight = table.column(COUNT).to_numpy()
    block = replace(block, weight=weight, may_suppress=bounds.may_suppress)
    kernel: Kernel = registry.build("kernel", task.kernel)
    result = search_cells(kernel, block)
    places = np.flatnonzero(result.cell_id >= 0)
    if not len(places):
        raise BlockError(
            "all rows are suppressed: no cell is left to release; weaken the models, or coarsen "
            "columns"
        )
    cells = Cells(result.cell_id[places], int(result.cell_id.max()) + 1, weight[places])
    task = at_levels(task, result.levels)
    return _recode(block, table.take(pa.array(places)), cells, task, result)


def at_levels(task: Task, levels: Ints | None) -> Task:
    """A task whose recoders generalize nominal columns at least to these heights."""
    if levels is None:
        return task
    nominal = [encoding.id for encoding in task.encodings if encoding.nominal]
    level = dict(zip(nominal, levels.tolist(), strict=True))
    raised = tuple(
        (id, {**spec, "level": max(spec["level"], level[id])} if id in level else spec, domain)
        for id, spec, domain in task.recoders
    )
    return replace(task, recoders=raised)


def _recode(
    block: Block, table: pa.Table, cells: Cells, task: Task, result: KernelResult
) -> pa.Table:
    """The result of a search over a block. `table` has the rows of `cells`."""
    of_cells = recode_cells(table, cells, task)
    tuple_id = table.column(TUPLE).to_numpy()
    first = _first(tuple_id, cells.id, table.column(CHECK).to_numpy())
    levels, own = find_released_levels(task), part(block, np.flatnonzero(result.cell_id >= 0))
    extents = find_released_extents(own, table, cells, of_cells, task)
    released_block = ReleasedBlock(own, cells.id, cells.m, levels, least_extents=extents)
    counted = count_cells(table, of_cells, released_block, task.counters, costs=False)
    # Losses are of all rows: suppressed ones have lost all.
    whole = replace(released_block, block=block, id=result.cell_id)
    metrics = [registry.build("metric", spec) for spec in task.metrics]
    summary = {
        "n_rows": int(cells.count.sum()),
        "n_tuples": len(first),
        "n_cells": cells.m,
        "levels": None if result.levels is None else result.levels.tolist(),
        "note": result.note,
        "states": [update_metric(metric, whole).tolist() for metric in metrics],
        "counts": [[(name, state.tolist()) for name, state in each.items()] for each in counted],
    }
    head = pa.array([summary], SUMMARY_TYPE)
    released = spread_cells(of_cells, cells)
    columns = [pa.array(tuple_id[first])]
    columns += [released[id].take(pa.array(first)) for id, _, _ in task.recoders]
    columns.append(pa.concat_arrays([head, pa.nulls(len(first) - 1, SUMMARY_TYPE)]))
    return pa.table(columns, schema=search_schema(task))


def _first(tuple_id: Ints, cell_id: Ints, check: Ints) -> Ints:
    """The first row of each tuple.

    Raises:
        BlockError: A tuple is in two cells, or two tuples have the same hash. Rows get their
            released values by this hash.
    """
    _, first, place = np.unique(tuple_id, return_index=True, return_inverse=True)
    if (cell_id != cell_id[first][place]).any():
        raise BlockError("the kernel put rows of one tuple into several cells")
    if (check != check[first][place]).any():
        raise BlockError("two tuples have the same hash; partition by kmeans instead")
    return first

"""What a task counts in its cells for the measures of a config."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
import pyarrow as pa

from anonlib import registry
from anonlib.arrays import Floats, Ints
from anonlib.loss import ReleasedBlock
from anonlib.loss.ncp import penalize
from anonlib.measure.cell_sums import CellMeasure, OriginalCells, merge_costs, sum_by_cost
from anonlib.table.encoding import Encoding
from anonlib.table.schema import Schema

#: The cost of a cell is a share of the whole extent, rounded down to a multiple of this.
COST_STEP = 1e-4

#: States by name, for each measure that counts cells.
CellStates: TypeAlias = tuple[Mapping[str, Floats], ...]


class CellCounter(NamedTuple):
    """A measure that counts cells.

    Attributes:
        measure: Its spec.
        ids: The columns whose original values it needs.
        fit: What it fitted to the whole table.
    """

    measure: dict[str, Any]
    ids: tuple[str, ...]
    fit: Any = None


def make_counter(
    measure: CellMeasure, schema: Schema, encodings: Sequence[Encoding], sample: pa.Table
) -> CellCounter:
    """The counter of a measure.

    Args:
        measure: The measure.
        schema: The columns.
        encodings: The encodings of the quasi-identifiers.
        sample: A sample of the source, in a fixed order.
    """
    ids = tuple(column.id for column in measure.choose_columns(schema))
    return CellCounter(registry.spec(measure), ids, measure.fit(schema, encodings, sample))


def read_counts(summary: Iterable[Iterable[tuple[str, list[float]]]]) -> CellStates:
    """States from the summary of a search."""
    return tuple(
        {name: np.array(state, np.float64) for name, state in states} for states in summary
    )


def find_cell_costs(released_block: ReleasedBlock) -> Ints:
    """int64[m]. The cost of each cell: its penalty, in steps of COST_STEP."""
    return np.floor(penalize(released_block) / COST_STEP).astype(np.int64)


def count_cells(
    table: pa.Table,
    released: Mapping[str, Any],
    released_block: ReleasedBlock,
    counters: Sequence[CellCounter],
    *,
    costs: bool,
) -> CellStates:
    """The states of some cells, for each counter.

    Args:
        table: The rows, with their original values. Columns that it lacks are not counted.
        released: By id: the released quasi-identifier of each cell.
        released_block: The cells.
        counters: What is counted.
        costs: Whether cells can be suppressed for their cost, so that costs are told apart.
    """
    if not counters:
        return ()
    cost = find_cell_costs(released_block) if costs else np.zeros(released_block.m, np.int64)
    found = []
    for counter in counters:
        ids = [id for id in counter.ids if id in table.column_names]
        values = {id: table.column(id).combine_chunks() for id in ids}
        cells = OriginalCells(values, released, released_block, counter.fit)
        parts = _measure(counter).count(cells)
        found.append({name: sum_by_cost(each, cost) for name, each in parts.items()})
    return tuple(found)


def merge_counts(
    counters: Sequence[CellCounter], tasks: Iterable[CellStates]
) -> dict[str, dict[str, Floats]]:
    """By type of measure: the states of all tasks together. Sums are exact in any order."""
    merged: dict[str, dict[str, Floats]] = {each.measure["type"]: {} for each in counters}
    for states in tasks:
        for counter, found in zip(counters, states, strict=True):
            known = merged[counter.measure["type"]]
            for name, state in found.items():
                before = known.get(name)
                known[name] = state if before is None else merge_costs(before, state)
    return merged


def _measure(counter: CellCounter) -> CellMeasure:
    return cast(CellMeasure, registry.build("measure", counter.measure))

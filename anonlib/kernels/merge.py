"""Shared by kernels: infeasible blocks, leftover rows, and cells that fail the privacy models."""

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from anonlib.arrays import Floats, Ints
from anonlib.errors import InfeasibleError, Problem
from anonlib.table.block import Block

Array = TypeVar("Array", bound=npt.NDArray[Any])


def require_feasible(block: Block) -> None:
    """Raises InfeasibleError when the block does not hold its models as one cell."""
    counts = block.counts(np.zeros(block.n, np.int64), 1)
    failing = [model.type for model in block.models if not model.holds_within(counts)[0]]
    if failing:
        raise InfeasibleError(
            [
                Problem(
                    "block",
                    (
                        f"its {counts.n_rows[0]} rows do not hold {', '.join(failing)} even as one "
                        "cell"
                    ),
                )
            ]
        )


def merge_failing(block: Block, cell_id: Ints, *, growth: bool = True) -> Ints:
    """Merges cells that fail the models with others until all cells hold them.

    It works in rounds. A round takes the failing cells, fewest rows first, then by first row. Each
    is merged with the cell where this adds least to the sum of squared distances from the current
    centroids. A cell that an earlier one of the round was merged with waits for the next round; it
    may hold the models by then. Each round at least halves the failing cells: O(log m) rounds.
    Cost of a round: O(f (m p + n q)) for f failing cells, less where the numeric columns decide.

    Args:
        block: The block of n rows.
        cell_id: int64[n]. The cell of each row.
        growth: Whether cells are merged by what the merger adds. Else with the cell of the nearest
            centroid, of several with the one of most distinct protected values. Centroids of large
            cells are central, above all in nominal columns, so one cell may take in many.

    Returns:
        int64[n]. The cells, numbered 0..m-1 by first row.

    Raises:
        InfeasibleError: The block does not hold its models as one cell.
    """
    from anonlib.kernels._merge_core import make_groups, merge_once

    require_feasible(block)
    cell_id = by_first_row(cell_id)
    while True:
        rows = np.bincount(cell_id)
        failing = np.flatnonzero(~block.holds(cell_id, len(rows)))
        if len(failing) == 0:
            return cell_id
        failing = failing[np.argsort(rows[failing], kind="stable")]
        rank = np.zeros_like(rows) if growth else _n_values(block, cell_id, len(rows))
        groups = make_groups(*_columns(block), cell_id, len(rows))
        cell_id = by_first_row(merge_once(groups, failing, growth, rank)[cell_id])


def _n_values(block: Block, cell_id: Ints, m: int) -> Ints:
    """int64[m]: how many distinct values a cell has, all protected columns together."""
    found = block.counts(cell_id, m).sensitive.values()
    return sum((np.bincount(each.cell, minlength=m) for each in found), np.zeros(m, np.int64))


def join_nearest(block: Block, cell_id: Ints) -> Ints:
    """int64[n], with every row of cell -1 in the cell whose centroid is nearest to it.

    Of several, the one of fewest rows, then the lowest. Centroids are those before any of these r
    rows joins. Cost O(r (m p + n q)).
    """
    from anonlib.kernels._merge_core import make_groups, nearest_of

    left = np.flatnonzero(cell_id < 0)
    if len(left) == 0:
        return cell_id
    m = int(cell_id.max()) + 1
    cell_id = cell_id.copy()
    cell_id[left] = m + np.arange(len(left))
    groups = make_groups(*_columns(block), cell_id, m + len(left))
    cell_id[left] = nearest_of(groups, cell_id[left], m)
    return cell_id


def by_first_row(cell_id: Ints) -> Ints:
    """The same cells, numbered 0..m-1 by their first rows. Cost O(n + m log m)."""
    n = len(cell_id)
    first = np.full(cell_id.max(initial=-1) + 1, n)
    first[cell_id[::-1]] = np.arange(n)[::-1]
    number = np.empty(len(first), np.int64)
    number[np.argsort(first, kind="stable")] = np.arange(len(first))
    return number[cell_id]


def points(block: Block) -> Floats:
    """float64[m, p + q], the block's distinct tuples: numeric columns, then codes."""
    first = block.tuples.first
    if block.nominal.shape[1] == 0 and len(first) == block.n:
        return writable_contiguous(block.numeric)
    return writable_contiguous(np.concatenate([block.numeric[first], block.nominal[first]], axis=1))


def writable_contiguous(array: Array) -> Array:
    """The array as the cores are compiled for, copied only if it is read-only or strided."""
    result: Array = np.require(array, requirements=["C", "W"])
    return result


def _columns(block: Block) -> tuple[Any, Any, int]:
    return (
        writable_contiguous(block.numeric),
        writable_contiguous(block.nominal),
        int(block.n_categories.max(initial=0)),
    )

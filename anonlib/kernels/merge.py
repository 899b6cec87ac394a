"""Helpers of kernels: for infeasible blocks, leftover rows, and cells that fail the models."""

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from anonlib.arrays import Floats, Ints
from anonlib.errors import InfeasibleError, Problem
from anonlib.table.block import Block

Array = TypeVar("Array", bound=npt.NDArray[Any])


def require_feasible(block: Block) -> None:
    """Raises InfeasibleError if the block does not hold its models as one cell."""
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

    It works in rounds. A round visits the failing cells, fewest rows first, then by first row. It
    merges each with the cell for which the sum of squared distances from the current centroids
    grows least. A failing cell that already took part in a merger of this round waits for the next
    one, because it may hold the models by then. Each round at least halves the number of failing
    cells, so there are O(log m) rounds. A round costs O(f (m p + n q)) for f failing cells, and
    less where the numeric columns decide.

    Args:
        block: The block of n rows.
        cell_id: int64[n]. The cell of each row.
        growth: Whether the growth of that sum chooses the cell. Otherwise, the nearest centroid
            chooses it, and ties go to the cell with the most distinct protected values. Large
            cells have central centroids, above all in nominal columns, so one cell may then
            attract many.

    Returns:
        int64[n]. The cells, numbered 0..m-1 by first row.

    Raises:
        InfeasibleError: The block does not hold its models as one cell.
    """
    from anonlib.kernels._merge_core import make_groups, merge_once

    require_feasible(block)
    cell_id = number_by_first_row(cell_id)
    while True:
        rows = np.bincount(cell_id)
        failing = np.flatnonzero(~block.holds(cell_id, len(rows)))
        if len(failing) == 0:
            return cell_id
        failing = failing[np.argsort(rows[failing], kind="stable")]
        rank = np.zeros_like(rows) if growth else _n_values(block, cell_id, len(rows))
        groups = make_groups(*_columns(block), cell_id, len(rows))
        cell_id = number_by_first_row(merge_once(groups, failing, growth, rank)[cell_id])


def _n_values(block: Block, cell_id: Ints, m: int) -> Ints:
    """int64[m]. The distinct values of each cell, summed over the protected columns."""
    found = block.counts(cell_id, m).sensitive.values()
    return sum((np.bincount(each.cell, minlength=m) for each in found), np.zeros(m, np.int64))


def join_nearest(block: Block, cell_id: Ints) -> Ints:
    """Moves each of the r rows of cell -1 into the cell with the nearest centroid.

    Ties go to the cell of fewest rows, then to the lowest number. Centroids are computed before
    any of these rows joins. Cost O(r (m p + n q)).

    Returns:
        int64[n]. The cell of each row.
    """
    from anonlib.kernels._merge_core import find_nearest_cells, make_groups

    left = np.flatnonzero(cell_id < 0)
    if len(left) == 0:
        return cell_id
    m = int(cell_id.max()) + 1
    cell_id = cell_id.copy()
    cell_id[left] = m + np.arange(len(left))
    groups = make_groups(*_columns(block), cell_id, m + len(left))
    cell_id[left] = find_nearest_cells(groups, cell_id[left], m)
    return cell_id


def number_by_first_row(cell_id: Ints) -> Ints:
    """The same cells, numbered 0..m-1 by their first rows. Cost O(n + m log m)."""
    n = len(cell_id)
    first = np.full(cell_id.max(initial=-1) + 1, n)
    first[cell_id[::-1]] = np.arange(n)[::-1]
    number = np.empty(len(first), np.int64)
    number[np.argsort(first, kind="stable")] = np.arange(len(first))
    return number[cell_id]


def list_points(block: Block) -> Floats:
    """float64[m, p + q]. The block's distinct tuples: numeric columns, then codes."""
    first = block.tuples.first
    if block.nominal.shape[1] == 0 and len(first) == block.n:
        return make_writable(block.numeric)
    return make_writable(np.concatenate([block.numeric[first], block.nominal[first]], axis=1))


def make_writable(array: Array) -> Array:
    """Makes an array writable and contiguous, as the cores need it. Copies it only if it is not."""
    result: Array = np.require(array, requirements=["C", "W"])
    return result


def _columns(block: Block) -> tuple[Any, Any, int]:
    return (
        make_writable(block.numeric),
        make_writable(block.nominal),
        int(block.n_categories.max(initial=0)),
    )

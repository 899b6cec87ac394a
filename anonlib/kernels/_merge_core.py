"""The compiled core of merging cells: their centroids, and the nearest cell of each."""

from typing import NamedTuple

import numpy as np

from anonlib.arrays import Codes, Floats, Ints
from anonlib.compiled import njit


class Groups(NamedTuple):
    """m cells of n rows.

    The rows of a cell are a linked list: first[cell], following[first[cell]], ..., last[cell].

    Attributes:
        numeric: float64[n, p]. The numeric columns.
        nominal: int32[n, q]. The codes of the nominal columns.
        rows: int64[m]. The rows of each cell.
        total: float64[m, p]. Sums of the numeric columns.
        mean: float64[m, p]. Their means.
        squares: float64[m, q]. The sum, over the categories, of the square of their row count.
        first: int64[m]. The first row of each cell; -1 without rows.
        last: int64[m]. Its last row; -1 without rows.
        following: int64[n]. The next row of the same cell; -1 after the last.
        scratch: int64[q, the most categories]. Zeros between calls.
    """

    numeric: Floats
    nominal: Codes
    rows: Ints
    total: Floats
    mean: Floats
    squares: Floats
    first: Ints
    last: Ints
    following: Ints
    scratch: Ints


@njit
def make_groups(numeric: Floats, nominal: Codes, categories: int, cell: Ints, m: int) -> Groups:
    """Makes groups of the cells 0..m-1. cell: int64[n], the cell of each row.

    Cost O(n (p + q)).
    """
    n, p, q = len(cell), numeric.shape[1], nominal.shape[1]
    groups = Groups(
        numeric,
        nominal,
        np.zeros(m, np.int64),
        np.zeros((m, p)),
        np.zeros((m, p)),
        np.zeros((m, q)),
        np.full(m, -1, np.int64),
        np.full(m, -1, np.int64),
        np.full(n, -1, np.int64),
        np.zeros((q, categories), np.int64),
    )
    for row in range(n):
        c = cell[row]
        if groups.rows[c] == 0:
            groups.first[c] = row
        else:
            groups.following[groups.last[c]] = row
        groups.last[c] = row
        groups.rows[c] += 1
        for j in range(p):
            groups.total[c, j] += numeric[row, j]
    for c in range(m):
        _describe(groups, c)
    return groups


@njit
def _describe(groups: Groups, cell: int) -> None:
    """Computes `mean` and `squares` of a cell from its total and its rows."""
    for j in range(groups.total.shape[1]):
        groups.mean[cell, j] = groups.total[cell, j] / groups.rows[cell]
    _count(groups, cell, 1)
    for h in range(groups.nominal.shape[1]):
        result = 0
        row = groups.first[cell]
        while row >= 0:
            result += groups.scratch[h, groups.nominal[row, h]]
            row = groups.following[row]
        groups.squares[cell, h] = result
    _count(groups, cell, -1)


@njit
def _count(groups: Groups, cell: int, step: int) -> None:
    """Adds `step` to `scratch` for every category of every row of the cell."""
    row = groups.first[cell]
    while row >= 0:
        for h in range(groups.nominal.shape[1]):
            groups.scratch[h, groups.nominal[row, h]] += step
        row = groups.following[row]


@njit
def _nearest_cell(groups: Groups, cell: int, stop: int, growth: bool, rank: Ints) -> int:
    """The nearest cell to `cell`, of those numbered below `stop`. Cells without rows are skipped.

    It is the cell with the nearest centroid. With `growth`, it is the cell for which a merger adds
    least to the sum of squares: the squared distance times a b / (a + b), where a and b are the
    rows of both. Ties go to the highest rank, then to the fewest rows, then to the lowest number.

    The squared distance of two centroids is a sum in column order. A numeric column adds the
    squared difference of the means. A nominal column adds half the sum of the squared differences
    of the categories' shares (1 for two rows that differ). This is computed as half the sum of all
    squared shares, minus the sum of the products of shares, and is at least 0.
    """
    _count(groups, cell, 1)
    rows, mean, squares = groups.rows, groups.mean, groups.squares
    best, result = np.inf, -1
    for other in range(stop):
        if other == cell or rows[other] == 0:
            continue
        pairs = rows[cell] * rows[other]
        factor = pairs / (rows[cell] + rows[other]) if growth else 1.0
        distance = 0.0
        for j in range(mean.shape[1]):
            gap = mean[other, j] - mean[cell, j]
            distance += gap * gap
            if factor * distance > best:
                break
        for h in range(squares.shape[1]):
            if factor * distance > best:
                break
            own = squares[cell, h] / (rows[cell] * rows[cell])
            its = squares[other, h] / (rows[other] * rows[other])
            distance += max(0.5 * (own + its) - _in_common(groups, other, h) / pairs, 0.0)
        far = factor * distance
        if far < best or (far == best and _before(rank, rows, other, result)):
            best, result = far, other
    _count(groups, cell, -1)
    return result


@njit
def _before(rank: Ints, rows: Ints, cell: int, other: int) -> bool:
    """Whether a cell is preferred to another that is as near."""
    if rank[cell] != rank[other]:
        return bool(rank[cell] > rank[other])
    return bool(rows[cell] < rows[other])


@njit
def _in_common(groups: Groups, cell: int, h: int) -> int:
    """Counts pairs of a row of the cell and a row counted in `scratch`, which agree in column h."""
    result = 0
    row = groups.first[cell]
    while row >= 0:
        result += groups.scratch[h, groups.nominal[row, h]]
        row = groups.following[row]
    return result


@njit
def merge_once(groups: Groups, failing: Ints, growth: bool, rank: Ints) -> Ints:
    """Merges each failing cell with its nearest cell at that moment (see `_nearest_cell`).

    Cells are visited in the given order. A cell that was already merged in this call is skipped.

    Args:
        groups: The cells. They are updated.
        failing: int64. The failing cells.
        growth: As for `_nearest_cell`.
        rank: int64[m]. As for `_nearest_cell`. A merged cell gets the higher rank of both.

    Returns:
        int64[m]. The cell that each cell now belongs to.
    """
    m = len(groups.rows)
    into = np.arange(m)
    in_pair = np.zeros(m, np.bool_)
    for cell in failing:
        if not in_pair[cell]:
            other = _nearest_cell(groups, cell, m, growth, rank)
            keep, gone = min(cell, other), max(cell, other)
            _join(groups, keep, gone)
            rank[keep] = max(rank[keep], rank[gone])
            into[gone] = keep
            in_pair[keep] = in_pair[gone] = True
    for cell in range(m):
        into[cell] = into[into[cell]]
    return into


@njit
def _join(groups: Groups, keep: int, gone: int) -> None:
    """Moves the rows of cell `gone` into cell `keep`."""
    groups.rows[keep] += groups.rows[gone]
    groups.rows[gone] = 0
    for j in range(groups.total.shape[1]):
        groups.total[keep, j] += groups.total[gone, j]
    groups.following[groups.last[keep]] = groups.first[gone]
    groups.last[keep] = groups.last[gone]
    _describe(groups, keep)


@njit
def find_nearest_cells(groups: Groups, cells: Ints, stop: int) -> Ints:
    """For each of some cells, the cell with a number below `stop` that has the nearest centroid."""
    result, rank = np.empty(len(cells), np.int64), np.zeros(len(groups.rows), np.int64)
    for i in range(len(cells)):
        result[i] = _nearest_cell(groups, cells[i], stop, False, rank)
    return result

"""The compiled core of merging: centroids of cells, and the cells nearest to each other."""

from typing import NamedTuple

import numpy as np

from anonlib.arrays import Codes, Floats, Ints
from anonlib.compiled import njit


class Groups(NamedTuple):
    """m cells. rows: [m], how many rows; total, mean: [m, p], of the numeric columns; squares:
    [m, q], the sum over the categories of their squared numbers of rows. The rows of a cell are
    a chain: first[cell], following[row], ..., last[cell]. scratch: [q, the most categories].
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
    """The cells that cell[row] = 0..m-1 gives. Cost O(n (p + q))."""
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
    """Computes mean and squares from total, rows and the chain."""
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
    """Adds `step` to the scratch for every category of every row of the cell."""
    row = groups.first[cell]
    while row >= 0:
        for h in range(groups.nominal.shape[1]):
            groups.scratch[h, groups.nominal[row, h]] += step
        row = groups.following[row]


@njit
def _nearest_cell(groups: Groups, cell: int, stop: int, growth: bool, rank: Ints) -> int:
    """The cell below `stop` whose centroid is nearest to that of `cell`, or, for `growth`, with
    which it is merged at the smallest growth of the sum of squares: the distance times the product
    of both numbers of rows over their sum. Of several the one of highest rank, then of fewest rows,
    then the lowest.

    Squared distance: the sum over the numeric columns of (mean - mean)**2, in order, then over
    the nominal columns of half the squared differences of the categories' shares (which is 1 for
    two rows that differ), computed as half of both sums of squared shares minus the sum of their
    products, and not below 0. Cells without rows are passed over.
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
    """Whether a cell is preferred to one that is as near."""
    if rank[cell] != rank[other]:
        return bool(rank[cell] > rank[other])
    return bool(rows[cell] < rows[other])


@njit
def _in_common(groups: Groups, cell: int, h: int) -> int:
    """The number of pairs of a row of the cell and a row in the scratch with the same category."""
    result = 0
    row = groups.first[cell]
    while row >= 0:
        result += groups.scratch[h, groups.nominal[row, h]]
        row = groups.following[row]
    return result


@njit
def merge_once(groups: Groups, failing: Ints, growth: bool, rank: Ints) -> Ints:
    """Merges each failing cell, in this order, with the one that is nearest at that moment (see
    `_nearest_cell`), unless an earlier of them has been merged with it. int64[m], the cell that
    each becomes part of. rank: [m]; merged cells have the higher of both."""
    m = len(groups.rows)
    into = np.arange(m)
    done = np.zeros(m, np.bool_)
    for cell in failing:
        if not done[cell]:
            other = _nearest_cell(groups, cell, m, growth, rank)
            keep, gone = min(cell, other), max(cell, other)
            _join(groups, keep, gone)
            rank[keep] = max(rank[keep], rank[gone])
            into[gone] = keep
            done[keep] = done[gone] = True
    for cell in range(m):
        into[cell] = into[into[cell]]
    return into


@njit
def _join(groups: Groups, keep: int, gone: int) -> None:
    """Puts the rows of one cell into another."""
    groups.rows[keep] += groups.rows[gone]
    groups.rows[gone] = 0
    for j in range(groups.total.shape[1]):
        groups.total[keep, j] += groups.total[gone, j]
    groups.following[groups.last[keep]] = groups.first[gone]
    groups.last[keep] = groups.last[gone]
    _describe(groups, keep)


@njit
def nearest_of(groups: Groups, cells: Ints, stop: int) -> Ints:
    """The cell below `stop` whose centroid is nearest to that of each of the cells."""
    result, rank = np.empty(len(cells), np.int64), np.zeros(len(groups.rows), np.int64)
    for i in range(len(cells)):
        result[i] = _nearest_cell(groups, cells[i], stop, False, rank)
    return result

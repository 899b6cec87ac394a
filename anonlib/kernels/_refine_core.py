"""Rows in cells, as refining moves them: what is kept of each cell, and how it changes.

The loss is the sum over the rows of the squared distance from the centroid of their cell.
"""

from typing import NamedTuple

import numpy as np

from anonlib.block import Codes, Floats, Ints
from anonlib.kernels._numba import njit

#: The group of free cells.
FREE = 2**40


class State(NamedTuple):
    """n rows in at most c cells; a cell without rows is free.

    numeric: [n, p]; nominal: [n, q]. cell: [n]. The rows of a cell are a chain: first[cell],
    after[row], ..., -1. own: [n], the squared distance of a row from the centroid of its cell;
    lean: [n], what is computed of a row and one more cell. rows: [c], how many; total, mean:
    [c, p], of the numeric columns; spread: [c], the sum over the nominal columns of half of 1 +
    the sum of squared shares; radius, loss: [c], the largest `own` and the sum. changed: [c],
    what clock[0] was at the last change. group: [c]; rows are moved between cells of one group
    only, and group g is made around cell center[g]. tally: scratch for rows by category, column h
    from start[h] on. blur: [1], more than what rounding does to the distance from a centroid.
    """

    numeric: Floats
    nominal: Codes
    cell: Ints
    after: Ints
    own: Floats
    lean: Floats
    first: Ints
    rows: Ints
    total: Floats
    mean: Floats
    spread: Floats
    radius: Floats
    loss: Floats
    changed: Ints
    clock: Ints
    group: Ints
    center: Ints
    tally: Ints
    start: Ints
    blur: Floats


@njit
def make_state(numeric: Floats, nominal: Codes, n_categories: Ints, cell: Ints, c: int) -> State:
    """The rows in cells 0..c-1 as given, all of one group. Cost O(n (p + q))."""
    n, p, q = len(cell), numeric.shape[1], nominal.shape[1]
    start = np.zeros(q + 1, np.int64)
    for h in range(q):
        start[h + 1] = start[h] + n_categories[h]
    state = State(
        numeric,
        nominal,
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.zeros(n),
        np.zeros(n),
        np.full(c, -1),
        np.zeros(c, np.int64),
        np.zeros((c, p)),
        np.zeros((c, p)),
        np.zeros(c),
        np.zeros(c),
        np.zeros(c),
        np.ones(c, np.int64),
        np.ones(1, np.int64),
        np.zeros(c, np.int64),
        np.zeros(c, np.int64),
        np.zeros(start[q], np.int64),
        start,
        np.zeros(1),
    )
    largest = 0.0
    for row in range(n - 1, -1, -1):
        _put(state, row, cell[row])
        for j in range(p):
            largest = max(largest, abs(numeric[row, j]))
    # A mean is off by 2**-53 of the largest value at most, a sum of p squares by p times that.
    state.blur[0] = 2.0**-49 * p * largest
    for i in range(c):
        describe(state, i)
    gather(state)
    return state


@njit
def gather(state: State) -> None:
    """Makes all cells with rows one group."""
    for i in range(len(state.rows)):
        state.group[i] = 0 if state.rows[i] > 0 else FREE


@njit
def _put(state: State, row: int, cell: int) -> None:
    """Puts a row that is in no cell in front of a cell's chain."""
    state.cell[row] = cell
    state.after[row] = state.first[cell]
    state.first[cell] = row
    state.rows[cell] += 1
    for j in range(state.numeric.shape[1]):
        state.total[cell, j] += state.numeric[row, j]


@njit
def move(state: State, row: int, cell: int) -> None:
    """Moves a row to another cell; `change` must follow."""
    old = state.cell[row]
    if state.first[old] == row:
        state.first[old] = state.after[row]
    else:
        previous = state.first[old]
        while state.after[previous] != row:
            previous = state.after[previous]
        state.after[previous] = state.after[row]
    state.rows[old] -= 1
    for j in range(state.numeric.shape[1]):
        state.total[old, j] -= state.numeric[row, j]
    _put(state, row, cell)


@njit
def change(state: State, a: int, b: int) -> None:
    """Describes two cells between which rows have moved."""
    describe(state, a)
    describe(state, b)
    state.clock[0] += 1
    state.changed[a] = state.changed[b] = state.clock[0]


@njit
def describe(state: State, cell: int) -> None:
    """Computes all that follows from the rows of a cell."""
    numeric, mean, own, after = state.numeric, state.mean, state.own, state.after
    p, n, first = numeric.shape[1], state.rows[cell], state.first[cell]
    for j in range(p):
        mean[cell, j] = state.total[cell, j] / max(n, 1)
    row = first
    while row >= 0:
        distance = 0.0
        for j in range(p):
            gap = numeric[row, j] - mean[cell, j]
            distance += gap * gap
        own[row] = distance
        row = after[row]
    if state.nominal.shape[1] > 0:
        _describe_nominal(state, cell)
    radius, loss = 0.0, 0.0
    row = first
    while row >= 0:
        radius = max(radius, own[row])
        loss += own[row]
        row = after[row]
    state.radius[cell], state.loss[cell] = radius, loss


@njit
def _describe_nominal(state: State, cell: int) -> None:
    """Computes the spread of a cell, and adds what the nominal columns contribute to `own`."""
    n, q = state.rows[cell], state.nominal.shape[1]
    count(state, cell)
    squares = 0
    row = state.first[cell]
    while row >= 0:
        squares += in_common(state, row)
        row = state.after[row]
    state.spread[cell] = 0.5 * (q + squares / max(n * n, 1))
    row = state.first[cell]
    while row >= 0:
        state.own[row] += from_nominal(state, row, cell)
        row = state.after[row]
    clear(state, cell)


@njit
def count(state: State, cell: int) -> None:
    """Counts the categories of the rows of a cell in the tally, which is 0."""
    row = state.first[cell]
    while row >= 0:
        for h in range(state.nominal.shape[1]):
            state.tally[state.start[h] + state.nominal[row, h]] += 1
        row = state.after[row]


@njit
def clear(state: State, cell: int) -> None:
    """Sets the tally to 0 after a cell was counted."""
    row = state.first[cell]
    while row >= 0:
        for h in range(state.nominal.shape[1]):
            state.tally[state.start[h] + state.nominal[row, h]] = 0
        row = state.after[row]


@njit
def in_common(state: State, row: int) -> int:
    """How many counted categories are those of a row."""
    result = 0
    for h in range(state.nominal.shape[1]):
        result += state.tally[state.start[h] + state.nominal[row, h]]
    return result


@njit
def from_nominal(state: State, row: int, cell: int) -> float:
    """What the nominal columns add to the squared distance of a row from the centroid of the cell
    that is counted."""
    return float(max(state.spread[cell] - in_common(state, row) / state.rows[cell], 0.0))


@njit
def from_centroid(state: State, row: int, cell: int) -> float:
    """The squared distance of a row from the centroid of the cell that is counted."""
    result = 0.0
    for j in range(state.numeric.shape[1]):
        gap = state.numeric[row, j] - state.mean[cell, j]
        result += gap * gap
    if state.nominal.shape[1] > 0:
        result += from_nominal(state, row, cell)
    return result

"""Descent: steps between cells that are near each other, until none lowers the loss."""

import numpy as np

from anonlib.block import Codes, Floats, Ints
from anonlib.kernels._leaves import fill, make_leaves, sort
from anonlib.kernels._numba import njit
from anonlib.kernels._refine_core import FREE, State, change, clear, count, move
from anonlib.kernels._refine_steps import Steps, apart, next_steps
from anonlib.kernels._search import make_nearest, nearest


@njit
def near_cells(state: State, room: int) -> Ints:
    """int64[c, room], the cells near each one, nearest first; -1 where there are no more.

    Cells are as near as their centroids, with the most frequent category of each nominal column.
    """
    p, q = state.numeric.shape[1], state.nominal.shape[1]
    near = np.full((len(state.rows), room), -1)
    used = np.flatnonzero(state.rows)
    value = np.zeros((len(used), max(p + q, 1)))  # leaves have a column
    for i in range(len(used)):
        for j in range(p):
            value[i, j] = state.mean[used[i], j]
        if q > 0:
            _modes(state, used[i], value[i, p:])
    leaves = make_leaves(value, p)
    one = np.ones(len(used), np.int64)
    fill(leaves, one)
    heap = make_nearest(min(room + 1, len(used)))
    for i in range(len(used)):
        nearest(leaves, i, min(room + 1, len(used)), one, heap)
        sort(heap.distance, heap.item, heap.size[0])
        slot = 0
        for place in range(heap.size[0]):
            other = heap.item[place]
            if other != i and slot < room:
                near[used[i], slot] = used[other]
                slot += 1
    return near


@njit
def _modes(state: State, cell: int, mode: Floats) -> None:
    """Sets mode[h] to the most frequent category of nominal column h in a cell."""
    count(state, cell)
    for h in range(len(mode)):
        most = 0
        row = state.first[cell]
        while row >= 0:
            rows = state.tally[state.start[h] + state.nominal[row, h]]
            if rows > most:
                most, mode[h] = rows, state.nominal[row, h]
            row = state.after[row]
    clear(state, cell)


@njit
def descend(state: State, near: Ints, seen: Codes, k: int, passes: int, steps: Steps) -> None:
    """Takes the best step between two near cells as long as there is one, in at most so many passes
    over all cells. Cells keep k rows, and those of 2k or more are split."""
    _split_large(state, near, seen, k)
    for _ in range(passes):
        if not exchange(state, near, seen, k, steps):
            break
        _split_large(state, near, seen, k)


@njit
def exchange(state: State, near: Ints, seen: Codes, k: int, steps: Steps) -> bool:
    """Goes over all cells once, and takes the best step between two near ones as long as there is
    one. Cells keep k rows. Returns whether there was a step."""
    before = state.clock[0]
    for a in range(len(state.rows)):
        slot = 0 if state.rows[a] > 0 else -1
        while slot >= 0:
            slot = next_steps(state, near, seen, a, slot, k, steps)
            if slot >= 0:
                _take_best(state, a, near[a, slot], steps)
    return bool(state.clock[0] > before)


@njit
def _take_best(state: State, a: int, b: int, steps: Steps) -> None:
    """Takes the first of the steps between two cells."""
    if steps.leaves[0] >= 0:
        move(state, steps.leaves[0], b)
    if steps.comes[0] >= 0:
        move(state, steps.comes[0], a)
    change(state, a, b)


@njit
def _split_large(state: State, near: Ints, seen: Codes, k: int) -> None:
    """Splits the cells of 2k rows or more."""
    for cell in range(len(state.rows)):
        while state.rows[cell] >= 2 * k:
            new = free_cell(state, cell)
            if new < 0:
                break
            mark_nearest(state, farthest(state, cell), k)
            split(state, cell, new)
            settle(state, near, seen, cell, new)


@njit
def free_cell(state: State, cell: int) -> int:
    """A free cell that can take part of a cell: its group's own, or one of no group; -1 if none.

    A free cell of another group may be needed to take back what that has lost.
    """
    group = state.group[cell]
    if group < len(state.center):
        center = state.center[group]
        if state.rows[center] == 0 and state.group[center] == group:
            return int(center)
    for i in range(len(state.rows)):
        if state.group[i] == FREE:
            return i
    return -1


@njit
def farthest(state: State, cell: int) -> int:
    """The row of a cell that is farthest from the centroid."""
    far = row = state.first[cell]
    while row >= 0:
        if state.own[row] > state.own[far]:
            far = row
        row = state.after[row]
    return int(far)


@njit
def mark_nearest(state: State, center: int, k: int) -> None:
    """Sets `lean` to -1 for a row and the k - 1 of its cell nearest to it, and to 0 or more for the
    others there."""
    first = state.first[state.cell[center]]
    row = first
    while row >= 0:
        state.lean[row] = apart(state.numeric, state.nominal, center, row)
        row = state.after[row]
    state.lean[center] = -1.0
    for _ in range(k - 1):
        best, least = -1, np.inf
        row = first
        while row >= 0:
            if 0.0 <= state.lean[row] < least:
                best, least = row, state.lean[row]
            row = state.after[row]
        state.lean[best] = -1.0


@njit
def split(state: State, cell: int, new: int) -> None:
    """Moves the rows that are marked to a free cell."""
    row = state.first[cell]
    while row >= 0:
        following = state.after[row]
        if state.lean[row] < 0.0:
            move(state, row, new)
        row = following
    change(state, cell, new)


@njit
def settle(state: State, near: Ints, seen: Codes, cell: int, new: int) -> None:
    """Gives a cell that was split off the group and the near cells of the other part."""
    state.group[new] = state.group[cell]
    missing = True
    for t in range(near.shape[1]):
        itself = near[cell, t] == new
        near[new, t] = cell if itself else near[cell, t]
        missing = missing and not itself
        seen[new, t] = 0
    if missing:
        near[new, -1] = cell

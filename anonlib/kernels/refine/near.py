"""Near cells: the cells that a cell exchanges rows with, or gives all its rows to."""

import numpy as np

from anonlib.arrays import Codes, Floats, Ints
from anonlib.compiled import njit, njit_in_place
from anonlib.kernels._kd_tree import fill_leaves, make_leaves
from anonlib.kernels._search import find_nearest, make_nearest
from anonlib.kernels.refine.extent_steps import find_extent_places, find_near_by_gain
from anonlib.kernels.refine.row_lists import RefineState
from anonlib.kernels.refine.state import (
    change_now,
    clear,
    count_categories,
    describe_cell,
    gather,
    measure_nominal,
    move_row,
)
from anonlib.kernels.refine.step_list import LEAST


@njit
def find_near_cells(state: RefineState, room: int) -> Ints:
    """int64[c, room]. Cells near each cell: another one that is equal, then others, nearest first,
    one for all those that are equal; -1 if there are no more. Cost O(c room d log c), about.

    Where rows repeat, many cells have the same rows: if all of them were near, no other cell would
    be. So cells of the same point and loss are equal here. (Nominal columns can make others so;
    that harms little.) Which of them is taken depends on the numbers of both cells, so that each
    one is near some cell.

    The distance is between two points: the means of the numeric columns, and the most frequent
    category of each nominal column. By the normalized certainty penalty, near cells are others
    (`find_near_by_gain`).
    """
    if state.by_penalty:
        return find_near_by_gain(state.extents, state, room)
    near = np.full((len(state.rows), room), -1)
    cells = np.flatnonzero(state.rows)
    points = _centroids(state, cells)
    loss = state.loss[cells].reshape((-1, 1))
    order, start, place = _group_equal(np.concatenate((points, loss), axis=1))
    n_points = len(start) - 1
    leaves = make_leaves(points, state.numeric.shape[1])
    one = np.zeros(len(cells), np.int64)
    one[order[start[:-1]]] = 1  # one of the cells that are equal
    fill_leaves(leaves, one)
    most = min(room + 1, n_points)
    nearest = make_nearest(most)
    for g in range(n_points):
        first, size = start[g], start[g + 1] - start[g]
        find_nearest(leaves, order[first], most, one, nearest)
        for number in range(size):
            cell = cells[order[first + number]]
            slot = 0
            if size > 1:
                near[cell, 0] = cells[order[first + (number + 1) % size]]
                slot = 1
            for t in range(nearest.size[0]):
                h = place[nearest.item[t]]
                if h != g and slot < room:
                    other = start[h] + number % (start[h + 1] - start[h])
                    near[cell, slot] = cells[order[other]]
                    slot += 1
    return near


@njit
def _centroids(state: RefineState, cells: Ints) -> Floats:
    """float64[len(cells), d]. The point of each cell; with one column at least."""
    p, q = state.numeric.shape[1], state.nominal.shape[1]
    points = np.zeros((len(cells), max(p + q, 1)))
    for i in range(len(cells)):
        for j in range(p):
            points[i, j] = state.mean[cells[i], j]
        if q > 0:
            _modes(state, cells[i], points[i, p:])
    return points


@njit
def _group_equal(points: Floats) -> tuple[Ints, Ints, Ints]:
    """The numbers of the points, equal ones together; where each group of equal points starts, and
    the end; the group of each point."""
    order = np.arange(len(points))
    for j in range(points.shape[1]):
        order = order[np.argsort(points[order, j], kind="mergesort")]
    group = np.zeros(len(points), np.int64)
    start = np.zeros(len(points) + 1, np.int64)
    n = 0
    for i in range(len(order)):
        if i == 0 or (points[order[i]] != points[order[i - 1]]).any():
            start[n] = i
            n += 1
        group[order[i]] = n - 1
    start[n] = len(order)
    return order, start[: n + 1], group


@njit_in_place
def _modes(state: RefineState, cell: int, mode: Floats) -> None:
    """Sets mode[h] to the most frequent category of nominal column h in a cell."""
    count_categories(state, cell)
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
def renew_near(state: RefineState, near: Ints, last_search: Codes) -> None:
    """Finds the near cells anew. Pairs of cells that were near before keep the clock of their last
    search."""
    found = find_near_cells(state, near.shape[1])
    searched = np.zeros_like(last_search)
    for a in range(len(near)):
        for t in range(near.shape[1]):
            for u in range(near.shape[1]):
                if found[a, t] >= 0 and found[a, t] == near[a, u]:
                    searched[a, t] = last_search[a, u]
    near[:], last_search[:] = found, searched


@njit
def dissolve_near(state: RefineState, near: Ints) -> bool:
    """Dissolves each cell that gains by it: its rows go to the near cells with the nearest
    centroids. Returns whether there was one.

    The loss falls by at least the loss of the cell less the squared distances of its rows from
    these centroids, since the centroids of larger cells fit their rows even better. By the
    normalized certainty penalty, a cell is dissolved to see how much it gains. Other models than
    those of rows alone are not looked at.
    """
    found = False
    for a in range(len(state.rows)):
        if state.rows[a] == 0:
            continue
        away = find_places(state, near, a)
        if state.by_penalty:
            found |= away < np.inf and _dissolve_gaining(state, near, a)
        elif loses_less(state, state.rows[a], state.loss[a], away):
            scatter_cell(state, near, a)
            found = True
        else:
            describe_cell(state, a)
    gather(state)
    return found


@njit_in_place
def loses_less(state: RefineState, rows: int, before: float, after: float) -> bool:
    """Whether the loss of some rows falls by more than rounding can explain, as for steps."""
    if not after < before:  # it may be infinite
        return False
    reach = np.sqrt(rows) * (np.sqrt(before) + np.sqrt(after))
    return bool(before - after > LEAST * (before + after) + 2.0 * state.blur[0] * reach)


@njit_in_place
def find_places(state: RefineState, near: Ints, a: int) -> float:
    """Finds the nearest centroid of a near cell of the same group for each row of a cell: `lean`
    is that cell, `own` the squared distance. Returns the sum of these; inf if no cell is near.

    By the normalized certainty penalty, it is the cell whose loss grows least by the copies of the
    row alone, and what it grows by.
    """
    if state.by_penalty:
        return find_extent_places(state.extents, state, near, a)
    numeric, mean, after, own, lean = state.numeric, state.mean, state.after, state.own, state.lean
    first, q = state.first[a], state.nominal.shape[1]
    row = first
    while row >= 0:
        own[row] = np.inf
        row = after[row]
    for b in near[a]:
        if b < 0 or state.rows[b] == 0 or state.group[b] != state.group[a]:
            continue
        if q > 0:
            count_categories(state, b)
        row = first
        while row >= 0:
            distance = measure_nominal(state, row, b) if q > 0 else 0.0
            for j in range(numeric.shape[1]):
                gap = numeric[row, j] - mean[b, j]
                distance += gap * gap
            if distance < own[row]:
                own[row], lean[row] = distance, b
            row = after[row]
        if q > 0:
            clear(state, b)
    total = 0.0
    row = first
    while row >= 0:
        total += own[row]
        row = after[row]
    return total


@njit_in_place
def scatter_cell(state: RefineState, near: Ints, a: int) -> None:
    """Moves each row of a cell to the place that `find_places` found."""
    state.clock[0] += 1
    now = state.clock[0]
    while state.first[a] >= 0:
        row = state.first[a]
        into = int(state.lean[row])
        move_row(state, row, into)
        state.last_change[into] = now
    for into in near[a]:
        if into >= 0 and state.last_change[into] == now:
            change_now(state, into)
    change_now(state, a)


@njit
def _dissolve_gaining(state: RefineState, near: Ints, a: int) -> bool:
    """Dissolves a cell by the places that `find_places` found, and takes it back unless that lowers
    the loss. Returns whether it does."""
    n, row, place = state.rows[a], state.first[a], 0
    rows, into = np.empty(n, np.int64), np.empty(n, np.int64)
    while row >= 0:
        rows[place], into[place] = row, int(state.lean[row])
        row = state.after[row]
        place += 1
    cells = np.unique(into)
    before, size = state.loss[a], n
    for cell in cells:
        before += state.loss[cell]
        size += state.rows[cell]
    clock, last_change = state.clock[0], state.last_change[cells]
    changed = state.last_change[a]
    scatter_cell(state, near, a)
    if loses_less(state, size, before, state.loss[cells].sum()):
        return True
    for place in range(n):
        move_row(state, rows[place], a)
    for cell in cells:
        describe_cell(state, cell)
    describe_cell(state, a)
    state.clock[0], state.last_change[cells], state.last_change[a] = clock, last_change, changed
    return False

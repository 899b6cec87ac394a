"""Upsets: the search if only the number of rows counts.

An upset changes a cell and its near cells, and descends from there. It looks only at cells that it
has changed, and at those near them. An upset that ends worse by more than a slack is taken back.
"""

from typing import Any, NamedTuple

import numpy as np

from anonlib.arrays import Bools, Codes, Floats, Ints
from anonlib.compiled import njit, njit_in_place
from anonlib.kernels.refine.descent import (
    find_farthest_row,
    mark_nearest,
    pays_to_split,
    settle,
)
from anonlib.kernels.refine.extents import are_copies
from anonlib.kernels.refine.near import find_places, loses_less, renew_near
from anonlib.kernels.refine.row_lists import RefineState
from anonlib.kernels.refine.search import draw
from anonlib.kernels.refine.state import (
    change,
    change_now,
    describe_cell,
    find_next_steps,
    find_row_distance,
    gather,
    move_row,
)
from anonlib.kernels.refine.step_list import Steps, make_steps

#: The share of upsets that only dissolve a cell. The others make a new cell, which gains more.
ONLY_DISSOLVED = 0.25

#: The counters of `Upset.size`: the number of this upset, changed cells, moves, the front of the
#: queue, cells in the queue, free cells.
NUMBER, N_CHANGED, N_MOVES, FRONT, N_WAITING, N_FREE = range(6)


class Upset(NamedTuple):
    """What an upset has changed, and the cells that it has still to look at.

    Attributes:
        stamp: int64[c]. The number of the last upset that changed each cell.
        cell: int64[c]. The changed cells.
        loss: float64[c]. The loss of each changed cell before.
        last_change: int64[c]. `last_change` of each changed cell before.
        row: int64[4n]. The rows that moved, in order.
        source: int64[4n]. The cell that each of these rows left.
        queue: int64[c]. A ring of cells to look at.
        waits: bool[c]. Whether each cell is in the queue.
        free: int64[c]. The cells without rows, in any order.
        place: int64[c]. Where in `free` each cell is; -1 for those with rows.
        size: int64[6]. Counters, see `NUMBER`.
        nearest: int64[k]. Scratch: rows.
        distance: float64[k]. Scratch: their distances.
    """

    stamp: Ints
    cell: Ints
    loss: Floats
    last_change: Ints
    row: Ints
    source: Ints
    queue: Ints
    waits: Bools
    free: Ints
    place: Ints
    size: Ints
    nearest: Ints
    distance: Floats


@njit
def _make_upset(state: RefineState, k: int) -> Upset:
    """Scratch for upsets, with the list of the free cells."""
    n, c = len(state.cell), len(state.rows)
    upset = Upset(
        np.zeros(c, np.int64),
        np.zeros(c, np.int64),
        np.zeros(c),
        np.zeros(c, np.int64),
        np.zeros(4 * n, np.int64),
        np.zeros(4 * n, np.int64),
        np.zeros(c, np.int64),
        np.zeros(c, np.bool_),
        np.zeros(c, np.int64),
        np.full(c, -1),
        np.zeros(6, np.int64),
        np.zeros(k, np.int64),
        np.zeros(k),
    )
    for cell in range(c):
        if state.rows[cell] == 0:
            _add_free(upset, cell)
    return upset


@njit
def upset_cells(
    state: RefineState,
    near: Ints,
    last_search: Codes,
    random: Any,
    k: int,
    effort: int,
    slack: float,
) -> Ints:
    """Upsets random cells: `effort` times as many as there is room for.

    Args:
        state: The cells, of k rows or more. They are updated.
        near: int64[c, L]. The cells near each cell; -1 for none. They are found anew after every
            c upsets.
        last_search: int32[c, L]. The clock when each pair of near cells was last searched.
        random: uint64[1]. The state of the random numbers.
        k: The rows that every cell keeps.
        effort: The upsets per cell.
        slack: The most that the first upset may lose. It shrinks to 0.

    Returns:
        int64[n]. Of the cells before and after every c upsets, those that lose least.
    """
    c, n = len(state.rows), len(state.cell)
    state.group[:] = 0
    upset, steps = _make_upset(state, k), make_steps(1)
    best, least = state.cell.copy(), state.loss.sum()
    for number in range(1, effort * c + 1):
        upset.size[NUMBER] = number
        upset.size[N_CHANGED] = upset.size[N_MOVES] = 0
        a = int(draw(random) * c)
        if state.rows[a] > 0:
            whole = _upset_cell(state, near, last_search, upset, a, random, k)
            if whole:
                _descend(state, near, last_search, upset, k, steps)
            _empty_queue(upset)
            if not whole or not _is_kept(state, upset, slack * (1.0 - number / (effort * c))):
                _take_back(state, upset)
        if number % c == 0:
            now = state.loss.sum()
            if loses_less(state, n, least, now):
                best[:], least = state.cell, now
            renew_near(state, near, last_search)
    gather(state)
    return best


@njit_in_place
def _upset_cell(
    state: RefineState, near: Ints, last_search: Codes, upset: Upset, a: int, random: Any, k: int
) -> bool:
    """Dissolves a cell, or makes a new one of rows of it and of near cells. If no cell is free, the
    cell is dissolved first. Returns whether all cells have k rows or more."""
    if draw(random) < ONLY_DISSOLVED:
        return _dissolve(state, near, upset, a)
    if upset.size[N_FREE] == 0:
        row = state.first[a]
        if not _dissolve(state, near, upset, a):
            return False
        a = state.cell[row]
    return _make_cell(state, near, last_search, upset, a, random, k)


@njit_in_place
def _dissolve(state: RefineState, near: Ints, upset: Upset, a: int) -> bool:
    """Moves the rows of a cell to the near cells with the nearest centroids. Returns False, and
    moves none, if no cell is near."""
    if find_places(state, near, a) == np.inf:
        describe_cell(state, a)
        return False
    state.clock[0] += 1
    now = state.clock[0]
    while state.first[a] >= 0:
        row = state.first[a]
        into = int(state.lean[row])
        _move(state, upset, row, into)
        state.last_change[into] = now
        _wait(upset, into)
    for into in near[a]:
        if into >= 0 and state.last_change[into] == now:
            change_now(state, into)
    change_now(state, a)
    return True


@njit_in_place
def _make_cell(
    state: RefineState, near: Ints, last_search: Codes, upset: Upset, a: int, random: Any, k: int
) -> bool:
    """Makes a cell of a random row of cell `a` and k - 1 near rows of this cell and the near ones.
    Dissolves the cells that keep less than k rows. Returns False if one of them can't be."""
    row = state.first[a]
    for _ in range(int(draw(random) * state.rows[a])):
        row = state.after[row]
    _find_nearest(state, near, upset, a, row, random, k)
    new = upset.free[upset.size[N_FREE] - 1]
    settle(state, near, last_search, a, new)
    sources = upset.nearest
    for i in range(k):
        row = upset.nearest[i]
        sources[i] = state.cell[row]
        _move(state, upset, row, new)
    state.clock[0] += 1
    for source in sources:
        if state.last_change[source] < state.clock[0]:
            change_now(state, source)
            _wait(upset, source)
    change_now(state, new)
    _wait(upset, new)
    for i in range(k):
        too_few = 0 < state.rows[sources[i]] < k
        if too_few and not _dissolve(state, near, upset, sources[i]):
            return False
    return True


@njit_in_place
def _find_nearest(
    state: RefineState, near: Ints, upset: Upset, a: int, center: int, random: Any, k: int
) -> None:
    """Sets `upset.nearest` to a row of cell `a` and the k - 1 nearest rows of this cell and the
    near ones. Squared distances are first multiplied by random numbers between 1 and 2."""
    nearest, distance = upset.nearest, upset.distance
    after = state.after
    distance[:] = np.inf
    for t in range(-1, near.shape[1]):
        cell = a if t < 0 else near[a, t]
        row = state.first[cell] if cell >= 0 else -1
        while row >= 0:
            away = -1.0
            if row != center:
                away = find_row_distance(state, center, row) * (1.0 + draw(random))
            if away < distance[k - 1]:
                i = k - 1
                while i > 0 and distance[i - 1] > away:
                    distance[i], nearest[i] = distance[i - 1], nearest[i - 1]
                    i -= 1
                distance[i], nearest[i] = away, row
            row = after[row]


@njit_in_place
def _descend(
    state: RefineState, near: Ints, last_search: Codes, upset: Upset, k: int, steps: Steps
) -> None:
    """Takes steps between cells of the queue and near ones until none is left, or until there is
    no more room for moves. Splits cells of 2k rows or more."""
    size = upset.size
    while size[N_WAITING] > 0 and size[N_MOVES] + k < len(upset.row):
        a = upset.queue[size[FRONT]]
        size[FRONT] = (size[FRONT] + 1) % len(upset.queue)
        size[N_WAITING] -= 1
        upset.waits[a] = False
        if state.rows[a] >= 2 * k and size[N_FREE] > 0:
            mark_nearest(state, find_farthest_row(state, a), k)
            if pays_to_split(state, a):
                _split(state, near, last_search, upset, a)
                continue
        slot = 0 if state.rows[a] > 0 else -1
        while slot >= 0 and size[N_MOVES] + 2 <= len(upset.row):
            slot = find_next_steps(state, near, last_search, a, slot, k, steps)
            if slot >= 0:
                b = near[a, slot]
                if size[N_MOVES] + steps.n_out[0] + steps.n_in[0] > len(upset.row):
                    return
                if steps.leaves[0] >= 0:
                    _move_copies(state, upset, steps.leaves[0], steps.n_out[0], b)
                if steps.comes[0] >= 0:
                    _move_copies(state, upset, steps.comes[0], steps.n_in[0], a)
                change(state, a, b)
                _wait(upset, a)
                _wait(upset, b)


@njit_in_place
def _split(state: RefineState, near: Ints, last_search: Codes, upset: Upset, cell: int) -> None:
    """Makes a cell of the marked rows (see `mark_nearest`)."""
    new = upset.free[upset.size[N_FREE] - 1]
    row = state.first[cell]
    while row >= 0:
        following = state.after[row]
        if state.lean[row] < 0.0:
            _move(state, upset, row, new)
        row = following
    change(state, cell, new)
    settle(state, near, last_search, cell, new)
    _wait(upset, cell)
    _wait(upset, new)


@njit_in_place
def _move(state: RefineState, upset: Upset, row: int, cell: int) -> None:
    """Moves a row, and notes what is needed to take that back."""
    source = state.cell[row]
    _note(state, upset, source)
    _note(state, upset, cell)
    moves = upset.size[N_MOVES]
    upset.row[moves], upset.source[moves] = row, source
    upset.size[N_MOVES] = moves + 1
    _move_freely(state, upset, row, cell)


@njit_in_place
def _move_copies(state: RefineState, upset: Upset, row: int, n: int, cell: int) -> None:
    """Moves a row and n - 1 other copies of it, as `_move`."""
    source = state.cell[row]
    _move(state, upset, row, cell)
    other = state.first[source] if n > 1 else -1
    while other >= 0 and n > 1:
        following = state.after[other]
        if are_copies(state.extents, other, row):
            _move(state, upset, other, cell)
            n -= 1
        other = following


@njit_in_place
def _note(state: RefineState, upset: Upset, cell: int) -> None:
    """Notes what a cell was before this upset, unless that is noted."""
    if upset.stamp[cell] != upset.size[NUMBER]:
        upset.stamp[cell] = upset.size[NUMBER]
        i = upset.size[N_CHANGED]
        upset.cell[i], upset.loss[i] = cell, state.loss[cell]
        upset.last_change[i] = state.last_change[cell]
        upset.size[N_CHANGED] = i + 1


@njit_in_place
def _move_freely(state: RefineState, upset: Upset, row: int, cell: int) -> None:
    """Moves a row, and keeps the list of free cells."""
    source = state.cell[row]
    move_row(state, row, cell)
    if state.rows[source] == 0:
        _add_free(upset, source)
    place = upset.place[cell]
    if place >= 0:
        last = upset.free[upset.size[N_FREE] - 1]
        upset.free[place], upset.place[last] = last, place
        upset.place[cell] = -1
        upset.size[N_FREE] -= 1


@njit_in_place
def _add_free(upset: Upset, cell: int) -> None:
    """Adds a cell to the list of free cells."""
    i = upset.size[N_FREE]
    upset.free[i], upset.place[cell] = cell, i
    upset.size[N_FREE] = i + 1


@njit_in_place
def _wait(upset: Upset, cell: int) -> None:
    """Puts a cell into the queue, unless it is there."""
    if not upset.waits[cell]:
        upset.waits[cell] = True
        end = upset.size[FRONT] + upset.size[N_WAITING]
        upset.queue[end % len(upset.queue)] = cell
        upset.size[N_WAITING] += 1


@njit_in_place
def _empty_queue(upset: Upset) -> None:
    """Takes all cells out of the queue."""
    for i in range(upset.size[N_WAITING]):
        upset.waits[upset.queue[(upset.size[FRONT] + i) % len(upset.queue)]] = False
    upset.size[FRONT] = upset.size[N_WAITING] = 0


@njit_in_place
def _is_kept(state: RefineState, upset: Upset, slack: float) -> bool:
    """Whether the changed cells lose less than before, by more than rounding can explain, or more
    by no more than the slack."""
    before, after, rows = 0.0, 0.0, 0
    for i in range(upset.size[N_CHANGED]):
        before += upset.loss[i]
        after += state.loss[upset.cell[i]]
        rows += state.rows[upset.cell[i]]
    return loses_less(state, rows, before, after) or after < before + slack


@njit_in_place
def _take_back(state: RefineState, upset: Upset) -> None:
    """Moves all rows back to where they were before this upset."""
    for i in range(upset.size[N_MOVES] - 1, -1, -1):
        _move_freely(state, upset, upset.row[i], upset.source[i])
    for i in range(upset.size[N_CHANGED]):
        cell = upset.cell[i]
        describe_cell(state, cell)
        state.last_change[cell] = upset.last_change[i]

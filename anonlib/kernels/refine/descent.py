"""Descent: steps between near cells, until none lowers the loss.

For models that look at more than the number of rows, steps come in batches. The core proposes steps
for many pairs of cells, the caller judges them, and the core takes the allowed steps.
"""

from typing import NamedTuple

import numpy as np

from anonlib.arrays import Bools, Codes, Ints
from anonlib.compiled import njit, njit_in_place
from anonlib.kernels.refine.extents import are_copies, penalize_part
from anonlib.kernels.refine.row_lists import FREE, RefineState
from anonlib.kernels.refine.state import (
    change,
    find_next_steps,
    find_row_distance,
    move_copies,
    move_row,
)
from anonlib.kernels.refine.step_list import LEAST, Steps


@njit_in_place
def descend(
    state: RefineState, near: Ints, last_search: Codes, k: int, passes: int, steps: Steps
) -> None:
    """Takes steps between near cells until none is left, in at most `passes` passes over all cells.

    Cells keep at least k rows; cells of 2k rows or more are split.
    """
    _split_large(state, near, last_search, k)
    for _ in range(passes):
        if not exchange(state, near, last_search, k, steps):
            break
        _split_large(state, near, last_search, k)


@njit_in_place
def exchange(state: RefineState, near: Ints, last_search: Codes, k: int, steps: Steps) -> bool:
    """One pass over all cells: takes the best step of a cell and a near one while there is one.

    Cells keep at least k rows. Returns whether a step was taken.
    """
    before = state.clock[0]
    for a in range(len(state.rows)):
        slot = 0 if state.rows[a] > 0 else -1
        while slot >= 0:
            slot = find_next_steps(state, near, last_search, a, slot, k, steps)
            if slot >= 0:
                _take_best(state, a, near[a, slot], steps)
    return bool(state.clock[0] > before)


@njit_in_place
def _take_best(state: RefineState, a: int, b: int, steps: Steps) -> None:
    """Takes the first step in the list, which is the best step between two cells."""
    if steps.leaves[0] >= 0:
        move_copies(state, steps.leaves[0], steps.n_out[0], b)
    if steps.comes[0] >= 0:
        move_copies(state, steps.comes[0], steps.n_in[0], a)
    change(state, a, b)


@njit_in_place
def _split_large(state: RefineState, near: Ints, last_search: Codes, k: int) -> None:
    """Splits the cells of 2k rows or more."""
    for cell in range(len(state.rows)):
        while state.rows[cell] >= 2 * k:
            new = free_cell(state, cell)
            if new < 0:
                break
            mark_nearest(state, find_farthest_row(state, cell), k)
            if not pays_to_split(state, cell):
                break
            split_cell(state, cell, new)
            settle(state, near, last_search, cell, new)


@njit_in_place
def free_cell(state: RefineState, cell: int) -> int:
    """A free cell for a part of `cell`: the center of its group, or a cell without a group; -1 if
    there is none.

    Free cells of other groups are not used, because those groups need them if they are taken back.
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


@njit_in_place
def find_farthest_row(state: RefineState, cell: int) -> int:
    """The row of a cell that is farthest from the centroid."""
    far = row = state.first[cell]
    while row >= 0:
        if state.own[row] > state.own[far]:
            far = row
        row = state.after[row]
    return int(far)


@njit_in_place
def mark_nearest(state: RefineState, center: int, k: int) -> None:
    """Marks a row and the k - 1 nearest rows of its cell: sets their `lean` to -1, and that of the
    other rows of the cell to 0 or more."""
    first = state.first[state.cell[center]]
    row = first
    while row >= 0:
        state.lean[row] = find_row_distance(state, center, row)
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


@njit_in_place
def pays_to_split(state: RefineState, cell: int) -> bool:
    """Whether the loss falls if the marked rows (see `mark_nearest`) leave. Squares always do, or
    stay as they are."""
    if not state.by_penalty:
        return True
    x, n, out, row = state.extents, state.rows[cell], 0, state.first[cell]
    while row >= 0:
        out += state.lean[row] < 0.0
        row = state.after[row]
    loss = out * penalize_part(x, state.after, state.lean, state.first[cell], True)
    loss += (n - out) * penalize_part(x, state.after, state.lean, state.first[cell], False)
    return bool(loss < (1.0 - LEAST) * state.loss[cell])


@njit_in_place
def split_cell(state: RefineState, cell: int, new: int) -> None:
    """Moves the marked rows (see `mark_nearest`) to the free cell `new`."""
    row = state.first[cell]
    while row >= 0:
        following = state.after[row]
        if state.lean[row] < 0.0:
            move_row(state, row, new)
        row = following
    change(state, cell, new)


@njit_in_place
def settle(state: RefineState, near: Ints, last_search: Codes, cell: int, new: int) -> None:
    """Gives `new`, which was split off `cell`, the group and the near cells of `cell`."""
    state.group[new] = state.group[cell]
    missing = True
    for t in range(near.shape[1]):
        itself = near[cell, t] == new
        near[new, t] = cell if itself else near[cell, t]
        missing = missing and not itself
        last_search[new, t] = 0
    if missing:
        near[new, -1] = cell


#: The counters of `Batch.size`: steps, and rows of these steps.
N_STEPS, N_ROWS = range(2)


class Batch(NamedTuple):
    """Steps for the models to judge.

    Attributes:
        a: int64[s]. The first cell of each step.
        b: int64[s]. The second cell of each step.
        row: int64[2n]. The rows of both cells of step 0, of step 1, ...
        side: int64[2n]. Where each of these rows would be after its step i: 2i for the first cell,
            2i + 1 for the second.
        size: int64[2]. Counters, see `N_STEPS` and `N_ROWS`.
        last_split: int64[c]. The clock when the split of each cell was last proposed.
    """

    a: Ints
    b: Ints
    row: Ints
    side: Ints
    size: Ints
    last_split: Ints


@njit
def make_batch(n: int, c: int, room: int) -> Batch:
    """A batch for n rows in c cells, with up to `room` steps between two cells."""
    most = (room + 1) * c
    return Batch(
        np.empty(most, np.int64),
        np.empty(most, np.int64),
        np.empty(2 * n, np.int64),
        np.empty(2 * n, np.int64),
        np.zeros(2, np.int64),
        np.zeros(c, np.int64),
    )


@njit_in_place
def propose_steps(
    state: RefineState, near: Ints, last_search: Codes, k: int, steps: Steps, batch: Batch
) -> None:
    """Fills the batch: splits of cells of 2k rows or more, then the best steps between two cells.

    A cell takes part in one split, or in steps with one other cell. To mark it as taken, its group
    is inverted (~group) until `take`.
    """
    batch.size[:] = 0
    for a in range(len(state.rows)):
        if (
            state.group[a] < 0
            or state.rows[a] < 2 * k
            or state.last_change[a] <= batch.last_split[a]
        ):
            continue
        new = free_cell(state, a)
        if new >= 0 and batch.size[N_ROWS] + state.rows[a] <= len(batch.row):
            batch.last_split[a] = state.clock[0]
            mark_nearest(state, find_farthest_row(state, a), k)
            if not pays_to_split(state, a):
                continue
            _add(state, batch, a, new)
            state.group[a], state.group[new] = ~state.group[a], ~state.group[new]
    for a in range(len(state.rows)):
        if state.group[a] < 0:
            continue
        slot = 0 if state.rows[a] > 0 else -1  # a literal would compile `find_next_steps` again
        if slot == 0:
            slot = find_next_steps(state, near, last_search, a, slot, k, steps)
        if slot < 0:
            continue
        b = near[a, slot]
        rows = _count_steps(steps) * (state.rows[a] + state.rows[b])
        if batch.size[N_STEPS] > 0 and batch.size[N_ROWS] + rows > len(batch.row):
            last_search[a, slot] = 0  # no room: search these cells again later
            continue
        _add_steps(state, batch, a, b, steps)
        state.group[a], state.group[b] = ~state.group[a], ~state.group[b]


@njit_in_place
def _count_steps(steps: Steps) -> int:
    """The number of steps in the list."""
    n = 0
    while n < len(steps.gain) and (steps.leaves[n] >= 0 or steps.comes[n] >= 0):
        n += 1
    return n


@njit_in_place
def _add_steps(state: RefineState, batch: Batch, a: int, b: int, steps: Steps) -> None:
    """Adds the steps between two cells to the batch, while there is room."""
    rows = state.rows[a] + state.rows[b]
    for i in range(_count_steps(steps)):
        if batch.size[N_ROWS] + rows > len(batch.row):
            break
        _mark_side(state, a, 0.0, steps.leaves[i], steps.n_out[i])
        _mark_side(state, b, -1.0, steps.comes[i], steps.n_in[i])
        _add(state, batch, a, b)


@njit_in_place
def _mark_side(state: RefineState, cell: int, stays: float, mover: int, n: int) -> None:
    """Sets `lean` of the rows of a cell: -1 marks those that would be in the second cell, as in
    `mark_nearest`. `mover` and n - 1 other copies of it change sides; -1 for none."""
    row = state.first[cell]
    while row >= 0:
        state.lean[row] = stays
        row = state.after[row]
    if mover < 0:
        return
    state.lean[mover] = -1.0 - stays
    row = state.first[cell] if n > 1 else -1
    while row >= 0 and n > 1:
        if row != mover and are_copies(state.extents, row, mover):
            state.lean[row] = -1.0 - stays
            n -= 1
        row = state.after[row]


@njit_in_place
def _add(state: RefineState, batch: Batch, a: int, b: int) -> None:
    """Adds a step after which the rows of both cells with a negative `lean` would be in `b`."""
    s, i = batch.size
    batch.a[s], batch.b[s] = a, b
    for cell in (a, b):
        row = state.first[cell]
        while row >= 0:
            batch.row[i] = row
            batch.side[i] = 2 * s + (state.lean[row] < 0.0)
            i += 1
            row = state.after[row]
    batch.size[N_STEPS], batch.size[N_ROWS] = s + 1, i


@njit_in_place
def take(state: RefineState, near: Ints, last_search: Codes, batch: Batch, holds: Bools) -> None:
    """Takes the allowed steps; of several between the same two cells, the first."""
    i = 0
    for s in range(batch.size[N_STEPS]):
        a, b = batch.a[s], batch.b[s]
        start = i
        while i < batch.size[N_ROWS] and batch.side[i] < 2 * s + 2:
            i += 1
        if not holds[s] or state.group[a] >= 0:
            continue
        state.group[a], state.group[b] = ~state.group[a], ~state.group[b]
        new = state.rows[b] == 0
        for place in range(start, i):
            cell = b if batch.side[place] > 2 * s else a
            if state.cell[batch.row[place]] != cell:
                move_row(state, batch.row[place], cell)
        change(state, a, b)
        if new:
            settle(state, near, last_search, a, b)
    for cell in range(len(state.group)):
        if state.group[cell] < 0:
            state.group[cell] = ~state.group[cell]

"""Steps in batches, for models that look at more than the number of rows: proposed for many pairs
of cells at once, judged outside, then taken."""

from typing import NamedTuple

import numpy as np

from anonlib.block import Bools, Codes, Ints
from anonlib.kernels._numba import njit
from anonlib.kernels._refine_core import State, change, move
from anonlib.kernels._refine_descent import farthest, free_cell, mark_nearest, settle
from anonlib.kernels._refine_steps import Steps, next_steps


class Batch(NamedTuple):
    """Steps to be judged. Step s is between cells a[s] and b[s]; row[i] would be in the first of
    them if side[i] is 2s, in the second if it is 2s + 1. size: the numbers of steps and of those
    rows. whole: [c], the clock when a cell was last proposed to be split."""

    a: Ints
    b: Ints
    row: Ints
    side: Ints
    size: Ints
    whole: Ints


@njit
def make_batch(n: int, c: int, room: int) -> Batch:
    """A batch for n rows in c cells, with up to `room` steps between two of them."""
    most = (room + 1) * c
    return Batch(
        np.empty(most, np.int64),
        np.empty(most, np.int64),
        np.empty(2 * n, np.int64),
        np.empty(2 * n, np.int64),
        np.zeros(2, np.int64),
        np.zeros(c, np.int64),
    )


@njit
def propose(state: State, near: Ints, seen: Codes, k: int, steps: Steps, batch: Batch) -> None:
    """Fills the batch: splits of cells of 2k rows or more, then the best steps between two cells.
    A cell takes part in one split, or in steps with one other cell; its group is inverted."""
    batch.size[:] = 0
    for a in range(len(state.rows)):
        if state.group[a] < 0 or state.rows[a] < 2 * k or state.changed[a] <= batch.whole[a]:
            continue
        new = free_cell(state, a)
        if new >= 0 and batch.size[1] + state.rows[a] <= len(batch.row):
            batch.whole[a] = state.clock[0]
            mark_nearest(state, farthest(state, a), k)
            _add(state, batch, a, new)
            state.group[a], state.group[new] = ~state.group[a], ~state.group[new]
    for a in range(len(state.rows)):
        if state.group[a] < 0:
            continue
        slot = 0 if state.rows[a] > 0 else -1  # no literal: those compile anew
        if slot == 0:
            slot = next_steps(state, near, seen, a, slot, k, steps)
        if slot < 0:
            continue
        b = near[a, slot]
        rows = _listed(steps) * (state.rows[a] + state.rows[b])
        if batch.size[0] > 0 and batch.size[1] + rows > len(batch.row):
            seen[a, slot] = 0  # another time
            continue
        _add_steps(state, batch, a, b, steps)
        state.group[a], state.group[b] = ~state.group[a], ~state.group[b]


@njit
def _listed(steps: Steps) -> int:
    """How many steps there are."""
    n = 0
    while n < len(steps.gain) and (steps.leaves[n] >= 0 or steps.comes[n] >= 0):
        n += 1
    return n


@njit
def _add_steps(state: State, batch: Batch, a: int, b: int, steps: Steps) -> None:
    """Adds the steps between two cells, as far as there is room."""
    rows = state.rows[a] + state.rows[b]
    for i in range(_listed(steps)):
        leaves, comes = steps.leaves[i], steps.comes[i]
        if batch.size[1] + rows > len(batch.row):
            break
        for cell in (a, b):
            row = state.first[cell]
            while row >= 0:
                # -1 is for the second cell, as mark_nearest has it.
                state.lean[row] = -1.0 if (cell == b) != (row in (leaves, comes)) else 0.0
                row = state.after[row]
        _add(state, batch, a, b)


@njit
def _add(state: State, batch: Batch, a: int, b: int) -> None:
    """Adds the step after which those rows of two cells are in `b` whose `lean` is -1."""
    s, i = batch.size
    batch.a[s], batch.b[s] = a, b
    for cell in (a, b):
        row = state.first[cell]
        while row >= 0:
            batch.row[i] = row
            batch.side[i] = 2 * s + (state.lean[row] < 0.0)
            i += 1
            row = state.after[row]
    batch.size[0], batch.size[1] = s + 1, i


@njit
def take(state: State, near: Ints, seen: Codes, batch: Batch, allowed: Bools) -> None:
    """Takes the steps that are allowed: of those between the same two cells, the first."""
    i = 0
    for s in range(batch.size[0]):
        a, b = batch.a[s], batch.b[s]
        start = i
        while i < batch.size[1] and batch.side[i] < 2 * s + 2:
            i += 1
        if not allowed[s] or state.group[a] >= 0:
            continue
        state.group[a], state.group[b] = ~state.group[a], ~state.group[b]
        new = state.rows[b] == 0
        for place in range(start, i):
            cell = b if batch.side[place] > 2 * s else a
            if state.cell[batch.row[place]] != cell:
                move(state, batch.row[place], cell)
        change(state, a, b)
        if new:
            settle(state, near, seen, a, b)
    for cell in range(len(state.group)):
        if state.group[cell] < 0:
            state.group[cell] = ~state.group[cell]

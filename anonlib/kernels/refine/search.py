"""The search where models judge steps: rounds that upset groups of near cells.

A round upsets many groups, so that the models judge many steps at once. Groups that end worse are
taken back.
"""

from typing import Any

import numpy as np

from anonlib.arrays import Bools, Floats, Ints
from anonlib.compiled import njit, njit_in_place
from anonlib.kernels.refine.row_lists import FREE, RefineState
from anonlib.kernels.refine.state import (
    change,
    describe_cell,
    move_row,
)

#: The fewest cells of a group, unless there are fewer cells in total.
FEW = 4


@njit
def upset_groups(state: RefineState, near: Ints, random: Any, order: Ints) -> Floats:
    """Makes groups, each of a cell and the near cells without a group, and upsets the first cell:
    merges it with another one of its group.

    Args:
        state: The cells. They are updated.
        near: int64[c, L]. The cells near each cell; -1 for none.
        random: uint64[1]. The state of the random numbers.
        order: int64[c]. Scratch.

    Returns:
        float64[groups]. The loss of each group before it is upset.
    """
    n = _make_groups(state, near, random, order)
    loss = group_loss(state, n)
    for g in range(n):
        a = state.center[g]
        _merge(state, near, a, int(draw(random) * _others(state, near, a, g)))
    return loss


@njit_in_place
def _make_groups(state: RefineState, near: Ints, random: Any, order: Ints) -> int:
    """Makes the groups 0..n-1 and returns n. If cell i has no group, its group number is c + i."""
    c, group = len(state.rows), state.group
    n_cells = 0
    for i in range(c):
        order[i] = i
        group[i] = c + i if state.rows[i] > 0 else FREE
        n_cells += state.rows[i] > 0
    n = 0
    for i in range(c):
        j = i + int(draw(random) * (c - i))
        order[i], order[j] = order[j], order[i]
        a = order[i]
        if group[a] < c or group[a] == FREE:
            continue
        cells = 1
        for b in near[a]:
            cells += b >= 0 and c <= group[b] < FREE
        if cells < max(min(FEW, n_cells), 2):
            continue
        state.center[n] = a
        group[a] = n
        for b in near[a]:
            if b >= 0 and c <= group[b] < FREE:
                group[b] = n
        n += 1
    return n


@njit_in_place
def _others(state: RefineState, near: Ints, a: int, g: int) -> int:
    """The number of cells near `a` that are in group g."""
    result = 0
    for b in near[a]:
        result += b >= 0 and state.group[b] == g
    return result


@njit_in_place
def _merge(state: RefineState, near: Ints, a: int, number: int) -> None:
    """Moves all rows of cell `a` into the cell at place `number` among the others of its group."""
    into = a
    for b in near[a]:
        if b >= 0 and state.group[b] == state.group[a]:
            if number == 0:
                into = b
            number -= 1
    while state.first[a] >= 0:
        move_row(state, state.first[a], into)
    change(state, a, into)


@njit_in_place
def draw(random: Any) -> float:
    """A random number in [0, 1), by a xorshift generator."""
    z = random[0]
    z ^= z << np.uint64(13)
    z ^= z >> np.uint64(7)
    z ^= z << np.uint64(17)
    random[0] = z
    return float(z >> np.uint64(11)) * 2.0**-53


@njit
def group_loss(state: RefineState, n: int) -> Floats:
    """float64[n]. The loss of each of the groups 0..n-1."""
    loss = np.zeros(n)
    for cell in range(len(state.rows)):
        if state.group[cell] < n:
            loss[state.group[cell]] += state.loss[cell]
    return loss


@njit_in_place
def take_back_groups(state: RefineState, cell: Ints, last_change: Ints, worse: Bools) -> None:
    """Moves the rows of some groups back to their cells before the round.

    Args:
        state: The cells. They are updated, and `last_change` is reset too.
        cell: int64[n]. The cell of each row before the round.
        last_change: int64[c]. `state.last_change` before the round.
        worse: bool[groups]. The groups to take back.
    """
    n = len(worse)
    for row in range(len(cell)):
        group = state.group[state.cell[row]]
        if state.cell[row] != cell[row] and group < n and worse[group]:
            move_row(state, row, cell[row])
    for i in range(len(last_change)):
        if state.last_change[i] != last_change[i] and state.group[i] < n and worse[state.group[i]]:
            describe_cell(state, i)
            state.last_change[i] = last_change[i]

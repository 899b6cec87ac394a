"""Steps by the normalized certainty penalty: copies of a row go to another cell, or two rows and
their copies change places."""

import numpy as np

from anonlib.arrays import Floats, Ints
from anonlib.compiled import njit, njit_in_place
from anonlib.kernels.refine.extents import (
    Extents,
    clear_codes,
    count_codes,
    fill_growth,
    find_row_growth,
    make_growth_table,
    penalize_exchange,
)
from anonlib.kernels.refine.row_lists import RefineState
from anonlib.kernels.refine.step_list import LEAST, Steps, clear_steps, offer_step


@njit_in_place
def find_extent_steps(
    x: Extents | None, state: RefineState, a: int, b: int, k: int, steps: Steps
) -> bool:
    """Finds the best steps between two cells, which keep at least k rows. Returns whether there is
    one; without extents, or if `b` is free, there is none."""
    if x is None or state.rows[b] == 0:
        return False
    after, first = state.after, state.first
    least = LEAST * (state.loss[a] + state.loss[b])
    clear_steps(steps, least)
    count_codes(x, first[a], 0)
    count_codes(x, first[b], 1)
    _offer_transfers(x, state, a, b, 1, k, steps)
    _offer_transfers(x, state, b, a, 0, k, steps)
    _offer_swaps(x, state, a, b, k, steps)
    clear_codes(x, after, first[a], 0)
    clear_codes(x, after, first[b], 1)
    return bool(steps.leaves[0] >= 0 or steps.comes[0] >= 0)


@njit_in_place
def _offer_transfers(
    x: Extents, state: RefineState, a: int, b: int, side: int, k: int, steps: Steps
) -> None:
    """Sets `lean` of the rows of `a` to what the penalty of `b` grows by if they come. Offers their
    transfers, of as many copies as can leave. side: that of the codes of `b`, which is 1 if rows
    leave the first cell."""
    n, m = state.rows[a], state.rows[b]
    before = state.loss[a] + state.loss[b]
    row = state.first[a]
    while row >= 0:
        growth = state.lean[row] = find_row_growth(x, row, b, side, float("inf"))
        moves = min(x.share[row], n - k)
        less = state.own[row] if moves == x.share[row] else 0.0
        loss = (n - moves) * (x.total[a] - less) + (m + moves) * (x.total[b] + growth)
        if moves > 0 and before - loss > steps.gain[-1]:
            place = offer_step(steps, before - loss)
            if side == 1:
                steps.leaves[place], steps.n_out[place] = row, moves
            else:
                steps.comes[place], steps.n_in[place] = row, moves
        row = x.onward[row]


@njit_in_place
def _offer_swaps(x: Extents, state: RefineState, a: int, b: int, k: int, steps: Steps) -> None:
    """Offers the swaps of all copies of two rows, or as many as the cells can spare.

    `lean` must be set. Since a row adds at most to a smaller cell, the penalty of `a` is at least
    the present one, and what the new row adds, less what the old one takes away.
    """
    n, m = state.rows[a], state.rows[b]
    own, lean = state.own, state.lean
    before = state.loss[a] + state.loss[b]
    row = state.first[a]
    while row >= 0:
        other = state.first[b]
        while other >= 0:
            if x.tuple[other] != x.tuple[row]:
                n_out = min(x.share[row], n + x.share[other] - k)
                n_in = min(x.share[other], m + n_out - k)
                all_out, all_in = n_out == x.share[row], n_in == x.share[other]
                low = x.total[a] + lean[other] - (own[row] if all_out else 0.0)
                high = x.total[b] + lean[row] - (own[other] if all_in else 0.0)
                n_first, n_second = n - n_out + n_in, m - n_in + n_out
                least = before - steps.gain[-1]
                if n_in > 0 and n_first >= k and n_first * low + n_second * high < least:
                    loss = n_first * penalize_exchange(x, a, 0, row, all_out, other)
                    loss += n_second * penalize_exchange(x, b, 1, other, all_in, row)
                    if loss < least:
                        place = offer_step(steps, before - loss)
                        steps.leaves[place], steps.comes[place] = row, other
                        steps.n_out[place], steps.n_in[place] = n_out, n_in
            other = x.onward[other]
        row = x.onward[row]


@njit_in_place
def find_extent_places(x: Extents | None, state: RefineState, near: Ints, a: int) -> float:
    """Finds the near cell of the same group whose loss grows least by the copies of each row of a
    cell: `lean` is that cell. Returns the sum of what the cells grow by, each row's as if it came
    alone; inf if no cell is near."""
    if x is None:
        return 0.0
    total = 0.0
    row = state.first[a]
    while row >= 0:
        best, least = -1, np.inf
        for b in near[a]:
            if b >= 0 and state.rows[b] > 0 and state.group[b] == state.group[a]:
                cost = _arrival_loss(x, state, row, b, least)
                if cost < least:
                    best, least = b, cost
        total += least
        x.copies[x.tuple[row]] = best
        row = x.onward[row]
    row = state.first[a]
    while row >= 0:
        state.lean[row] = x.copies[x.tuple[row]]
        row = state.after[row]
    row = state.first[a]
    while row >= 0:
        x.copies[x.tuple[row]] = 0
        row = state.after[row]
    return total


@njit_in_place
def _arrival_loss(x: Extents, state: RefineState, row: int, cell: int, most: float) -> float:
    """What the loss of a cell grows by if the copies of a row come; or any number of `most` or
    more, if it is not less."""
    n, moves = state.rows[cell], x.share[row]
    stays = moves * x.total[cell]
    if stays >= most:
        return float(stays)
    growth = find_row_growth(x, row, cell, -1, (most - stays) / (n + moves))
    return float(stays + (n + moves) * growth)


@njit
def find_near_by_gain(x: Extents | None, state: RefineState, room: int) -> Ints:
    """int64[c, room]. Cells near each cell: those that gain most if the copies of one of its rows
    go there, best first; -1 if there are no more. Of cells with the same single tuple, there is
    one. Cost O(t c d) for t distinct tuples in the cells."""
    near, score = np.full((len(state.rows), room), -1), np.empty(room)
    if x is None:
        return near
    cells = np.flatnonzero(state.rows)
    c, total, rows = len(cells), x.total[cells], state.rows[cells]
    key = _single_tuples(x, state.first, state.rows)
    table, growth = make_growth_table(x, state.first, cells), np.empty(c)
    for i in range(c if room > 0 else 0):
        a = cells[i]
        score[:] = -np.inf
        row = state.first[a]
        while row >= 0:
            share = x.share[row]
            fill_growth(x, table, row, growth)
            before = state.loss[a] - (state.rows[a] - share) * (x.total[a] - state.own[row])
            for step in range(1, c):
                t = (i + step) % c  # so that of equal cells, each is near some other
                gain = before - share * total[t] - (rows[t] + share) * growth[t]
                if gain > score[-1]:
                    _list_cell(near[a], score, key, cells[t], gain)
            row = x.onward[row]
    return near


@njit_in_place
def _list_cell(near: Ints, score: Floats, key: Ints, b: int, gain: float) -> None:
    """Puts a cell into a list by its gain, unless one of its key is there with a larger one."""
    place = len(near) - 1
    for t in range(len(near)):
        if near[t] >= 0 and key[near[t]] == key[b]:
            if score[t] >= gain:
                return
            place = t
            break
    while place > 0 and score[place - 1] < gain:
        near[place], score[place] = near[place - 1], score[place - 1]
        place -= 1
    near[place], score[place] = b, gain


@njit
def _single_tuples(x: Extents, first: Ints, rows: Ints) -> Ints:
    """int64[c]. The tuple of each cell that has one only; for others, a number of their own."""
    key = -1 - np.arange(len(rows))
    for cell in np.flatnonzero(rows):
        if x.share[first[cell]] == rows[cell]:
            key[cell] = x.tuple[first[cell]]
    return key

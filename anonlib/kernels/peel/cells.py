"""Cells of distinct tuples, and the compiled steps after peeling: merging leftovers, then lowering
the loss.

A step changes some cells. It is a gain only if the total loss of these cells falls. If models must
judge the cells, the steps of one pass share no cell, so that each step can be undone by itself.
"""

from typing import NamedTuple

import numpy as np

from anonlib.arrays import Bools, Codes, Ints
from anonlib.compiled import njit
from anonlib.kernels.peel.core import Bits, TupleTable, is_diverse

#: Greater than any loss.
INFINITE_LOSS = 2**62

#: Spare capacity: SPARE cells, plus one per SPARE cells in use.
SPARE = 16

#: The counters of `TupleCells.n`: ranked cells (RANKED), steps of the pass (STEPS), and recorded
#: moves (MOVED).
RANKED, STEPS, MOVED = range(3)


class TupleCells(NamedTuple):
    """The cells 0..m-1 of t tuples in d columns. A cell without rows is not in use.

    `low`, `high` and `bits` describe the last cell that `span_without` was called for.

    Attributes:
        cell: int64[t]. The cell of each tuple; -1 for none.
        first: int64[m]. The first tuple of each cell; -1 without tuples.
        after: int64[t]. The next tuple of the same cell; -1 after the last.
        before: int64[t]. The previous tuple of the same cell; -1 before the first.
        rows: int64[m]. The rows of each cell.
        height: int32[m, d]. The height of the lowest common ancestor in each column.
        code: int32[m, d]. Any code under that ancestor.
        loss: int64[m]. The loss of one row of each cell.
        columns: int64[d]. The order in which the losses of columns are added.
        ranking: int64[m]. The cells in use, by ascending `level`.
        level: int64[m]. The loss of one row of each ranked cell, at the time of the ranking.
        low: int32[d]. The lowest code in each column.
        high: int32[d]. The highest code in each column.
        bits: uint64[v]. The protected values, as a bit set.
        step: int64[m]. The step of this pass that changed each cell; -1 for none.
        moves: int64[t]. The tuple of each recorded move.
        origin: int64[t]. The cell that each of these tuples left.
        n: int64[3]. Counters, see `RANKED`, `STEPS` and `MOVED`.
    """

    cell: Ints
    first: Ints
    after: Ints
    before: Ints
    rows: Ints
    height: Codes
    code: Codes
    loss: Ints
    columns: Ints
    ranking: Ints
    level: Ints
    low: Codes
    high: Codes
    bits: Bits
    step: Ints
    moves: Ints
    origin: Ints
    n: Ints


def make_tuple_cells(table: TupleTable, cell: Ints) -> TupleCells:
    """Makes the state. cell: int64[t], the cell of each tuple; the state keeps this array."""
    t, d = table.code.shape
    used = int(cell.max(initial=-1)) + 1
    m = used + used // SPARE + SPARE
    weight = table.weight / max(int(table.weight.sum()), 1)
    low = table.loss[:, min(1, table.loss.shape[1] - 1)]
    mean = np.array([weight @ low[j, table.code[:, j]] for j in range(d)])
    after, before, moved, origin = np.full((4, t), -1)
    rows, loss, ranked, level = np.zeros((4, m), np.int64)
    height, code = np.zeros((2, m, d), np.int32)
    low_code, high_code = np.zeros((2, d), np.int32)
    state = TupleCells(
        cell,
        np.full(m, -1),
        after,
        before,
        rows,
        height,
        code,
        loss,
        np.argsort(-mean, kind="stable"),
        ranked,
        level,
        low_code,
        high_code,
        np.zeros(table.bits.shape[1], np.uint64),
        np.full(m, -1),
        moved,
        origin,
        np.zeros(3, np.int64),
    )
    fill_cells(table, state)
    return state


@njit
def fill_cells(table: TupleTable, state: TupleCells) -> None:
    for t in range(len(state.cell) - 1, -1, -1):
        if state.cell[t] >= 0:
            link_tuple(table, state, t, state.cell[t])
    for c in range(len(state.first)):
        describe_tuples(table, state, c)


@njit
def link_tuple(table: TupleTable, state: TupleCells, t: int, c: int) -> None:
    state.cell[t] = c
    state.before[t], state.after[t] = -1, state.first[c]
    if state.first[c] >= 0:
        state.before[state.first[c]] = t
    state.first[c] = t
    state.rows[c] += table.weight[t]


@njit
def unlink_tuple(table: TupleTable, state: TupleCells, t: int) -> None:
    c, before, after = state.cell[t], state.before[t], state.after[t]
    if before >= 0:
        state.after[before] = after
    else:
        state.first[c] = after
    if after >= 0:
        state.before[after] = before
    state.rows[c] -= table.weight[t]


@njit
def span_without(table: TupleTable, state: TupleCells, c: int, t: int) -> None:
    """Writes `low`, `high` and `bits` of a cell without tuple t; with all tuples if t is -1."""
    state.low[:], state.high[:], state.bits[:] = 2**30, -1, 0
    other = state.first[c]
    while other >= 0:
        if other != t:
            for j in range(len(state.low)):
                code = table.code[other, j]
                state.low[j], state.high[j] = min(state.low[j], code), max(state.high[j], code)
            for word in range(len(state.bits)):
                state.bits[word] |= table.bits[other, word]
        other = state.after[other]


@njit
def rate_span(table: TupleTable, state: TupleCells) -> int:
    """The loss of one row of the last cell that `span_without` was called for.

    Leaves are in depth-first order, so all leaves between two leaves are under their lowest common
    ancestor.
    """
    loss = 0
    for j in range(len(state.low)):
        h = 0
        while table.node[j, h, state.low[j]] != table.node[j, h, state.high[j]]:
            h += 1
        loss += table.loss[j, h, state.low[j]]
    return loss


@njit
def describe_tuples(table: TupleTable, state: TupleCells, c: int) -> None:
    if state.first[c] < 0:
        state.loss[c] = 0
        return
    span_without(table, state, c, -1)
    state.loss[c] = rate_span(table, state)
    for j in range(len(state.low)):
        h = 0
        while table.node[j, h, state.low[j]] != table.node[j, h, state.high[j]]:
            h += 1
        state.height[c, j], state.code[c, j] = h, state.low[j]


@njit
def find_nearest_cell(
    table: TupleTable,
    state: TupleCells,
    among: Ints,
    levels: Ints,
    own: int,
    height: Codes,
    code: Codes,
    w: int,
    most: int,
) -> tuple[int, int]:
    """The cell whose loss grows least by w further rows, and its growth.

    Args:
        table: The tuples.
        state: The cells. Cells that a step of this pass has changed are skipped.
        among: int64[m]. The cells to search.
        levels: int64[m]. Their losses per row at the time of the ranking, ascending. The search
            ends where w rows at this loss reach the least growth so far.
        own: A cell to skip.
        height: int32[d]. The height of the rows' node in each column.
        code: int32[d]. A code under that node.
        w: The number of rows.
        most: The growth must be below this.

    Returns:
        The cell; -1 if there is none.
        Its growth; `most` if there is none.
    """
    # Take the arrays out of the state once: to pass the whole state to a function takes longer than
    # to evaluate a cell.
    node, losses, columns = table.node, table.loss, state.columns
    rows, loss, step = state.rows, state.loss, state.step
    heights, codes = state.height, state.code
    best, least = -1, most
    for i in range(len(among)):
        if w * levels[i] >= least:
            break  # the w rows alone lose that much, here and in all following cells
        c = among[i]
        if c == own or step[c] >= 0 or rows[c] == 0:
            continue
        now, total = rows[c] * loss[c], rows[c] + w
        more = -now
        for j in columns:
            a, b = codes[c, j], code[j]
            h = max(heights[c, j], height[j])
            while node[j, h, a] != node[j, h, b]:
                h += 1
            more += losses[j, h, a] * total
            if more >= least:
                break
        else:
            best, least = c, more
    return best, least


@njit
def rank(state: TupleCells) -> None:
    """Begins a pass: ranks the cells in use by loss, and resets steps and moves."""
    used = np.flatnonzero(state.rows)
    order = np.argsort(state.loss[used], kind="mergesort")
    state.n[:] = len(used), 0, 0
    for i in range(len(used)):
        state.ranking[i] = used[order[i]]
        state.level[i] = state.loss[used[order[i]]]
    state.step[:] = -1


@njit
def enter(state: TupleCells, c: int) -> None:
    """Adds a new cell to the ranked ones."""
    i, loss = state.n[RANKED], state.loss[c]
    while i > 0 and state.level[i - 1] > loss:
        state.ranking[i], state.level[i] = state.ranking[i - 1], state.level[i - 1]
        i -= 1
    state.ranking[i], state.level[i] = c, loss
    state.n[RANKED] += 1


@njit
def strike(state: TupleCells) -> None:
    """Removes the cells without rows from the ranked ones."""
    n = 0
    for i in range(state.n[RANKED]):
        state.ranking[n], state.level[n] = state.ranking[i], state.level[i]
        n += state.rows[state.ranking[i]] > 0
    state.n[RANKED] = n


@njit
def find_cheapest_cell(
    table: TupleTable, state: TupleCells, t: int, most: int, zero: Codes
) -> tuple[int, int]:
    """The cell whose loss grows least by tuple t, and its growth (see `find_nearest_cell`).

    zero: int32[d], zeros.
    """
    n = state.n[RANKED]
    own, code, w = state.cell[t], table.code[t], table.weight[t]
    return find_nearest_cell(
        table, state, state.ranking[:n], state.level[:n], own, zero, code, w, most
    )


@njit
def shift(table: TupleTable, state: TupleCells, t: int, to: int) -> None:
    """Moves a tuple in the current step. The caller must then describe both cells."""
    state.moves[state.n[MOVED]], state.origin[state.n[MOVED]] = t, state.cell[t]
    state.n[MOVED] += 1
    unlink_tuple(table, state, t)
    link_tuple(table, state, t, to)


@njit
def move_tuple(table: TupleTable, state: TupleCells, t: int, to: int) -> None:
    """Moves a tuple in the current step. The caller must then describe the cell that it left."""
    shift(table, state, t, to)
    describe_tuples(table, state, to)


@njit
def undo(table: TupleTable, state: TupleCells, begin: int) -> None:
    """Undoes the moves from `begin` on."""
    for i in range(state.n[MOVED] - 1, begin - 1, -1):
        undo_move(table, state, i)
    state.n[MOVED] = begin


@njit
def undo_move(table: TupleTable, state: TupleCells, i: int) -> None:
    """Undoes move i."""
    t, origin = state.moves[i], state.origin[i]
    c = state.cell[t]
    unlink_tuple(table, state, t)
    link_tuple(table, state, t, origin)
    describe_tuples(table, state, c)
    describe_tuples(table, state, origin)


@njit
def move_tuples(table: TupleTable, state: TupleCells, judged: bool) -> int:
    """A pass of steps. Each step moves one tuple to the cell where it adds least. Returns the
    number of steps."""
    zero = np.zeros(table.code.shape[1], np.int32)
    n = 0
    rank(state)
    for t in range(len(state.cell)):
        a = state.cell[t]
        if a < 0 or state.loss[a] == 0 or state.step[a] >= 0:
            continue
        left = state.rows[a] - table.weight[t]
        if left < table.k:
            continue
        span_without(table, state, a, t)
        if not is_diverse(table, state.bits):
            continue
        gain = state.rows[a] * state.loss[a] - left * rate_span(table, state)
        b, _ = find_cheapest_cell(table, state, t, gain, zero)
        if b >= 0:
            move_tuple(table, state, t, b)
            describe_tuples(table, state, a)
            _mark(state, a, b, judged)
            state.n[STEPS] += 1
            n += 1
            if not judged:
                state.n[MOVED] = 0
    return n


@njit
def dissolve_cells(table: TupleTable, state: TupleCells, judged: bool) -> int:
    """A pass of steps. Each step dissolves one cell: its tuples, one after the other, move to the
    cell where they add least at that moment. Returns the number of steps."""
    zero = np.zeros(table.code.shape[1], np.int32)
    n = 0
    rank(state)
    for place in range(state.n[RANKED] - 1, -1, -1):
        a, begin = state.ranking[place], state.n[MOVED]
        if state.step[a] >= 0:
            continue
        budget = state.rows[a] * state.loss[a]
        while state.first[a] >= 0 and budget > 0:
            b, growth = find_cheapest_cell(table, state, state.first[a], budget, zero)
            if b < 0:
                break
            move_tuple(table, state, state.first[a], b)
            budget -= growth
        if state.first[a] >= 0:
            undo(table, state, begin)
            continue
        describe_tuples(table, state, a)
        for i in range(begin, state.n[MOVED]):
            _mark(state, a, state.cell[state.moves[i]], judged)
        state.n[STEPS] += 1
        n += 1
        if not judged:
            state.n[MOVED] = 0
    return n


@njit
def _mark(state: TupleCells, a: int, b: int, judged: bool) -> None:
    if judged:
        state.step[a] = state.step[b] = state.n[STEPS]


@njit
def undo_failing_steps(table: TupleTable, state: TupleCells, fails: Bools) -> int:
    """Undoes the steps of the pass that changed a failing cell. Returns their number."""
    bad = np.zeros(state.n[STEPS], np.bool_)
    for c in range(len(fails)):
        if fails[c] and state.step[c] >= 0:
            bad[state.step[c]] = True
    for i in range(state.n[MOVED] - 1, -1, -1):
        if bad[state.step[state.cell[state.moves[i]]]]:
            undo_move(table, state, i)
    return int(bad.sum())


@njit
def find_growth(table: TupleTable, state: TupleCells, tuples: Ints) -> Ints:
    """int64[len(tuples)]. The least growth of the loss by each tuple, if it joins a cell. The
    tuples have no cell yet."""
    zero = np.zeros(table.code.shape[1], np.int32)
    result = np.zeros(len(tuples), np.int64)
    rank(state)
    for i in range(len(tuples)):
        result[i] = find_cheapest_cell(table, state, tuples[i], INFINITE_LOSS, zero)[1]
    return result


@njit
def merge_into_nearest(table: TupleTable, state: TupleCells, failing: Ints) -> None:
    """Merges each failing cell, in order, with the cell where it adds least. A cell is skipped if
    another one was merged into it in this call."""
    every, levels = np.arange(len(state.rows)), np.zeros(len(state.rows), np.int64)
    waits = np.zeros(len(state.rows), np.bool_)
    state.step[:] = -1
    for a in failing:
        if waits[a]:
            continue
        w = state.rows[a]
        b, _ = find_nearest_cell(
            table, state, every, levels, a, state.height[a], state.code[a], w, INFINITE_LOSS
        )
        while state.first[a] >= 0:
            t = state.first[a]
            unlink_tuple(table, state, t)
            link_tuple(table, state, t, b)
        describe_tuples(table, state, a)
        describe_tuples(table, state, b)
        waits[b] = True

"""The state of refining: the cells of the rows, and the steps that lower their loss.

The loss is the sum over the rows of the squared distance from the centroid of their cell. A step
transfers a row to another cell, or swaps two rows. Its gain follows from squared distances before
the step:

- transfer: a row leaves a cell of n rows, at distance x from its centroid, for a cell of m rows, at
  distance y from its centroid. Gain: x n / (n - 1) - y m / (m + 1).
- swap: the lean of each row to its new cell (its distance from its own centroid less its distance
  from the other centroid), plus the distance of the two rows times 1 / n + 1 / m.
"""

from typing import NamedTuple

import numpy as np

from anonlib.arrays import Codes, Floats, Ints
from anonlib.compiled import njit

#: The group of free cells.
FREE = 2**40


class RefineState(NamedTuple):
    """n rows in at most c cells; a cell without rows is free.

    Attributes:
        numeric: [n, p]. The numeric columns.
        nominal: [n, q]. The nominal columns.
        cell: [n]. The cell of each row.
        after: [n]. The rows of a cell are a chain: first[cell], after[row], ..., -1.
        own: [n]. Squared distance of a row from the centroid of its cell.
        lean: [n]. Work space: a figure of each row and one other cell.
        first: [c]. The first row of each cell.
        rows: [c]. The rows of each cell.
        total: [c, p]. Sums of the numeric columns.
        mean: [c, p]. Means of the numeric columns.
        spread: [c]. Sum over the nominal columns of half of (1 + the sum of squared shares).
        radius: [c]. The largest `own` of a cell.
        loss: [c]. The sum of `own` over a cell.
        changed: [c]. clock[0] at the last change of a cell.
        clock: [1]. Counts changes.
        group: [c]. Rows move between cells of one group only.
        center: [c]. center[g] is the cell that group g was made around.
        tally: Work space: rows by category; column h begins at start[h].
        start: [q + 1]. See `tally`.
        blur: [1]. More than the rounding error of a distance from a centroid.
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
def make_refine_state(
    numeric: Floats, nominal: Codes, n_categories: Ints, cell: Ints, c: int
) -> RefineState:
    """The rows in cells 0..c-1 as given, all of one group. Cost O(n (p + q))."""
    n, p, q = len(cell), numeric.shape[1], nominal.shape[1]
    start = np.zeros(q + 1, np.int64)
    for h in range(q):
        start[h + 1] = start[h] + n_categories[h]
    state = RefineState(
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
        describe_cell(state, i)
    gather(state)
    return state


@njit
def gather(state: RefineState) -> None:
    """Makes all cells with rows one group."""
    for i in range(len(state.rows)):
        state.group[i] = 0 if state.rows[i] > 0 else FREE


@njit
def _put(state: RefineState, row: int, cell: int) -> None:
    """Puts a row that is in no cell in front of a cell's chain."""
    state.cell[row] = cell
    state.after[row] = state.first[cell]
    state.first[cell] = row
    state.rows[cell] += 1
    for j in range(state.numeric.shape[1]):
        state.total[cell, j] += state.numeric[row, j]


@njit
def move_row(state: RefineState, row: int, cell: int) -> None:
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
def change(state: RefineState, a: int, b: int) -> None:
    """Describes two cells between which rows have moved."""
    describe_cell(state, a)
    describe_cell(state, b)
    state.clock[0] += 1
    state.changed[a] = state.changed[b] = state.clock[0]


@njit
def describe_cell(state: RefineState, cell: int) -> None:
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
def _describe_nominal(state: RefineState, cell: int) -> None:
    """Computes the spread of a cell, and adds what the nominal columns contribute to `own`."""
    n, q = state.rows[cell], state.nominal.shape[1]
    count_categories(state, cell)
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
def count_categories(state: RefineState, cell: int) -> None:
    """Counts the categories of the rows of a cell in the tally, which is 0."""
    row = state.first[cell]
    while row >= 0:
        for h in range(state.nominal.shape[1]):
            state.tally[state.start[h] + state.nominal[row, h]] += 1
        row = state.after[row]


@njit
def clear(state: RefineState, cell: int) -> None:
    """Sets the tally to 0 after a cell was counted."""
    row = state.first[cell]
    while row >= 0:
        for h in range(state.nominal.shape[1]):
            state.tally[state.start[h] + state.nominal[row, h]] = 0
        row = state.after[row]


@njit
def in_common(state: RefineState, row: int) -> int:
    """How many counted categories are those of a row."""
    result = 0
    for h in range(state.nominal.shape[1]):
        result += state.tally[state.start[h] + state.nominal[row, h]]
    return result


@njit
def from_nominal(state: RefineState, row: int, cell: int) -> float:
    """What the nominal columns add to the squared distance of a row from the centroid of the cell
    that is counted."""
    return float(max(state.spread[cell] - in_common(state, row) / state.rows[cell], 0.0))


@njit
def from_centroid(state: RefineState, row: int, cell: int) -> float:
    """The squared distance of a row from the centroid of the cell that is counted."""
    result = 0.0
    for j in range(state.numeric.shape[1]):
        gap = state.numeric[row, j] - state.mean[cell, j]
        result += gap * gap
    if state.nominal.shape[1] > 0:
        result += from_nominal(state, row, cell)
    return result


#: What a step must gain, as a share of the squared distances that it is computed from.
LEAST = 1e-9


class Steps(NamedTuple):
    """The best steps found between two cells, best first: the gain, the row that leaves the first
    cell for the second, and the one that comes from there; -1 for none."""

    gain: Floats
    leaves: Ints
    comes: Ints


@njit
def make_steps(room: int) -> Steps:
    """Work space for `room` steps."""
    return Steps(np.zeros(room), np.full(room, -1), np.full(room, -1))


@njit
def next_steps(
    state: RefineState, near: Ints, seen: Codes, a: int, slot: int, k: int, steps: Steps
) -> int:
    """The first slot from `slot` on that has a cell near `a` with steps; -1 if there is none.

    near: [c, L], the cells near each one, -1 for none. seen: [c, L], the clock when the two were
    last looked at: they are again when one has changed. k: cells keep k rows.
    """
    # Once for all pairs of cells: taking an array out of the state costs as much as a few rows.
    numeric, mean, after, own, lean = state.numeric, state.mean, state.after, state.own, state.lean
    first, rows, radius, changed = state.first, state.rows, state.radius, state.changed
    nominal, group, now, blur = state.nominal, state.group, state.clock[0], state.blur[0]
    for t in range(slot, near.shape[1]):
        b = near[a, t]
        if b < 0 or group[a] != group[b] or max(changed[a], changed[b]) <= seen[a, t]:
            continue
        _mark(near, seen, a, t, now)
        if rows[b] == 0:
            continue
        between, both = _between(mean, a, b), 1.0 / rows[a] + 1.0 / rows[b]
        least = _least(between, radius[a], radius[b], blur)
        swaps = _most(between, radius[a], radius[b], both) > least
        if not swaps and rows[a] == k and rows[b] == k:
            continue
        _clear(steps, least)
        most = _lean(numeric, mean, after, own, lean, first[a], b)
        _lean(numeric, mean, after, own, lean, first[b], a)
        if nominal.shape[1] > 0:
            most = _lean_nominal(state, a, b)
            _lean_nominal(state, b, a)
        if rows[a] > k:
            _transfers(after, own, lean, first[a], rows[a], rows[b], steps, steps.leaves)
        if rows[b] > k:
            _transfers(after, own, lean, first[b], rows[b], rows[a], steps, steps.comes)
        if swaps:
            bound = most, radius[a], both
            _swaps(numeric, nominal, after, own, lean, first[a], first[b], bound, steps)
        if steps.gain[0] > least:
            return t
    return -1


@njit
def _mark(near: Ints, seen: Codes, a: int, slot: int, now: int) -> None:
    """Notes that cell `a` and the one in a slot are looked at, on both sides."""
    seen[a, slot] = now
    b = near[a, slot]
    for t in range(near.shape[1]):
        if near[b, t] == a:
            seen[b, t] = now


@njit
def _between(mean: Floats, a: int, b: int) -> float:
    """The squared distance of two centroids in the numeric columns."""
    result = 0.0
    for j in range(mean.shape[1]):
        gap = mean[a, j] - mean[b, j]
        result += gap * gap
    return result


@njit
def _least(between: float, radius: float, other: float, blur: float) -> float:
    """What a step must gain so that it is not due to rounding. Arguments: the squared distance of
    the two centroids, and the largest ones of rows from them."""
    reach = np.sqrt(between) + np.sqrt(radius) + np.sqrt(other)
    return float(LEAST * (between + radius + other) + blur * reach)


@njit
def _most(between: float, radius: float, other: float, both: float) -> float:
    """What a swap can gain at most. Arguments as for `_least`.

    A row at distance r of its centroid leans r**2 - (d - r)**2 at most to one at distance d.
    """
    far, reach = np.sqrt(between), np.sqrt(radius) + np.sqrt(other)
    return float(2.0 * far * (reach - far) + both * (far + reach) ** 2)


@njit
def _clear(steps: Steps, least: float) -> None:
    """Empties the list; a step must gain more than `least`."""
    for i in range(len(steps.gain)):
        steps.gain[i] = least
        steps.leaves[i] = steps.comes[i] = -1


@njit
def _lean(
    numeric: Floats, mean: Floats, after: Ints, own: Floats, lean: Floats, row: int, cell: int
) -> float:
    """Sets, for a row and all after it, how much nearer it is to the centroid of another cell than
    to its own in the numeric columns. Returns the most."""
    most = -np.inf
    while row >= 0:
        distance = 0.0
        for j in range(mean.shape[1]):
            gap = numeric[row, j] - mean[cell, j]
            distance += gap * gap
        lean[row] = own[row] - distance
        most = max(most, lean[row])
        row = after[row]
    return most


@njit
def _lean_nominal(state: RefineState, a: int, b: int) -> float:
    """Adds the nominal columns to what the rows of `a` lean to `b`. Returns the most."""
    count_categories(state, b)
    most = -np.inf
    row = state.first[a]
    while row >= 0:
        state.lean[row] -= from_nominal(state, row, b)
        most = max(most, state.lean[row])
        row = state.after[row]
    clear(state, b)
    return most


@njit
def _transfers(
    after: Ints, own: Floats, lean: Floats, row: int, n: int, m: int, steps: Steps, mover: Ints
) -> None:
    """Offers the transfers of a row, and of all after it, from their n rows to m others."""
    left, entered = n / (n - 1), m / (m + 1)
    while row >= 0:
        gain = left * own[row] - entered * (own[row] - lean[row])
        if gain > steps.gain[-1]:
            mover[_offer(steps, gain)] = row
        row = after[row]


@njit
def _swaps(
    numeric: Floats,
    nominal: Codes,
    after: Ints,
    own: Floats,
    lean: Floats,
    first: int,
    row: int,
    bound: tuple[float, float, float],
    steps: Steps,
) -> None:
    """Offers the swaps of `row`, and of all after it, with the rows from `first` on.

    bound: what those lean at most, their largest squared distance from their centroid, and what
    the distance of two rows is multiplied by; it is at most twice the sum of theirs from there.
    """
    most, radius, both = bound
    while row >= 0:
        distance = own[row] - lean[row]
        least = steps.gain[-1]
        other = first if most + lean[row] + 2.0 * both * (radius + distance) > least else -1
        while other >= 0:
            gain = lean[other] + lean[row]
            if gain + 2.0 * both * (own[other] + distance) > least:
                gain += both * apart(numeric, nominal, row, other)
                if gain > least:
                    place = _offer(steps, gain)
                    steps.leaves[place], steps.comes[place] = other, row
                    least = steps.gain[-1]
            other = after[other]
        row = after[row]


@njit
def apart(numeric: Floats, nominal: Codes, row: int, other: int) -> float:
    """The squared distance of two rows."""
    result = 0.0
    for j in range(numeric.shape[1]):
        gap = numeric[row, j] - numeric[other, j]
        result += gap * gap
    for h in range(nominal.shape[1]):
        result += nominal[row, h] != nominal[other, h]
    return result


@njit
def _offer(steps: Steps, gain: float) -> int:
    """Makes a place for a step that gains more than the last one."""
    i = len(steps.gain) - 1
    while i > 0 and steps.gain[i - 1] < gain:
        steps.gain[i] = steps.gain[i - 1]
        steps.leaves[i], steps.comes[i] = steps.leaves[i - 1], steps.comes[i - 1]
        i -= 1
    steps.gain[i] = gain
    steps.leaves[i] = steps.comes[i] = -1
    return i

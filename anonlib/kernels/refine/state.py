"""The state of refining: the cells of the rows, and the steps that lower their loss.

The loss is the sum, over the rows, of the squared distance from the centroid of the row's cell. A
step transfers a row to another cell, or swaps two rows. All distances below are squared, and are
taken before the step:

- transfer: a row leaves a cell of n rows, at distance x from its centroid, for a cell of m rows, at
  distance y from its centroid. Gain: x n / (n - 1) - y m / (m + 1).
- swap: two rows change places. The lean of a row is its distance from its own centroid minus its
  distance from the other one. Gain: the leans of both rows, plus the distance between the rows
  times (1 / n + 1 / m).
"""

import numpy as np

from anonlib.arrays import Codes, Floats, Ints
from anonlib.compiled import njit, njit_in_place
from anonlib.kernels.refine.extent_steps import find_extent_steps
from anonlib.kernels.refine.extents import Extents, are_copies, describe_extents, penalize_pair
from anonlib.kernels.refine.row_lists import FREE, RefineState
from anonlib.kernels.refine.step_list import LEAST, Steps, clear_steps, offer_step


@njit
def make_refine_state(
    numeric: Floats, nominal: Codes, n_categories: Ints, cell: Ints, c: int
) -> RefineState:
    """The state of rows in the given cells, 0..c-1, as one group, for the loss of squared
    distances. Cost O(n (p + q))."""
    return fill_refine_state(numeric, nominal, n_categories, cell, c, None)


@njit
def fill_refine_state(
    numeric: Floats, nominal: Codes, n_categories: Ints, cell: Ints, c: int, extents: Extents | None
) -> RefineState:
    """The state as `make_refine_state` makes it, with extents."""
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
        extents is not None,
        extents,
    )
    largest = 0.0
    for row in range(n - 1, -1, -1):
        _put(state, row, cell[row])
        for j in range(p):
            largest = max(largest, abs(numeric[row, j]))
    # The error of a mean is at most 2**-53 of the largest value; of a sum of p squares, p times it.
    state.blur[0] = 0.0 if state.by_penalty else 2.0**-49 * p * largest
    for i in range(c):
        describe_cell(state, i)
    gather(state)
    return state


@njit_in_place
def gather(state: RefineState) -> None:
    """Puts all cells with rows into one group."""
    for i in range(len(state.rows)):
        state.group[i] = 0 if state.rows[i] > 0 else FREE


@njit_in_place
def _put(state: RefineState, row: int, cell: int) -> None:
    """Makes a row without a cell the first row of a cell."""
    state.cell[row] = cell
    state.after[row] = state.first[cell]
    state.first[cell] = row
    state.rows[cell] += 1
    for j in range(state.numeric.shape[1]):
        state.total[cell, j] += state.numeric[row, j]


@njit_in_place
def move_row(state: RefineState, row: int, cell: int) -> None:
    """Moves a row to another cell. The caller must then call `change`."""
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


@njit_in_place
def change(state: RefineState, a: int, b: int) -> None:
    """Describes two cells after rows have moved between them, and advances the clock."""
    state.clock[0] += 1
    change_now(state, a)
    change_now(state, b)


@njit_in_place
def change_now(state: RefineState, cell: int) -> None:
    """Describes a cell, and notes the clock as the time of its last change."""
    describe_cell(state, cell)
    state.last_change[cell] = state.clock[0]


@njit_in_place
def describe_cell(state: RefineState, cell: int) -> None:
    """Computes `mean`, `spread`, `radius` and `loss` of a cell, and `own` of its rows."""
    if state.by_penalty:
        penalty = describe_extents(state.extents, state.after, state.own, state.first[cell], cell)
        state.loss[cell] = penalty * state.rows[cell]
        return
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


@njit_in_place
def _describe_nominal(state: RefineState, cell: int) -> None:
    """Computes `spread` of a cell, and adds the nominal columns to `own` of its rows."""
    n, q = state.rows[cell], state.nominal.shape[1]
    count_categories(state, cell)
    squares = 0
    row = state.first[cell]
    while row >= 0:
        squares += count_common(state, row)
        row = state.after[row]
    state.spread[cell] = 0.5 * (q + squares / max(n * n, 1))
    row = state.first[cell]
    while row >= 0:
        state.own[row] += measure_nominal(state, row, cell)
        row = state.after[row]
    clear(state, cell)


@njit_in_place
def count_categories(state: RefineState, cell: int) -> None:
    """Counts the categories of a cell's rows in `tally`, which must be 0 before."""
    row = state.first[cell]
    while row >= 0:
        for h in range(state.nominal.shape[1]):
            state.tally[state.start[h] + state.nominal[row, h]] += 1
        row = state.after[row]


@njit_in_place
def clear(state: RefineState, cell: int) -> None:
    """Resets `tally` to 0 after a cell was counted."""
    row = state.first[cell]
    while row >= 0:
        for h in range(state.nominal.shape[1]):
            state.tally[state.start[h] + state.nominal[row, h]] = 0
        row = state.after[row]


@njit_in_place
def count_common(state: RefineState, row: int) -> int:
    """The sum of the tally of a row's categories over the nominal columns."""
    result = 0
    for h in range(state.nominal.shape[1]):
        result += state.tally[state.start[h] + state.nominal[row, h]]
    return result


@njit_in_place
def measure_nominal(state: RefineState, row: int, cell: int) -> float:
    """What the nominal columns add to the squared distance of a row from the centroid of `cell`,
    which must be counted in `tally`."""
    return float(max(state.spread[cell] - count_common(state, row) / state.rows[cell], 0.0))


@njit_in_place
def find_next_steps(
    state: RefineState, near: Ints, last_search: Codes, a: int, slot: int, k: int, steps: Steps
) -> int:
    """The first slot, from `slot` on, whose cell has steps with cell `a`; -1 if there is none.

    Args:
        state: The cells.
        near: int64[c, L]. The cells near each cell, by slot; -1 for none.
        last_search: int32[c, L]. The clock when these two cells were last searched. They are
            searched again after one of them has changed.
        a: A cell.
        slot: The first slot to search.
        k: The rows that every cell keeps.
        steps: Receives the steps.
    """
    # Take arrays out of the state once: each access costs as much as a few rows.
    mean, after, own, lean = state.mean, state.after, state.own, state.lean
    numeric, nominal = state.numeric, state.nominal
    first, rows, radius, changed = state.first, state.rows, state.radius, state.last_change
    group, now, blur = state.group, state.clock[0], state.blur[0]
    for t in range(slot, near.shape[1]):
        b = near[a, t]
        if b < 0 or group[a] != group[b] or max(changed[a], changed[b]) <= last_search[a, t]:
            continue
        _mark(near, last_search, a, t, now)
        if rows[b] == 0 or state.by_penalty:
            if find_extent_steps(state.extents, state, a, b, k, steps):
                return t
            continue
        n, m = rows[a], rows[b]
        between, both = _between(mean, a, b), 1.0 / n + 1.0 / m
        least = _least(between, radius[a], radius[b], blur)
        swaps = _most(between, radius[a], radius[b], both) > least
        if not swaps and n == k and m == k:
            continue
        most = _lean(numeric, mean, after, own, lean, first[a], b, both)
        if nominal.shape[1] > 0:
            most, between = _lean_nominal(state, a, b, both)
        swaps = swaps and _most_by_rows(between, most, radius[b], both) > least
        if not swaps and n == k and m == k:
            continue
        clear_steps(steps, least)
        if n > k:
            _transfers(after, own, lean, first[a], n, m, steps, steps.leaves)
        if swaps or m > k:
            _lean(numeric, mean, after, own, lean, first[b], a, both)
            if nominal.shape[1] > 0:
                _lean_nominal(state, b, a, both)
        if m > k:
            _transfers(after, own, lean, first[b], m, n, steps, steps.comes)
        if swaps:
            _swaps(numeric, nominal, after, own, lean, first[a], first[b], between, both, steps)
        if steps.gain[0] > least:
            return t
    return -1


@njit_in_place
def _mark(near: Ints, last_search: Codes, a: int, slot: int, now: int) -> None:
    """Records in `last_search` of both cells that `a` and the cell in a slot are searched now."""
    last_search[a, slot] = now
    b = near[a, slot]
    for t in range(near.shape[1]):
        if near[b, t] == a:
            last_search[b, t] = now


@njit_in_place
def _between(mean: Floats, a: int, b: int) -> float:
    """The squared distance between two centroids, in the numeric columns."""
    result = 0.0
    for j in range(mean.shape[1]):
        gap = mean[a, j] - mean[b, j]
        result += gap * gap
    return result


@njit_in_place
def _least(between: float, radius: float, other: float, blur: float) -> float:
    """The least gain that rounding alone cannot explain.

    between: the squared distance between the two centroids. radius, other: the largest squared
    distance of a row from its centroid, for each cell.
    """
    reach = np.sqrt(between) + np.sqrt(radius) + np.sqrt(other)
    return float(LEAST * (between + radius + other) + blur * reach)


@njit_in_place
def _most(between: float, radius: float, other: float, both: float) -> float:
    """An upper bound of the gain of a swap, where it is above 0. Arguments as for `_least`; both:
    1 / n + 1 / m.

    D is the distance between the centroids, z the vector from one row to the other, each seen from
    its own centroid. Then the gain is 2 (1 - both) D (z along D) + both z**2 - (2 - both) D**2. It
    is greatest if both rows lie on the line of the centroids. If D is larger, by nominal columns,
    gains above 0 end no later.
    """
    far, reach, along = np.sqrt(between), np.sqrt(radius) + np.sqrt(other), abs(1.0 - both)
    return float(2.0 * along * far * reach + both * reach**2 - (2.0 - both) * far**2)


@njit_in_place
def _most_by_rows(between: float, most: float, other: float, both: float) -> float:
    """An upper bound of the gain of a swap, if only the radius of the second cell is known.

    most: the greatest (1 - both) lean + both own of a row of the first cell.
    """
    inner = max((1.0 - both) * between + both * most, 0.0)
    if both > 1.0:
        return float("inf")
    return float(most - between + both * other + 2.0 * np.sqrt(other * inner))


@njit_in_place
def _lean(
    numeric: Floats,
    mean: Floats,
    after: Ints,
    own: Floats,
    lean: Floats,
    row: int,
    cell: int,
    both: float,
) -> float:
    """Sets `lean` of a row and of all rows after it: their lean to `cell`, in the numeric columns.
    Returns the greatest (1 - both) lean + both own."""
    most = -np.inf
    while row >= 0:
        distance = 0.0
        for j in range(mean.shape[1]):
            gap = numeric[row, j] - mean[cell, j]
            distance += gap * gap
        lean[row] = own[row] - distance
        most = max(most, own[row] - (1.0 - both) * distance)
        row = after[row]
    return most


@njit_in_place
def _lean_nominal(state: RefineState, a: int, b: int, both: float) -> tuple[float, float]:
    """Adds the nominal columns to the lean of the rows of `a` to `b`. Returns what `_lean` does,
    and the squared distance between the centroids: less it, rows lean to the other cell by the
    mean."""
    count_categories(state, b)
    most, total = -np.inf, 0.0
    row = state.first[a]
    while row >= 0:
        state.lean[row] -= measure_nominal(state, row, b)
        total += state.lean[row]
        most = max(most, (1.0 - both) * state.lean[row] + both * state.own[row])
        row = state.after[row]
    clear(state, b)
    return most, max(-total / state.rows[a], 0.0)


@njit_in_place
def _transfers(
    after: Ints, own: Floats, lean: Floats, row: int, n: int, m: int, steps: Steps, mover: Ints
) -> None:
    """Offers the transfers of a row, and of all rows after it, from their cell of n rows to a cell
    of m rows. mover: `steps.leaves` or `steps.comes`."""
    left, entered = n / (n - 1), m / (m + 1)
    while row >= 0:
        gain = left * own[row] - entered * (own[row] - lean[row])
        if gain > steps.gain[-1]:
            mover[offer_step(steps, gain)] = row
        row = after[row]


@njit_in_place
def _swaps(
    numeric: Floats,
    nominal: Codes,
    after: Ints,
    own: Floats,
    lean: Floats,
    first: int,
    row: int,
    between: float,
    both: float,
    steps: Steps,
) -> None:
    """Offers the swaps of `row`, and of all rows after it, with the rows from `first` on.

    between: the squared distance between the centroids. both: 1 / n + 1 / m. The squared distance
    between two rows is at most twice the sum of their squared distances from the middle of the
    centroids, which are own - lean / 2 - between / 4.
    """
    along, twice = 1.0 - both, 2.0 * both
    most = -np.inf
    other = first
    while other >= 0:
        most = max(most, along * lean[other] + twice * own[other])
        other = after[other]
    most -= both * between
    while row >= 0:
        least = steps.gain[-1]
        rest = along * lean[row] + twice * own[row]
        other = first if most + rest > least else -1
        rest -= both * between
        while other >= 0:
            if along * lean[other] + twice * own[other] + rest > least:
                gain = lean[other] + lean[row] + both * measure_gap(numeric, nominal, row, other)
                if gain > least:
                    place = offer_step(steps, gain)
                    steps.leaves[place], steps.comes[place] = other, row
                    least = steps.gain[-1]
            other = after[other]
        row = after[row]


@njit_in_place
def measure_gap(numeric: Floats, nominal: Codes, row: int, other: int) -> float:
    """The squared distance between two rows."""
    result = 0.0
    for j in range(numeric.shape[1]):
        gap = numeric[row, j] - numeric[other, j]
        result += gap * gap
    for h in range(nominal.shape[1]):
        result += nominal[row, h] != nominal[other, h]
    return result


@njit_in_place
def find_row_distance(state: RefineState, row: int, other: int) -> float:
    """The squared distance between two rows, or the penalty of a cell of both."""
    if state.by_penalty:
        return penalize_pair(state.extents, row, other)
    return measure_gap(state.numeric, state.nominal, row, other)


@njit_in_place
def move_copies(state: RefineState, row: int, n: int, cell: int) -> None:
    """Moves a row and n - 1 other copies of it to another cell. The caller must then call
    `change`."""
    source = state.cell[row]
    move_row(state, row, cell)
    other = state.first[source] if n > 1 else -1
    while other >= 0 and n > 1:
        following = state.after[other]
        if are_copies(state.extents, other, row):
            move_row(state, other, cell)
            n -= 1
        other = following

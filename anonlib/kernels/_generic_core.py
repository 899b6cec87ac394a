"""The compiled core of MDAV-generic: passes over all remaining distinct tuples."""

from typing import Any, NamedTuple

import numpy as np

from anonlib.arrays import Codes, Floats, Ints
from anonlib.compiled import njit
from anonlib.kernels._search import Nearest, make_nearest, offer_point

#: Gaps are removed from the rest when at most this share of its places is in use.
COMPACT = 0.75

#: The counters of `MixedRest.counters`: places including gaps (PLACES), tuples in them (TUPLES),
#: and their remaining rows (ROWS).
PLACES, TUPLES, ROWS = range(3)


class LossTrees(NamedTuple):
    """The hierarchies of q nominal columns, side by side (see `Tree`).

    Attributes:
        parent: int64[nodes]. As in `Tree`, counted from the column's first node.
        low: int64[nodes]. As in `Tree`.
        high: int64[nodes]. As in `Tree`.
        loss: float64[nodes]. The square of the loss in `Tree`.
        start: int64[q]. The first node of each column.
        size: int64[q]. The leaves of each column.
    """

    parent: Ints
    low: Ints
    high: Ints
    loss: Floats
    start: Ints
    size: Ints


class MixedRest(NamedTuple):
    """The rest: tuples with rows that are not in a cell yet, in order. There may be gaps between.

    Attributes:
        number: float64[p + o, m]. Continuous columns, then ranks, by place.
        code: int32[q, m]. Codes of the nominal columns, by place.
        item: int64[m]. The tuple at each place.
        weight: int64[m]. The remaining rows of the tuple at each place; 0 in a gap.
        counters: int64[3]. Counters, see `PLACES`, `TUPLES` and `ROWS`.
        total: float64[p]. Sums of the continuous columns.
        tally: int64[start[o + q]]. Rows per rank, then per code. Column g begins at start[g].
        start: int64[o + q + 1]. Where each ordinal, then each nominal column begins in `tally`.
        distance: float64[m]. The squared distance of each place, as the last `_measure` set it.
        loss: float64[the most ranks or codes]. Scratch of `_measure`.
        convex: int64[the most ranks or codes]. Scratch of `_median`.
    """

    number: Floats
    code: Codes
    item: Ints
    weight: Ints
    counters: Ints
    total: Floats
    tally: Ints
    start: Ints
    distance: Floats
    loss: Floats
    convex: Ints


@njit
def make_generic_cells(
    number: Floats,
    code: Codes,
    n_ranks: Ints,
    trees: LossTrees,
    first: Ints,
    weight: Ints,
    k: int,
    convex: bool,
) -> Ints:
    """Puts n rows with m distinct tuples into cells of k rows.

    Args:
        number: float64[p + o, m]. The continuous columns of the tuples, then their ranks.
            Overwritten.
        code: int32[q, m]. The codes of the tuples. Overwritten.
        n_ranks: int64[o]. The ranks of each ordinal column.
        trees: The hierarchies of the nominal columns.
        first: int64[m]. The first row of each tuple.
        weight: int64[m]. The rows of each tuple, which follow each other.
        k: Rows of a cell.
        convex: Whether ranks are averaged by the convex median.

    Returns:
        int64[n]. The cell of each row.
    """
    rest = _make_rest(number, code, n_ranks, trees.size, weight)
    cell = np.full(weight.sum(), -1, np.int64)
    nearest = make_nearest(k)
    x, c = np.empty(len(number)), np.empty(len(code), np.int64)
    n_cells = 0
    while rest.counters[ROWS] >= 2 * k:
        pair = rest.counters[ROWS] >= 3 * k
        _average(rest, n_ranks, convex, x, c)
        _measure(rest, n_ranks, trees, x, c)
        center = _farthest(rest)
        for _ in range(1 + pair):
            _read(rest, center, x, c)
            _measure(rest, n_ranks, trees, x, c)
            center = _farthest(rest)
            _make_cell(rest, n_ranks, k, nearest, first, weight, cell, n_cells)
            n_cells += 1
            if rest.weight[center] == 0:  # Q is in P's cell: take the farthest remaining row
                center = _farthest(rest)
        if rest.counters[TUPLES] <= COMPACT * rest.counters[PLACES]:
            _compact(rest)
    for row in range(len(cell)):
        if cell[row] < 0:
            cell[row] = n_cells
    return cell


@njit
def _make_rest(
    number: Floats, code: Codes, n_ranks: Ints, n_codes: Ints, weight: Ints
) -> MixedRest:
    m, o, q = len(weight), len(n_ranks), len(code)
    p = len(number) - o
    start = np.zeros(o + q + 1, np.int64)
    widest = 1
    for g in range(o + q):
        size = n_ranks[g] if g < o else n_codes[g - o]
        start[g + 1] = start[g] + size
        widest = max(widest, size)
    rest = MixedRest(
        number,
        code,
        np.arange(m),
        weight.copy(),
        np.array([m, m, weight.sum()]),
        np.zeros(p),
        np.zeros(start[o + q], np.int64),
        start,
        np.empty(m),
        np.empty(widest),
        np.empty(widest, np.int64),
    )
    for i in range(m):
        _count(rest, n_ranks, i, weight[i])
    return rest


@njit
def _count(rest: MixedRest, n_ranks: Ints, i: int, rows: int) -> None:
    """Adds rows of the tuple at place i to total and tally."""
    p, o = len(rest.total), len(n_ranks)
    for j in range(p):
        rest.total[j] += rows * rest.number[j, i]
    for g in range(o):
        rest.tally[rest.start[g] + int(rest.number[p + g, i])] += rows
    for h in range(len(rest.code)):
        rest.tally[rest.start[o + h] + rest.code[h, i]] += rows


@njit
def _average(rest: MixedRest, n_ranks: Ints, convex: bool, x: Floats, c: Ints) -> None:
    """Writes the average record: means and medians to x, the most frequent codes to c. Of equally
    frequent codes, it takes the lowest."""
    p, o = len(rest.total), len(n_ranks)
    for j in range(p):
        x[j] = rest.total[j] / rest.counters[ROWS]
    for g in range(o):
        tally = rest.tally[rest.start[g] : rest.start[g + 1]]
        x[p + g] = _median(tally, rest.convex, convex)
    for h in range(len(c)):
        tally = rest.tally[rest.start[o + h] : rest.start[o + h + 1]]
        c[h] = 0
        for code in range(len(tally)):
            if tally[code] > tally[c[h]]:
                c[h] = code


@njit
def _median(tally: Ints, scratch: Ints, convex: bool) -> int:
    """The lower median rank. With `convex`, each frequency is first raised to min(the largest
    frequency at or below its rank, the largest at or above it)."""
    n = len(tally)
    most = 0
    for r in range(n):
        most = max(most, tally[r])
        scratch[r] = most if convex else tally[r]
    most = total = 0
    for r in range(n - 1, -1, -1):
        most = max(most, tally[r])
        scratch[r] = min(scratch[r], most)
        total += scratch[r]
    below, rank = 0, 0
    while 2 * (below + scratch[rank]) < total:
        below += scratch[rank]
        rank += 1
    return rank


@njit
def _read(rest: MixedRest, i: int, x: Floats, c: Ints) -> None:
    """Writes the record of the tuple at place i to x and c."""
    for j in range(len(x)):
        x[j] = rest.number[j, i]
    for h in range(len(c)):
        c[h] = rest.code[h, i]


@njit
def _measure(rest: MixedRest, n_ranks: Ints, trees: LossTrees, x: Floats, c: Ints) -> None:
    """Sets `distance` to the squared distance of each place, gaps included, from a record."""
    n_places, p, distance = rest.counters[PLACES], len(rest.total), rest.distance
    for i in range(n_places):
        distance[i] = 0.0
    for j in range(p):
        column, at = rest.number[j], x[j]
        for i in range(n_places):
            gap = column[i] - at
            distance[i] += gap * gap
    for g in range(len(n_ranks)):
        column, at, n = rest.number[p + g], x[p + g], n_ranks[g]
        for i in range(n_places):
            gap = (column[i] - at) / n
            distance[i] += gap * gap
    for h in range(len(c)):
        _spread(trees, h, c[h], rest.loss)
        code, loss = rest.code[h], rest.loss
        for i in range(n_places):
            distance[i] += loss[code[i]]


@njit
def _spread(trees: LossTrees, h: int, code: int, loss: Floats) -> None:
    """Sets loss[other] to the loss of the lowest common ancestor of `code` and `other` in column h,
    for every code `other`."""
    loss[code] = 0.0
    low, high = code, code + 1
    node = trees.start[h] + code
    while high - low < trees.size[h]:
        node = trees.start[h] + trees.parent[node]
        for other in range(trees.low[node], low):
            loss[other] = trees.loss[node]
        for other in range(high, trees.high[node]):
            loss[other] = trees.loss[node]
        low, high = trees.low[node], trees.high[node]


@njit
def _farthest(rest: MixedRest) -> int:
    """The place of largest distance; of several, the first."""
    best, result = -1.0, -1
    for i in range(rest.counters[PLACES]):
        if rest.distance[i] > best and rest.weight[i] > 0:
            best, result = rest.distance[i], i
    return result


@njit
def _make_cell(
    rest: MixedRest,
    n_ranks: Ints,
    k: int,
    nearest: Nearest,
    first: Ints,
    weight: Ints,
    cell: Ints,
    cell_id: int,
) -> None:
    """Moves the k rows of smallest distance from the rest into a cell. Ties go to the first."""
    nearest.size[0] = nearest.weight[0] = 0
    limit = np.inf
    for i in range(rest.counters[PLACES]):
        if rest.distance[i] < limit and rest.weight[i] > 0:
            limit = offer_point(nearest, rest.distance[i], i, k, rest.weight)
    last = nearest.size[0] - 1
    for place in range(last + 1):
        i = nearest.item[place]
        item = rest.item[i]
        # The farthest tuple, which is the last, gives only the rows that the cell still needs.
        rows = rest.weight[i] - (nearest.weight[0] - k if place == last else 0)
        start = first[item] + weight[item] - rest.weight[i]
        for row in range(start, start + rows):
            cell[row] = cell_id
        _count(rest, n_ranks, i, -rows)
        rest.weight[i] -= rows
        rest.counters[TUPLES] -= rest.weight[i] == 0
        rest.counters[ROWS] -= rows


@njit
def _compact(rest: MixedRest) -> None:
    """Removes the gaps."""
    n_places = rest.counters[PLACES]
    for j in range(len(rest.number)):
        _close(rest.number[j], rest.weight, n_places)
    for h in range(len(rest.code)):
        _close(rest.code[h], rest.weight, n_places)
    _close(rest.item, rest.weight, n_places)
    rest.counters[PLACES] = _close(rest.weight, rest.weight, n_places)


@njit
def _close(values: Any, weight: Ints, n_places: int) -> int:
    """Moves the values of places with rows to the front. Returns their number."""
    kept = 0
    for i in range(n_places):
        if weight[i] > 0:
            values[kept] = values[i]
            kept += 1
    return kept

"""The compiled core of MDAV, on the distinct tuples of a block."""

from typing import NamedTuple

import numpy as np

from anonlib.arrays import Floats, Ints
from anonlib.compiled import njit, njit_in_place, select, sort
from anonlib.kernels._kd_tree import KdLeaves, fill_leaves, make_leaves, remove
from anonlib.kernels._search import MARGIN, Nearest, find_farthest, find_nearest, make_nearest

#: The leaves are rebuilt when at most this share of their rows is left.
REFILL = 0.6
#: The ranking holds one in RANKED of the remaining tuples.
RANKED = 8
#: Above the rounding errors of a sum of three quotients of at most 1.
ROUNDING = 1e-15
#: The entries of `Ranking.span`: the first place in use (BEGIN), the place after the last (END),
#: and the number of tuples that remained when the ranking was made (N_LEFT).
BEGIN, END, N_LEFT = range(3)


class TupleRest(NamedTuple):
    """The rest: rows that are not in a cell yet, by tuple.

    `mean` and `spread` are the centroid, as the last `_center` computed it, besides the shares of
    categories: tally / rows.

    Attributes:
        weight: int64[m]. The remaining rows of each tuple.
        rows: int64[1]. The sum of `weight`.
        total: float64[p]. Sums of the numeric columns.
        tally: int64[start[q]]. Rows per category. Column h begins at start[h].
        start: int64[q + 1]. Where each nominal column begins in `tally`.
        squares: int64[q]. Per nominal column: the sum of the squares of its tally.
        mean: float64[p]. total / rows.
        spread: float64[q]. Per nominal column: (1 + the sum of its squared shares) / 2.
    """

    weight: Ints
    rows: Ints
    total: Floats
    tally: Ints
    start: Ints
    squares: Ints
    mean: Floats
    spread: Floats


class Ranking(NamedTuple):
    """The tuples farthest from the centroid of an earlier rest, farthest first.

    Attributes:
        item: int64[m]. The tuples, at places span[BEGIN]..span[END] - 1. When the ranking was made,
            span[N_LEFT] tuples remained. None outside the ranking was farther than its last tuple.
        distance: float64[m]. Their distances from that centroid.
        span: int64[3]. See `BEGIN`, `END` and `N_LEFT`.
        mean: float64[p]. The numeric columns of that centroid.
        tally: int64[start[q]]. The rows per category of that rest, as in `TupleRest.tally`.
        rows: int64[1]. The rows of that rest.
        squares: int64[q]. The sums of the squares of `tally`, as in `TupleRest.squares`.
        products: int64[q]. Per nominal column: the sum of the products of `tally` and that of the
            present rest.
        n_looks: int64[1]. How many tuples searches have looked at since.
    """

    item: Ints
    distance: Floats
    span: Ints
    mean: Floats
    tally: Ints
    rows: Ints
    squares: Ints
    products: Ints
    n_looks: Ints


@njit
def make_mdav_cells(
    value: Floats,
    p: int,
    first: Ints,
    weight: Ints,
    n_categories: Ints,
    k: int,
    pairs: int,
    one: int,
) -> Ints:
    """Puts n rows with m distinct tuples into cells of k rows.

    While at least `pairs` rows remain, it makes two cells at a time; then one at a time, while at
    least `one` rows remain. If k or more rows then remain, they become one cell.

    Args:
        value: float64[m, p + q]. The distinct tuples: numeric columns, then codes.
        p: Numeric columns.
        first: int64[m]. The first row of each tuple.
        weight: int64[m]. The rows of each tuple, which follow each other.
        n_categories: int64[q]. Categories of each nominal column.
        k: Rows of a cell.
        pairs: See above.
        one: See above; k <= one <= pairs.

    Returns:
        int64[n]. The cell of each row; -1 for rows left over, at most k - 1.
    """
    cell = np.full(weight.sum(), -1, np.int64)
    rest = _make_rest(value, p, weight, n_categories)
    ranking = _make_ranking(rest)
    leaves, nearest = make_leaves(value, p), make_nearest(k)
    filled, n_cells = 0, 0
    while rest.rows[0] >= one:
        if filled == 0 or rest.rows[0] <= REFILL * filled:
            fill_leaves(leaves, rest.weight)
            filled = rest.rows[0]
        p_and_q = np.full(2, _outermost(value, rest, ranking))
        both = rest.rows[0] >= pairs
        if both:
            p_and_q[1] = find_farthest(leaves, value[p_and_q[0]])
        for center in p_and_q[: 1 + both]:
            if rest.weight[center] == 0:  # Q is in P's cell: take the farthest remaining row
                center = find_farthest(leaves, value[p_and_q[0]])
            _make_cell(leaves, rest, ranking, center, k, nearest, first, weight, cell, n_cells)
            n_cells += 1
    if rest.rows[0] >= k:
        for row in range(len(cell)):
            if cell[row] < 0:
                cell[row] = n_cells
    return cell


@njit
def _make_rest(value: Floats, p: int, weight: Ints, n_categories: Ints) -> TupleRest:
    q = len(n_categories)
    start = np.zeros(q + 1, np.int64)
    for h in range(q):
        start[h + 1] = start[h] + n_categories[h]
    rest = TupleRest(
        weight.copy(),
        np.full(1, weight.sum()),
        np.zeros(p),
        np.zeros(start[q], np.int64),
        start,
        np.zeros(q, np.int64),
        np.empty(p),
        np.empty(q),
    )
    for i in range(len(value)):
        for j in range(p):
            rest.total[j] += weight[i] * value[i, j]
        for h in range(q):
            rest.tally[start[h] + int(value[i, p + h])] += weight[i]
    for h in range(q):
        for c in range(start[h], start[h + 1]):
            rest.squares[h] += rest.tally[c] ** 2
    return rest


@njit
def _make_ranking(rest: TupleRest) -> Ranking:
    m, q = len(rest.weight), len(rest.squares)
    return Ranking(
        np.empty(m, np.int64),
        np.empty(m),
        np.zeros(3, np.int64),
        np.empty(len(rest.mean)),
        np.zeros(len(rest.tally), np.int64),
        np.ones(1, np.int64),
        np.zeros(q, np.int64),
        np.zeros(q, np.int64),
        np.zeros(1, np.int64),
    )


@njit_in_place
def _make_cell(
    leaves: KdLeaves,
    rest: TupleRest,
    ranking: Ranking,
    center: int,
    k: int,
    nearest: Nearest,
    first: Ints,
    weight: Ints,
    cell: Ints,
    cell_id: int,
) -> None:
    """Moves the k rows nearest to tuple `center` from the rest into a cell, its own rows first."""
    find_nearest(leaves, center, k, rest.weight, nearest)
    last = nearest.size[0] - 1
    for place in range(last + 1):
        i = nearest.item[place]
        # The farthest tuple, which is the last, gives only the rows that the cell still needs.
        rows = rest.weight[i] - (nearest.weight[0] - k if place == last else 0)
        start = first[i] + weight[i] - rest.weight[i]
        for row in range(start, start + rows):
            cell[row] = cell_id
        _take(leaves.value, i, rows, rest, ranking)
        if rest.weight[i] == 0:
            remove(leaves, i)


@njit_in_place
def _take(value: Floats, i: int, rows: int, rest: TupleRest, ranking: Ranking) -> None:
    """Removes rows of tuple i from the rest."""
    rest.weight[i] -= rows
    rest.rows[0] -= rows
    p = len(rest.total)
    for j in range(p):
        rest.total[j] -= rows * value[i, j]
    for h in range(len(rest.squares)):
        c = rest.start[h] + int(value[i, p + h])
        rest.squares[h] += rows * (rows - 2 * rest.tally[c])
        rest.tally[c] -= rows
        ranking.products[h] -= rows * ranking.tally[c]


@njit_in_place
def _center(rest: TupleRest) -> None:
    """Computes the centroid of the rest."""
    n = rest.rows[0]
    for j in range(len(rest.mean)):
        rest.mean[j] = rest.total[j] / n
    for h in range(len(rest.spread)):
        rest.spread[h] = 0.5 * (1.0 + rest.squares[h] / (n * n))


@njit_in_place
def _outermost(value: Floats, rest: TupleRest, ranking: Ranking) -> int:
    """The tuple farthest from the centroid of the rest; of several, the lowest.

    No distance has changed by more than the centroid has moved since the ranking was made. So the
    search down the ranking can end early.
    """
    _center(rest)
    for attempt in range(3):
        if attempt > 0 or ranking.n_looks[0] >= ranking.span[N_LEFT]:
            # Third attempt: too many tuples are equally far for a ranking of one in RANKED. Rank
            # them all.
            _rank(value, rest, ranking, RANKED if attempt < 2 else 1)
        result, certain = _search(value, rest, ranking)
        if certain:
            break
    return result


@njit_in_place
def _search(value: Floats, rest: TupleRest, ranking: Ranking) -> tuple[int, bool]:
    """The farthest tuple in the ranking, and whether no tuple outside it can be as far."""
    item, distance, weight = ranking.item, ranking.distance, rest.weight
    while ranking.span[BEGIN] < ranking.span[END] and weight[item[ranking.span[BEGIN]]] == 0:
        ranking.span[BEGIN] += 1
    moved = _shift_of(rest, ranking)
    best, result, enough = -1.0, -1, -1.0
    for place in range(ranking.span[BEGIN], ranking.span[END]):
        if distance[place] + moved < enough:
            return result, True
        ranking.n_looks[0] += 1
        i = item[place]
        if weight[i] > 0:
            far = _from_centroid(value, i, rest)
            if far > best or (far == best and i < result):
                best, result = far, i
                enough = np.sqrt(far) * (1.0 - MARGIN) - MARGIN
    return result, ranking.span[END] == ranking.span[N_LEFT]


@njit_in_place
def _shift_of(rest: TupleRest, ranking: Ranking) -> float:
    """No less than the distance between the centroid of the rest and that of the ranking."""
    result = 0.0
    for j in range(len(rest.mean)):
        result += (rest.mean[j] - ranking.mean[j]) ** 2
    now, then = rest.rows[0], ranking.rows[0]
    for h in range(len(rest.squares)):
        # Half the squared distance of the shares. The three quotients are at most 1.
        cross = ranking.products[h] / (now * then)
        gap = rest.squares[h] / (now * now) - 2.0 * cross + ranking.squares[h] / (then * then)
        result += 0.5 * max(gap, 0.0) + ROUNDING
    return float(np.sqrt(result))


@njit_in_place
def _rank(value: Floats, rest: TupleRest, ranking: Ranking, part: int) -> None:
    """Ranks the farthest 1/part of the remaining tuples (at least 64), for the present centroid."""
    item, distance, weight = ranking.item, ranking.distance, rest.weight
    for j in range(len(rest.mean)):
        ranking.mean[j] = rest.mean[j]
    for c in range(len(rest.tally)):
        ranking.tally[c] = rest.tally[c]
    for h in range(len(rest.squares)):
        ranking.squares[h] = ranking.products[h] = rest.squares[h]
    ranking.rows[0] = rest.rows[0]
    m = 0
    for i in range(len(value)):
        if weight[i] > 0:
            item[m] = i
            distance[m] = -np.sqrt(_from_centroid(value, i, rest))
            m += 1
    size = min(m, max(m // part, 64))
    select(distance, item, 0, m, size)
    sort(distance, item, size)
    for place in range(size):
        distance[place] = -distance[place]
    ranking.span[BEGIN], ranking.span[END], ranking.span[N_LEFT] = 0, size, m
    ranking.n_looks[0] = 0


@njit_in_place
def _from_centroid(value: Floats, i: int, rest: TupleRest) -> float:
    """The squared distance of tuple i from the centroid of the rest."""
    n, p = rest.rows[0], len(rest.mean)
    result = 0.0
    for j in range(p):
        gap = value[i, j] - rest.mean[j]
        result += gap * gap
    for h in range(len(rest.spread)):
        result += rest.spread[h] - rest.tally[rest.start[h] + int(value[i, p + h])] / n
    return max(result, 0.0)

"""A lower bound of the sum of squares within cells of at least k rows.

**Prices.** Give each row a price, so that any k rows together cost at most their SSE, the sum of
their squared distances from their mean. Then all n rows together cost at most the SSE of any
division into cells of at least k rows.

Proof. Let S be a cell of s >= k rows, with the price p(S). SSE(S) is the sum of the squared
distances of its pairs, over s. Take the mean over all sets T of k rows of S. A pair is in a share
k(k - 1) / (s(s - 1)) of these sets, and a row in a share k / s. So the mean of SSE(T) is
SSE(S) (k - 1) / (s - 1), and the mean of p(T) is p(S) k / s. Since SSE(T) >= p(T), SSE(S) is at
least p(S) times k(s - 1) / (s(k - 1)), which is 1 or more. So SSE(S) >= p(S) if p(S) is positive;
if not, SSE(S) >= 0 >= p(S). The cells of a division have each row once, so their prices add up to
that of all rows.

**The nearest rows.** Let the price of a row be the sum of the k - 1 least squared distances to
other rows, over 2k. This is allowed: the SSE of k rows is, summed over the rows, that of the
distances to the k - 1 others, over 2k.

**The linear program.** The best prices are the dual of a linear program: cover each row once by
sets of k rows at the least SSE, fractions allowed. It is solved by column generation. A round
solves it for the sets known so far, takes prices between the best ones and the dual, searches for
sets that cost more than their SSE, and lowers prices until there are none. What is left is allowed,
whatever the solver did and wherever a search ended early. So each round has a valid bound.

References: O. du Merle, P. Hansen, B. Jaumard, N. Mladenovic, An interior point algorithm for
minimum sum-of-squares clustering, SIAM Journal on Scientific Computing 21(4), 1999 (columns for
another clustering); W. Ben-Ameur, J. Neto, Acceleration of cutting-plane and column generation
algorithms, Networks 49(1), 2007 (prices between). That sets of k rows are enough is shown above.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from anonlib.arrays import Floats, Ints

#: The most rows and the largest k for the linear program.
MOST_ROWS = 1500
MOST_K = 5
#: The most rounds.
ROUNDS = 80
#: Rounds end when the bound is this near to the optimum of the linear program.
GAP = 1e-4
#: The most choices in the search of a row.
NODES = 2000
#: How much k rows may cost above their SSE, as a share of the mean price of k rows by the nearest
#: rows. The bound takes it off.
TOLERANCE = 1e-9
#: Room for the sets that a search of all rows finds, per row.
SETS_PER_ROW = 4

#: How a bound was found: the optimum of the linear program up to GAP; rounds that ended before;
#: the nearest rows.
LP, CUT_SHORT, NEAREST = range(3)


class SquaresBound(NamedTuple):
    """A lower bound of a sum of squares, and how it was found: LP, CUT_SHORT or NEAREST."""

    value: float
    kind: int


def bound_squares(x: Floats, k: int, cell_id: Ints) -> SquaresBound:
    """A lower bound of the sum of squares of any division into cells of at least k rows.

    Cost: that of k nearest neighbours. With at most MOST_ROWS rows and k up to MOST_K, up to ROUNDS
    rounds: a search for each row, and a linear program of n rows and some n columns.

    Args:
        x: float64[n, p]. The rows.
        k: The fewest rows of a cell.
        cell_id: int64[n]. Cells, to begin with. They change the bound only where rounds end early.
    """
    n = len(x)
    if not x.shape[1]:
        return SquaresBound(0.0, LP)
    if n < 2 * k:
        return SquaresBound(_within(x), LP)
    if k < 2:
        return SquaresBound(0.0, LP)
    start = price_nearest(x, k)
    if start.sum() == 0.0:
        return SquaresBound(0.0, LP)
    if n > MOST_ROWS or k > MOST_K:
        return SquaresBound(float(start.sum()) * (1 - TOLERANCE), NEAREST)
    return _run_rounds(x, k, cell_id, start)


def price_nearest(x: Floats, k: int) -> Floats:
    """float64[n]. 1 / (2k) of the sum of each row's k - 1 least squared distances to other rows."""
    from scipy.spatial import cKDTree

    distances, _ = cKDTree(x).query(x, k)  # a row, or its twin, is the nearest of itself
    prices: Floats = (distances**2).sum(axis=1) / (2 * k)
    return prices


def _run_rounds(x: Floats, k: int, cell_id: Ints, start: Floats) -> SquaresBound:
    from anonlib.loss._bound_core import lower_prices

    n = len(x)
    share = _squared_distances(x) / k
    ascending = np.sort(share + np.diag(np.full(n, np.inf)), axis=1)[:, : k - 1]
    near = np.zeros((n, k))
    np.cumsum(ascending / 2, axis=1, out=near[:, 1:])
    program = _Program(share * k)
    program.add(np.flatnonzero(cell_id == cell) for cell in np.unique(cell_id))
    program.add([np.arange(n), *np.argsort(share, axis=1, kind="stable")[:, :k]])
    tolerance = TOLERANCE * k * start.mean()
    found = np.empty((SETS_PER_ROW * n, k), np.int64)
    best, optimum = start, np.inf
    for _ in range(ROUNDS):
        optimum, duals = program.solve()
        if best.sum() >= (1 - GAP) * optimum:
            break
        for weight in (0.5, 1.0):
            prices = best + weight * (duals - best)
            order = np.argsort(prices, kind="stable")
            n_found = lower_prices(share, near, prices, order, tolerance, NODES, found)
            if prices.sum() > best.sum():
                best = prices
            if is_new := program.add(found[:n_found]):
                break
        if not is_new:
            break
    value = max(0.0, float(best.sum()) - tolerance * n / k)
    return SquaresBound(value, LP if value >= (1 - GAP) * optimum else CUT_SHORT)


class _Program:
    """The linear program that covers each row once by sets of rows, at the least cost."""

    def __init__(self, distances: Floats) -> None:
        """distances: float64[n, n]. The squared distances."""
        self._distances = distances
        self._cost: dict[tuple[int, ...], float] = {}

    def add(self, sets: Iterable[Ints]) -> bool:
        """Adds sets. Returns whether one of them is new."""
        before = len(self._cost)
        for rows in sets:
            ordered = np.sort(rows)
            key = tuple(ordered.tolist())
            if key not in self._cost:
                pairs = self._distances[np.ix_(ordered, ordered)]
                self._cost[key] = float(pairs.sum() / (2 * len(key)))
        return len(self._cost) > before

    def solve(self) -> tuple[float, Floats]:
        """The least cost, and the dual of each row. The cost is infinite, and duals are 0, if the
        solver fails."""
        from scipy.optimize import linprog
        from scipy.sparse import csc_matrix

        n = len(self._distances)
        rows = np.concatenate([np.array(key) for key in self._cost])
        ends = np.cumsum([0, *map(len, self._cost)])
        cover = csc_matrix((np.ones(len(rows)), rows, ends), shape=(n, len(self._cost)))
        cost = np.fromiter(self._cost.values(), np.float64)
        solved = linprog(cost, A_eq=cover, b_eq=np.ones(n), method="highs-ipm")
        if solved.status != 0:
            return np.inf, np.zeros(n)
        return float(solved.fun), np.asarray(solved.eqlin.marginals, np.float64)


def _squared_distances(x: Floats) -> Floats:
    squared = np.zeros((len(x), len(x)))
    for column in x.T:
        squared += (column[:, None] - column) ** 2
    return squared


def _within(x: Floats) -> float:
    """The sum of squares about the mean."""
    return float(((x - x.mean(axis=0)) ** 2).sum()) if len(x) else 0.0

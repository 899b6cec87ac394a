"""The compiled core of optimal cells along an order: a shortest path over its rows."""

import numpy as np

from anonlib.arrays import Codes, Floats, Ints
from anonlib.compiled import njit


@njit
def find_shortest_path(
    numeric: Floats, nominal: Codes, n_categories: Ints, order: Ints, k: int
) -> Ints:
    """int64[n]. The cell of each row.

    Cells are runs of k to 2k - 1 rows in this order, with the least sum of squared distances from
    their centroids. Ties go to the way whose last cell has fewest rows, then whose cell before that
    has fewest, and so on.

    For the first `stop` rows, the last cell is extended row by row from its end to its beginning.
    It sums differences from its last row, which round less than the values themselves.
    """
    n, p, q = len(order), numeric.shape[1], nominal.shape[1]
    start = np.zeros(q + 1, np.int64)
    for h in range(q):
        start[h + 1] = start[h] + n_categories[h]
    tally, total = np.zeros(start[q], np.int64), np.empty(p)
    least, begin = np.full(n + 1, np.inf), np.zeros(n + 1, np.int64)
    least[0] = 0.0
    for stop in range(k, n + 1):
        last, squares, alike = order[stop - 1], 0.0, 0
        total[:] = 0.0
        low = max(stop - 2 * k + 1, 0)
        for i in range(stop - 1, low - 1, -1):
            row, m = order[i], stop - i
            for j in range(p):
                gap = numeric[row, j] - numeric[last, j]
                total[j] += gap
                squares += gap * gap
            for h in range(q):
                c = start[h] + nominal[row, h]
                alike += 2 * tally[c] + 1
                tally[c] += 1
            if m >= k and least[i] < np.inf:
                loss = _loss(squares, total, q * m * m - alike, m)
                if least[i] + loss < least[stop]:
                    least[stop], begin[stop] = least[i] + loss, i
        for i in range(low, stop):
            for h in range(q):
                tally[start[h] + nominal[order[i], h]] = 0
    return _runs(begin, order)


@njit
def _loss(squares: float, total: Floats, unlike: int, m: int) -> float:
    """The sum of squared distances of m rows from their centroid.

    squares, total: the sum of squares, and the sums, of the numeric columns. unlike: the ordered
    pairs of rows that differ, summed over the nominal columns.
    """
    result = squares
    for j in range(len(total)):
        result -= total[j] * total[j] / m
    return float(max(result, 0.0) + unlike / (2 * m))


@njit
def _runs(begin: Ints, order: Ints) -> Ints:
    """The cells of the path to the last row. A cell that ends before `stop` begins at
    begin[stop]."""
    cell = np.empty(len(order), np.int64)
    stop, number = len(order), 0
    while stop > 0:
        for i in range(begin[stop], stop):
            cell[order[i]] = number
        stop = begin[stop]
        number += 1
    return cell

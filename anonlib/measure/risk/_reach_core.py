"""The compiled core of searches for near rows: adds up distances by column, and stops early."""

import numpy as np

from anonlib.arrays import Codes, Floats, Ints
from anonlib.compiled import njit

#: Every such tuple is looked at first, for a distance that rules out most others.
PROBE = 31


@njit
def nearest(
    distance: Floats, start: Ints, place: Codes, after: Codes, bound: Floats
) -> tuple[Floats, Ints, Codes]:
    """The tuples that are nearest to persons. Cost: O(p t c) at worst; far less where the first
    columns rule out many tuples at once.

    Args:
        distance: float64[p, d]. The squared distances of p persons from the distinct values of all
            columns, side by side. They are multiples of one number, so that sums are exact.
        start: int64[c]. Where the values of each column begin.
        place: int32[t, c]. The distinct value of each of t tuples, in each column. Tuples are in
            ascending order.
        after: int32[c, t]. By column and tuple: the next tuple that differs from it in this column
            or in one before; t if there is none.
        bound: float64[p]. Tuples at a larger distance don't count.

    Returns:
        float64[p]. The least sum of squared distances of each person; inf if no tuple counts.
        int64[p + 1]. Where the tuples of each person begin and end in the next array.
        int32. The tuples that have it, person by person, ascending.
    """
    p, (t, c) = len(distance), place.shape
    least, end = np.full(p, np.inf), np.zeros(p + 1, np.int64)
    found = np.empty(t + p, np.int32)
    for i in range(p):
        best, n = bound[i], end[i]
        if n + t > len(found):  # room for all tuples, should they be equally near
            larger = np.empty(2 * n + t, np.int32)
            larger[:n] = found[:n]
            found = larger
        for j in range(0, t, PROBE):
            away = 0.0
            for k in range(c):
                away += distance[i, start[k] + place[j, k]]
            best = min(best, away)
        j = 0
        while j < t:
            away, k = 0.0, 0
            while k < c:
                away += distance[i, start[k] + place[j, k]]
                if away > best:
                    break
                k += 1
            if k < c:
                j = after[k, j]
                continue
            if away < best:
                best, n = away, end[i]
            found[n] = j
            n += 1
            j += 1
        end[i + 1] = n
        if n > end[i]:
            least[i] = best
    return least, end, found[: end[p]]

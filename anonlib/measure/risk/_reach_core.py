"""The compiled core of searches for near rows: adds up distances by column, and stops early."""

import numpy as np

from anonlib.arrays import Bools, Codes, Floats, Ints
from anonlib.compiled import njit


@njit
def nearest(distance: Floats, start: Ints, place: Codes) -> tuple[Floats, Bools]:
    """The tuples that are nearest to persons. Cost: O(p t c), less where distances grow early.

    Args:
        distance: float64[p, d]. The squared distances of p persons from the distinct values of all
            columns, side by side. They are multiples of one number, so that sums are exact.
        start: int64[c]. Where the values of each column begin.
        place: int32[t, c]. The distinct value of each of t tuples, in each column.

    Returns:
        float64[p]. The least sum of squared distances of each person; inf without tuples.
        bool[p, t]. Which tuples have it.
    """
    p, (t, c) = len(distance), place.shape
    least = np.full(p, np.inf)
    near = np.zeros((p, t), np.bool_)
    total = np.empty(t)
    for i in range(p):
        best = np.inf
        for j in range(t):
            away = 0.0
            for k in range(c):
                away += distance[i, start[k] + place[j, k]]
                if away > best:
                    break
            total[j] = away
            best = min(best, away)
        for j in range(t):
            near[i, j] = total[j] == best
        least[i] = best
    return least, near

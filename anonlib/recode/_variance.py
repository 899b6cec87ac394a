"""Centroids moved apart, so that a column keeps its variance."""

from math import fsum

import numpy as np

from anonlib.arrays import Floats
from anonlib.recode.grouped import GroupedValues

#: Means that differ by this share of the largest value may differ by rounding alone, which the
#: factor would blow up.
ALIKE = 1e-9


def rescale_means(grouped: GroupedValues, values: Floats, mean: Floats) -> Floats | None:
    """float64[g]: the means of the g cells, rescaled about the mean of all values; None where that
    changes nothing, since no value differs from its cell's mean, and where it can't be done: no
    mean differs from another (by more than ALIKE), or a value is infinite.

    values: float64[c], as in `grouped`, and mean: float64[g]. With T the sum of squares about the
    mean of all, W that within the cells and B = T - W that between them, the factor is
    sqrt(T / B) = sqrt(1 + W / B): the released values have the mean and the variance of the
    present ones. Cost O(c).
    """
    if not np.isfinite(mean).all():
        return None
    # In units of a power of two, so that no square overflows.
    exponent = np.frexp(np.abs(values).max())[1]
    x, m = np.ldexp(values, -exponent), np.ldexp(mean, -exponent)
    # fsum: the same in any order of rows.
    center = fsum((grouped.count * m).tolist()) / len(x)
    within = fsum(((x - m[grouped.cell]) ** 2).tolist())
    between = fsum((grouped.count * (m - center) ** 2).tolist())
    if within == 0 or between <= len(x) * ALIKE**2:
        return None
    moved = m + (np.sqrt(1 + within / between) - 1) * (m - center)
    largest = np.finfo(np.float64).max
    with np.errstate(over="ignore"):
        result: Floats = np.clip(np.ldexp(moved, exponent), -largest, largest)
    return result

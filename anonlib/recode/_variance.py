"""Moves the means of cells apart, so that a column keeps its variance."""

from itertools import pairwise
from math import fsum

import numpy as np

from anonlib.arrays import Floats, Ints
from anonlib.recode.grouped import GroupedValues

#: Means that differ by less than this share of the largest value may differ by rounding alone. The
#: factor would inflate that.
ALIKE = 1e-9


def rescale_means(groups: GroupedValues, values: Floats, mean: Floats) -> Floats:
    """Rescales the means of the cells of each block about the mean of the block's values.

    The sum of squares about the mean of a block's values is T, the sum within its cells is W, and
    the sum between them is B = T - W. The factor is sqrt(T / B) = sqrt(1 + W / B). So the released
    values of a block have the mean and the variance of its present values. Cost O(c).

    Args:
        groups: c present values of g cells.
        values: float64[c]. The same values as numbers.
        mean: float64[g]. The mean of each cell.

    Returns:
        float64[g]. The rescaled means. NaN in blocks where all values equal their cell's mean,
        where the means don't differ by more than ALIKE, or where a value is infinite.
    """
    first = np.unique(groups.block, return_index=True)[1].tolist()
    moved = np.full(len(mean), np.nan)
    for low, high in pairwise([*first, len(mean)]):
        count = groups.count[low:high]
        start = int(groups.start[low])
        own = values[start : start + int(count.sum())]
        moved[low:high] = _rescale(own, count, mean[low:high])
    return moved


def _rescale(values: Floats, count: Ints, mean: Floats) -> Floats | float:
    """The rescaled means of the cells of one block, or NaN.

    Args:
        values: float64[c]. The present values, cell after cell.
        count: int64[g]. The values of each cell.
        mean: float64[g]. The mean of each cell.
    """
    if not np.isfinite(mean).all():
        return np.nan
    # Scaled by a power of two, so that no square overflows.
    exponent = np.frexp(np.abs(values).max())[1]
    x, m = np.ldexp(values, -exponent), np.ldexp(mean, -exponent)
    # fsum gives the same sum in any order of rows.
    center = fsum((count * m).tolist()) / len(x)
    within = fsum(((x - np.repeat(m, count)) ** 2).tolist())
    between = fsum((count * (m - center) ** 2).tolist())
    if within == 0 or between <= len(x) * ALIKE**2:
        return np.nan
    moved = m + (np.sqrt(1 + within / between) - 1) * (m - center)
    largest = np.finfo(np.float64).max
    with np.errstate(over="ignore"):
        result: Floats = np.clip(np.ldexp(moved, exponent), -largest, largest)
    return result

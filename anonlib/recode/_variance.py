"""Moves the means of cells apart, so that a column keeps its variance."""

from math import fsum

import numpy as np

from anonlib.arrays import Floats
from anonlib.recode.grouped import GroupedValues

#: Means that differ by less than this share of the largest value may differ by rounding alone. The
#: factor would inflate that.
ALIKE = 1e-9


def rescale_means(groups: GroupedValues, values: Floats, mean: Floats) -> Floats | None:
    """Rescales the means of cells about the mean of all values.

    The sum of squares about the mean of all values is T, the sum within cells is W, and the sum
    between cells is B = T - W. The factor is sqrt(T / B) = sqrt(1 + W / B). So the released values
    have the mean and the variance of the present values. Cost O(c).

    Args:
        groups: c present values of g cells.
        values: float64[c]. The same values as numbers.
        mean: float64[g]. The mean of each cell.

    Returns:
        float64[g]. The rescaled means; None if all values equal their cell's mean, if the means
        don't differ by more than ALIKE, or if a value is infinite.
    """
    if not np.isfinite(mean).all():
        return None
    # Scaled by a power of two, so that no square overflows.
    exponent = np.frexp(np.abs(values).max())[1]
    x, m = np.ldexp(values, -exponent), np.ldexp(mean, -exponent)
    # fsum gives the same sum in any order of rows.
    center = fsum((groups.count * m).tolist()) / len(x)
    within = fsum(((x - m[groups.cell]) ** 2).tolist())
    between = fsum((groups.count * (m - center) ** 2).tolist())
    if within == 0 or between <= len(x) * ALIKE**2:
        return None
    moved = m + (np.sqrt(1 + within / between) - 1) * (m - center)
    largest = np.finfo(np.float64).max
    with np.errstate(over="ignore"):
        result: Floats = np.clip(np.ldexp(moved, exponent), -largest, largest)
    return result

"""The compiled core of target-aware trees: what cuts gain, and the parting of sorted rows.

Classes are judged by a measure f of how many rows each has, given as a table of integers, so that
sums are exact in any order: c log2(c) for entropy, c^2 for Gini's impurity.
"""

from typing import NamedTuple

import numpy as np

from anonlib.arrays import Bools, Codes, Floats, Ints
from anonlib.compiled import njit
from anonlib.partition.cuts import Singles

#: Information is counted in units of 2^-10 bits.
UNITS = 2.0**10
#: Less of a row's impurity than this is rounding.
ROUNDING = 1e-12


class Impurity(NamedTuple):
    """f: int64[rows + 1]; gini: whether it is of squares."""

    f: Ints
    gini: bool


def make_impurity(rows: int, gini: bool) -> Impurity:
    """The table of impurities for nodes of at most `rows` rows."""
    c = np.arange(rows + 1)
    f = c**2 if gini else np.rint(c * np.log2(np.maximum(c, 1)) * UNITS).astype(np.int64)
    return Impurity(f, gini)


@njit
def boundary_gains(
    order: Codes,
    value: Singles,
    label: Codes,
    guides: Bools,
    every: Ints,
    least: int,
    impurity: Impurity,
) -> Floats:
    """float64[n - 1]: what a cut after each of a node's n rows gains, 0 where none may be.

    order: int32[n], the node's rows by the column `value`: float32[m]. label: int32[m], classes;
    guides: bool[m], the rows that gains are measured on; every: int64[n_classes], how many of them
    the node has. A cut is between two values and leaves at least `least` rows, of all, on both
    sides. A gain is by how much rows times impurity falls. Cost O(n + n_classes).
    """
    f = impurity.f
    gains = np.zeros(len(order) - 1)
    left = np.zeros(len(every), np.int64)
    noise = _noise(len(every))
    whole, total = f[every].sum(), every.sum()
    below, sum_left, sum_right = 0, 0, whole
    for i in range(len(order) - least):
        row = order[i]
        if guides[row]:
            c = label[row]
            sum_left += f[left[c] + 1] - f[left[c]]
            sum_right += f[every[c] - left[c] - 1] - f[every[c] - left[c]]
            left[c] += 1
            below += 1
        if i + 1 >= least and value[order[i + 1]] > value[row]:
            above = total - below
            gains[i] = _gain(impurity, sum_left, sum_right, whole, below, above, noise)
    return gains


@njit
def side_gains(left: Ints, every: Ints, impurity: Impurity) -> Floats:
    """float64[s]: what s cuts gain, by the rows of each class on their left: int64[s, n_classes].
    Cost O(s n_classes)."""
    f, noise = impurity.f, _noise(len(every))
    whole, total = f[every].sum(), every.sum()
    gains = np.empty(len(left))
    for i in range(len(left)):
        sum_left, sum_right = f[left[i]].sum(), f[every - left[i]].sum()
        below = left[i].sum()
        gains[i] = _gain(impurity, sum_left, sum_right, whole, below, total - below, noise)
    return gains


@njit
def _noise(n_classes: int) -> int:
    """What the rounding of information can do alone: no gain."""
    return 3 * (n_classes + 1) // 2


@njit
def _gain(
    impurity: Impurity,
    sum_left: int,
    sum_right: int,
    whole: int,
    below: int,
    above: int,
    noise: int,
) -> float:
    """What a cut gains that leaves `below` and `above` rows; the sums are of f over the classes of
    each side and of the node."""
    if below == 0 or above == 0:
        return 0.0
    f, total = impurity.f, below + above
    if impurity.gini:
        rise = sum_left / below + sum_right / above - whole / total
        return rise if rise > ROUNDING * total else 0.0
    gain = sum_left + sum_right - whole + f[total] - f[below] - f[above]
    return float(gain) if gain > noise else 0.0


@njit
def boundary_deviations(
    order: Codes, value: Singles, target: Floats, guides: Bools, least: int
) -> Floats:
    """float64[n - 1]: by how much a cut after each row lowers the sum of squared deviations of the
    target, float64[m]; the rest as for `boundary_gains`."""
    gains = np.zeros(len(order) - 1)
    total, every = 0, 0.0
    for row in order:
        if guides[row]:
            total += 1
            every += target[row]
    below, left = 0, 0.0
    for i in range(len(order) - least):
        row = order[i]
        if guides[row]:
            below += 1
            left += target[row]
        if i + 1 >= least and value[order[i + 1]] > value[row]:
            gains[i] = deviation(below, left, total, every)
    return gains


@njit
def deviation(below: int, left: float, total: int, every: float) -> float:
    """By how much a cut of `total` rows, whose target sums to `every`, lowers its sum of squared
    deviations, with `below` rows and the sum `left` on the left."""
    above = total - below
    if below == 0 or above == 0:
        return 0.0
    gap = total * left - below * every
    return gap * gap / (float(below) * above * total)


@njit
def part_lines(order: Codes, start: int, stop: int, left: Bools) -> int:
    """Brings the rows that go left to the front of start..stop in every line of `order`, in the
    order they have; returns where the others begin. left: bool[m]. Cost O(lines (stop - start))."""
    rest = np.empty(stop - start, np.int32)
    middle = start
    for line in range(len(order)):
        middle, n = start, 0
        for i in range(start, stop):
            row = order[line, i]
            if left[row]:
                order[line, middle] = row
                middle += 1
            else:
                rest[n] = row
                n += 1
        order[line, middle:stop] = rest[:n]
    return middle

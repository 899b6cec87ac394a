"""The compiled core of target-aware trees: gains of cuts, and the partition of sorted rows.

Impurity is computed from f(c), where c is the number of rows of a class: c log2(c) for entropy, c^2
for Gini's impurity. f is a table of integers, so that sums are exact in any order.
"""

from typing import NamedTuple

import numpy as np

from anonlib.arrays import Bools, Codes, Floats, Ints
from anonlib.compiled import njit
from anonlib.partition.cuts import Singles

#: Units per bit: information is counted in units of 2^-10 bits.
UNITS = 2.0**10
#: Gini's impurity may seem to fall by this much per row by rounding alone.
ROUNDING = 1e-12


class Impurity(NamedTuple):
    """The measure of impurity.

    Attributes:
        f: int64[rows + 1]. f(c) for 0..rows rows of a class.
        gini: Whether f is c^2; else it is c log2(c) in UNITS.
    """

    f: Ints
    gini: bool


def make_impurity(rows: int, gini: bool) -> Impurity:
    """The impurity for nodes of at most `rows` rows."""
    c = np.arange(rows + 1)
    f = c**2 if gini else np.rint(c * np.log2(np.maximum(c, 1)) * UNITS).astype(np.int64)
    return Impurity(f, gini)


@njit
def find_boundary_gains(
    order: Codes,
    value: Singles,
    label: Codes,
    guides: Bools,
    every: Ints,
    least: int,
    impurity: Impurity,
) -> Floats:
    """The gain of each cut along a column, in a node of n rows. Cost O(n + n_classes).

    The gain is the fall of impurity, times the number of rows. A cut must lie between two distinct
    values.

    Args:
        order: int32[n]. The node's rows, sorted by `value`.
        value: float32[m]. The column.
        label: int32[m]. The class of each row.
        guides: bool[m]. Whether gains are measured on the row.
        every: int64[n_classes]. The node's guides of each class.
        least: The fewest rows of a side, guides or not.
        impurity: The measure of impurity.

    Returns:
        float64[n - 1]. The gain of the cut after each row; 0 where no cut is allowed.
    """
    f = impurity.f
    gains = np.zeros(len(order) - 1)
    left = np.zeros(len(every), np.int64)
    noise = _noise(len(every))
    sum_node, total = f[every].sum(), every.sum()
    below, sum_left, sum_right = 0, 0, sum_node
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
            gains[i] = _gain(impurity, sum_left, sum_right, sum_node, below, above, noise)
    return gains


@njit
def find_side_gains(left: Ints, every: Ints, impurity: Impurity) -> Floats:
    """The gain of each of s cuts. Cost O(s n_classes).

    Args:
        left: int64[s, n_classes]. The guides of each class on the left of each cut.
        every: int64[n_classes]. The node's guides of each class.
        impurity: The measure of impurity.

    Returns:
        float64[s]. The gains.
    """
    f, noise = impurity.f, _noise(len(every))
    sum_node, total = f[every].sum(), every.sum()
    gains = np.empty(len(left))
    for i in range(len(left)):
        sum_left, sum_right = f[left[i]].sum(), f[every - left[i]].sum()
        below = left[i].sum()
        gains[i] = _gain(impurity, sum_left, sum_right, sum_node, below, total - below, noise)
    return gains


@njit
def _noise(n_classes: int) -> int:
    """The largest gain of information that rounding alone can cause."""
    return 3 * (n_classes + 1) // 2


@njit
def _gain(
    impurity: Impurity,
    sum_left: int,
    sum_right: int,
    sum_node: int,
    below: int,
    above: int,
    noise: int,
) -> float:
    """The gain of a cut with `below` rows on its left and `above` on its right.

    `sum_left`, `sum_right` and `sum_node` are the sums of f over the classes of each side and of
    the node. A gain within rounding is 0.
    """
    if below == 0 or above == 0:
        return 0.0
    f, total = impurity.f, below + above
    if impurity.gini:
        rise = sum_left / below + sum_right / above - sum_node / total
        return rise if rise > ROUNDING * total else 0.0
    gain = sum_left + sum_right - sum_node + f[total] - f[below] - f[above]
    return float(gain) if gain > noise else 0.0


@njit
def find_boundary_deviations(
    order: Codes, value: Singles, target: Floats, guides: Bools, least: int
) -> Floats:
    """The gain of each cut along a column, for a numeric target.

    The gain is the fall of the sum of squared deviations of the target. target: float64[m]. Other
    arguments and the result are those of `find_boundary_gains`.
    """
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
            gains[i] = find_deviation_fall(below, left, total, every)
    return gains


@njit
def find_deviation_fall(below: int, left: float, total: int, every: float) -> float:
    """The fall of the sum of squared deviations of the target by a cut.

    Args:
        below: Rows on the left.
        left: The sum of the target on the left.
        total: Rows of the node.
        every: The sum of the target over the node.
    """
    above = total - below
    if below == 0 or above == 0:
        return 0.0
    gap = total * left - below * every
    return gap * gap / (float(below) * above * total)


@njit
def part_lines(order: Codes, start: int, stop: int, left: Bools) -> int:
    """Partitions the places start..stop - 1 of every line of `order`: rows that go left come first.

    Each side keeps its order. Cost O(lines (stop - start)).

    Args:
        order: int32[lines, m]. Rows in several orders; changed in place.
        start: The first place of the node.
        stop: The place after its last.
        left: bool[m]. Whether each row goes left.

    Returns:
        Where the rows that go right begin.
    """
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

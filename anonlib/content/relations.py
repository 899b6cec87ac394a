"""Whether two columns of the same rows say the same in other words: one-to-one, in order, on a
line. What chance explains is no relation."""

from bisect import bisect_right
from collections.abc import Sequence
from math import lgamma, log

import numpy as np

from anonlib.arrays import Bools, Floats, Ints

#: Chance makes a relation of codes less often than this.
RARE = 1e-9
#: Points are on a line if they are off it by at most this share of the spread of their values.
TOLERANCE = 1e-6
#: The percentiles between which values spread. A tenth of them may be off the line, and far away,
#: as codes of missing values are: those must not widen what is on it.
MIDDLE = (15, 85)


def measure_codes(a: Ints, b: Ints) -> float:
    """How far codes say the same: 1 where each of a has one of b, and the other way round; about 0
    for what chance explains, also where one code has most rows.

    Rows whose codes no other row has say nothing. It is 0 if most rows beside those of the most
    frequent pair are such ones, or if random orders of the codes would often be as good.

    Args:
        a: int64[n].
        b: int64[n].
    """
    n = len(a)
    (own, a), (others, b) = (np.unique(codes, return_inverse=True) for codes in (a, b))
    cells, n_cell = np.unique(a * len(others) + b, return_counts=True)
    i, j = cells // max(1, len(others)), cells % max(1, len(others))
    n_own, n_other = np.bincount(a, minlength=len(own)), np.bincount(b, minlength=len(others))
    told = (n_own[a] > 1) | (n_other[b] > 1)
    n_told, n_most = int(told.sum()), int(n_cell.max(initial=0))
    if 2 * (n_told - n_most) < n - n_most or min(_weigh_order(n_own), _weigh_order(n_other)) < -log(
        RARE
    ):
        return 0.0
    # Of each code one pair counts, the most frequent of it: a group of values is no code of each.
    order = np.argsort(-n_cell, kind="stable")
    best_own, best_other = (order[np.unique(c[order], return_index=True)[1]] for c in (i, j))
    best = np.intersect1d(best_own, best_other)
    best = best[n_cell[best] > 1]
    expected = float((n_own[i[best]] * n_other[j[best]]).sum()) / n / n
    return correct_chance(float(n_cell[best].sum()) / n_told, expected)


def measure_prediction(labels: Ints, values: Ints) -> float:
    """How well a label tells the value of a row: 1 if all rows of a label have one value, about 0
    if they agree by chance, also where one value has most rows. Rows with a label of their own are
    told by none.

    Args:
        labels: int64[n].
        values: int64[n].
    """
    n = len(labels)
    if not n:
        return 0.0
    labels, values = (np.unique(each, return_inverse=True)[1] for each in (labels, values))
    n_label, n_value = np.bincount(labels), np.bincount(values)
    told = values[n_label[labels] > 1]
    if not len(told):
        return 0.0
    cells, n_cell = np.unique(labels * len(n_value) + values, return_counts=True)
    most = np.zeros(len(n_label), np.int64)
    np.maximum.at(most, cells // len(n_value), n_cell)
    n_right = int(most[most > 1].sum())  # of two rows that differ, neither tells the other
    by_chance = float(np.bincount(told).max()) / len(told)
    return len(told) / n * correct_chance(n_right / len(told), by_chance)


def expect_equal(a: Ints, b: Ints, counts: Ints) -> float:
    """The share of rows where two columns have the same code by chance, if each kept its values in
    another order.

    Args:
        a: int64[m]. The codes of one column.
        b: int64[m]. The codes of the other, the same for the same values.
        counts: int64[m]. The rows with both.
    """
    values, place = np.unique(np.concatenate([a, b]), return_inverse=True)
    n = max(1, int(counts.sum()))
    own, others = (np.bincount(its, counts, len(values)) / n for its in np.split(place, 2))
    return float(own @ others)


def correct_chance(share: float, by_chance: float) -> float:
    """A share of rows, where 0 is what chance explains, and 1 is all of them."""
    return (share - by_chance) / (1 - by_chance) if by_chance < 1 else 0.0


def _weigh_order(counts: Ints) -> float:
    """The logarithm of the number of ways to part rows into sets of these sizes."""
    sizes = np.unique(counts, return_counts=True)[1]
    same = sum(lgamma(count + 1) for count in [*counts.tolist(), *sizes.tolist()])
    return lgamma(int(counts.sum()) + 1) - same


def measure_order(x: Floats, y: Floats) -> float:
    """How far y is a rising or falling function of x: 1 if in all rows; about 0 for what chance
    explains. Steps of y, as of rounded numbers, are one.

    x, y: float64[n], without NaN.
    """
    return max(_measure_rise(x, y), _measure_rise(x, -y))


def _measure_rise(x: Floats, y: Floats) -> float:
    # Different values of y where x is the same must not count as a rise.
    rising = y[np.lexsort((-y, x))]
    mixed = np.random.default_rng(0).permutation(rising)
    n = max(1, len(y))
    found, by_chance = (_count_rising(each.tolist()) / n for each in (rising, mixed))
    return correct_chance(found, by_chance)


def _count_rising(numbers: Sequence[float]) -> int:
    """The length of the longest part of a sequence that never falls."""
    ends: list[float] = []
    for number in numbers:
        place = bisect_right(ends, number)
        ends[place : place + 1] = [number]
    return len(ends)


def find_on_line(x: Floats, y: Floats) -> Bools:
    """bool[n]: the points on one line, which most of them are on if many are; none on a level one.

    x, y: float64[n]; NaN is on no line.
    """
    there = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
    none = np.zeros(len(x), np.bool_)
    x, y = x / 4, y / 4  # so that differences are finite, of the largest numbers too
    order = there[np.lexsort((y[there], x[there]))]
    half = len(order) // 2
    low, high = order[: len(order) - half], order[half:]
    apart = x[high] > x[low]
    if not apart.any():
        return none
    spread = float(np.subtract(*np.percentile(y[there], MIDDLE[::-1])))
    # Numbers beyond all floats, and what is computed of them, are on no line.
    with np.errstate(over="ignore", invalid="ignore"):
        slope = np.median((y[high] - y[low])[apart] / (x[high] - x[low])[apart])
        if not slope or not spread:
            return none
        rest = y[there] - slope * x[there]
        none[there] = np.abs(rest - np.median(rest)) <= TOLERANCE * spread
    return none

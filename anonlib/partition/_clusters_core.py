"""Bisecting k-means with a least size: the cluster whose split gains most is split in two, until
there are enough.

Distances are those of kernels: a nominal column is the indicators of its categories, scaled by the
square root of 1/2.
"""

from typing import NamedTuple

import numpy as np

from anonlib.arrays import Codes, Floats, Ints
from anonlib.compiled import njit, sort

#: Each side of a split has this share of the rows or more, so that the tree of splits is not deep.
SHARE = 1 / 64
#: Lloyd steps of a split.
STEPS = 4


class ClusterWork(NamedTuple):
    """n rows, in the order of their clusters; `order`: [n], a cluster is a run of it.

    lean: [n], by row, its squared distance from the first side of a split less that from the
    second, or that from one point. key, item: [n], scratch. Of both sides, rows: [2], how many;
    mean: [2, p], of the numeric columns; tally: [2, all categories], rows by category, column h
    from start[h] on, 0 between uses; spread: [2], the sum over the nominal columns of half of 1 +
    the sum of squared shares.
    """

    numeric: Floats
    nominal: Codes
    order: Ints
    lean: Floats
    key: Floats
    item: Ints
    rows: Ints
    mean: Floats
    tally: Ints
    start: Ints
    spread: Floats


@njit
def bisecting(numeric: Floats, nominal: Codes, n_categories: Ints, k: int, m: int) -> Ints:
    """int64[n]: the cluster of every row, of at most m clusters with k rows or more each.

    Fewer than m where no cluster has two different rows and 2k of them. Cost O(n (d + log n)) a
    level of the tree of splits, of which there are about log2(m), more where few rows lie far out;
    and O(m^2).
    """
    work = _make_work(numeric, nominal, n_categories)
    n = len(numeric)
    begin, middle, end = np.zeros(m, np.int64), np.zeros(m, np.int64), np.full(m, n)
    gain = np.zeros(m)
    middle[0], gain[0] = _split(work, 0, n, k)
    used = 1
    while used < m:
        best = np.argmax(gain[:used])
        if gain[best] <= 0.0:
            break
        begin[used], end[used], end[best] = middle[best], end[best], middle[best]
        for cluster in (best, used):
            middle[cluster], gain[cluster] = _split(work, begin[cluster], end[cluster], k)
        used += 1
    result = np.empty(n, np.int64)
    for cluster in range(used):
        for i in range(begin[cluster], end[cluster]):
            result[work.order[i]] = cluster
    return result


@njit
def _make_work(numeric: Floats, nominal: Codes, n_categories: Ints) -> ClusterWork:
    n, p, q = len(numeric), numeric.shape[1], nominal.shape[1]
    start = np.zeros(q + 1, np.int64)
    for h in range(q):
        start[h + 1] = start[h] + n_categories[h]
    return ClusterWork(
        numeric,
        nominal,
        np.arange(n),
        np.empty(n),
        np.empty(n),
        np.empty(n, np.int64),
        np.zeros(2, np.int64),
        np.zeros((2, p)),
        np.zeros((2, start[q]), np.int64),
        start,
        np.zeros(2),
    )


@njit
def _split(work: ClusterWork, a: int, b: int, k: int) -> tuple[int, float]:
    """Orders the run a..b so that the sides of its best split follow each other: where the second
    one begins, and by how much the sum of squares falls; (a, 0.0) where there is no split.

    Begins with the row farthest from the centroid, and the row farthest from that.
    """
    least = max(k, int(np.ceil(SHARE * (b - a))))
    if b - a < 2 * least:
        return a, 0.0
    _describe(work, 0, a, b)
    for i in range(a, b):
        work.lean[work.order[i]] = _from_centroid(work, work.order[i], 0)
    _count(work, 0, a, b, -1)
    first = _farthest(work, a, b)
    for i in range(a, b):
        work.lean[work.order[i]] = _apart(work, work.order[i], first)
    other = _farthest(work, a, b)
    if work.lean[other] == 0.0:
        return a, 0.0
    for i in range(a, b):
        work.lean[work.order[i]] -= _apart(work, work.order[i], other)
    middle = _divide(work, a, b, least)
    for _ in range(STEPS):
        _describe(work, 0, a, middle)
        _describe(work, 1, middle, b)
        for i in range(a, b):
            row = work.order[i]
            work.lean[row] = _from_centroid(work, row, 0) - _from_centroid(work, row, 1)
        _count(work, 0, a, middle, -1)
        _count(work, 1, middle, b, -1)
        middle = _divide(work, a, b, least)
    return middle, _gain(work, a, middle, b)


@njit
def _describe(work: ClusterWork, side: int, a: int, b: int) -> None:
    """Computes the centroid of a run as that of a side, and counts its categories."""
    work.rows[side] = b - a
    work.mean[side] = 0.0
    for i in range(a, b):
        for j in range(work.numeric.shape[1]):
            work.mean[side, j] += work.numeric[work.order[i], j]
    work.mean[side] /= b - a
    _count(work, side, a, b, 1)
    squares = 0
    for i in range(a, b):
        squares += _in_common(work, work.order[i], side)
    work.spread[side] = 0.5 * (work.nominal.shape[1] + squares / ((b - a) * (b - a)))


@njit
def _count(work: ClusterWork, side: int, a: int, b: int, step: int) -> None:
    """Adds `step` to the tally of a side for every category of every row of a run."""
    for i in range(a, b):
        for h in range(work.nominal.shape[1]):
            work.tally[side, work.start[h] + work.nominal[work.order[i], h]] += step


@njit
def _in_common(work: ClusterWork, row: int, side: int) -> int:
    """How many counted categories are those of a row."""
    result = 0
    for h in range(work.nominal.shape[1]):
        result += work.tally[side, work.start[h] + work.nominal[row, h]]
    return result


@njit
def _from_centroid(work: ClusterWork, row: int, side: int) -> float:
    """The squared distance of a row from the centroid of a side that is counted."""
    result = 0.0
    for j in range(work.numeric.shape[1]):
        gap = work.numeric[row, j] - work.mean[side, j]
        result += gap * gap
    return float(result + work.spread[side] - _in_common(work, row, side) / work.rows[side])


@njit
def _apart(work: ClusterWork, row: int, other: int) -> float:
    """The squared distance of two rows."""
    result = 0.0
    for j in range(work.numeric.shape[1]):
        gap = work.numeric[row, j] - work.numeric[other, j]
        result += gap * gap
    for h in range(work.nominal.shape[1]):
        result += work.nominal[row, h] != work.nominal[other, h]
    return result


@njit
def _farthest(work: ClusterWork, a: int, b: int) -> int:
    """The row of a run with the largest `lean`, the first of several."""
    best = work.order[a]
    for i in range(a + 1, b):
        if work.lean[work.order[i]] > work.lean[best]:
            best = work.order[i]
    return int(best)


@njit
def _divide(work: ClusterWork, a: int, b: int, least: int) -> int:
    """Orders a run by `lean`; where its second side begins.

    That is the boundary between two values, with `least` rows on both sides, after which the sum of
    squares of `lean` is lowest: other than at 0, rows that lie close together stay so where `least`
    moves it. The middle where there is none.
    """
    n, key, item = b - a, work.key[a:b], work.item[a:b]
    total = 0.0
    for i in range(n):
        item[i] = work.order[a + i]
        key[i] = work.lean[item[i]]
        total += key[i]
    sort(key, item, n)
    work.order[a:b] = item
    below, best, middle = 0.0, -1.0, a + n // 2
    for i in range(n - least):
        below += key[i]
        low, high = i + 1, n - i - 1
        if low >= least and key[i] < key[i + 1]:
            gap = below / low - (total - below) / high
            if gap * gap * low * high > best:
                best, middle = gap * gap * low * high, a + low
    return middle


@njit
def _gain(work: ClusterWork, a: int, middle: int, b: int) -> float:
    """What the sum of squares falls by: the distance of both centroids, times the product of the
    numbers of rows over their sum."""
    _describe(work, 0, a, middle)
    _describe(work, 1, middle, b)
    distance = work.spread[0] + work.spread[1] - work.nominal.shape[1]
    for j in range(work.numeric.shape[1]):
        gap = work.mean[0, j] - work.mean[1, j]
        distance += gap * gap
    common = 0
    for i in range(a, middle):
        common += _in_common(work, work.order[i], 1)
    pairs = work.rows[0] * work.rows[1]
    _count(work, 0, a, middle, -1)
    _count(work, 1, middle, b, -1)
    return float((distance - common / pairs) * pairs / (b - a))

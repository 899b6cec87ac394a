"""The compiled core of bisecting k-means with a least cluster size.

The cluster whose split gains most is split in two, until there are enough clusters. Distances are
those of kernels: a nominal column counts as the indicators of its categories, scaled by sqrt(1/2).
"""

from typing import NamedTuple

import numpy as np

from anonlib.arrays import Codes, Floats, Ints
from anonlib.compiled import njit, sort

#: The least share of a cluster's rows on each side of a split. It keeps the tree of splits flat.
SHARE = 1 / 64
#: Lloyd steps per split.
STEPS = 4


class ClusterWork(NamedTuple):
    """n rows sorted by cluster, and work space for splits.

    A split has two sides, 0 and 1.

    Attributes:
        numeric: float64[n, p]. The numeric columns.
        nominal: int32[n, q]. The codes of the nominal columns.
        order: int64[n]. Row numbers; the rows of a cluster are one run `a..b` of it.
        lean: float64[n]. For each row, its squared distance from side 0 minus that from side 1; or
            its squared distance from one point.
        key: float64[n]. Scratch.
        item: int64[n]. Scratch.
        rows: int64[2]. Rows on each side.
        mean: float64[2, p]. Means of the numeric columns on each side.
        tally: int64[2, all categories]. Rows per category on each side; 0 between uses.
        start: int64[q + 1]. Where each nominal column begins in a tally.
        spread: float64[2]. On each side, the sum over nominal columns of
            (1 + sum of squared shares of categories) / 2.
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
def bisect_clusters(numeric: Floats, nominal: Codes, n_categories: Ints, k: int, m: int) -> Ints:
    """Clusters n rows into at most m clusters of at least k rows.

    There are fewer than m clusters if no cluster is left to split. A cluster can be split only if
    it has 2k rows that are not all equal. Cost: O(n (d + log n)) per level of the tree of splits,
    plus O(m^2). There are about log2(m) levels, or more if a few rows lie far out.

    Args:
        numeric: float64[n, p]. The numeric columns.
        nominal: int32[n, q]. The codes of the nominal columns.
        n_categories: int64[q]. Categories of each nominal column.
        k: The fewest rows of a cluster.
        m: The most clusters.

    Returns:
        int64[n]. The cluster of each row.
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
    """Splits the run a..b in two, and orders it so that side 0 comes first.

    The first centres are the row farthest from the centroid, and the row farthest from that row.

    Returns:
        Where side 1 begins; a without a split.
        By how much the sum of squares falls; 0.0 without a split.
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
    """Makes the run a..b a side: computes its size, means, tally and spread."""
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
    """Adds `step` to a side's tally for every category of every row in a run."""
    for i in range(a, b):
        for h in range(work.nominal.shape[1]):
            work.tally[side, work.start[h] + work.nominal[work.order[i], h]] += step


@njit
def _in_common(work: ClusterWork, row: int, side: int) -> int:
    """The sum of a side's tally over the categories of a row."""
    result = 0
    for h in range(work.nominal.shape[1]):
        result += work.tally[side, work.start[h] + work.nominal[row, h]]
    return result


@njit
def _from_centroid(work: ClusterWork, row: int, side: int) -> float:
    """The squared distance of a row from a side's centroid. The side's tally must be set."""
    result = 0.0
    for j in range(work.numeric.shape[1]):
        gap = work.numeric[row, j] - work.mean[side, j]
        result += gap * gap
    return float(result + work.spread[side] - _in_common(work, row, side) / work.rows[side])


@njit
def _apart(work: ClusterWork, row: int, other: int) -> float:
    """The squared distance between two rows."""
    result = 0.0
    for j in range(work.numeric.shape[1]):
        gap = work.numeric[row, j] - work.numeric[other, j]
        result += gap * gap
    for h in range(work.nominal.shape[1]):
        result += work.nominal[row, h] != work.nominal[other, h]
    return result


@njit
def _farthest(work: ClusterWork, a: int, b: int) -> int:
    """The row of a run with the largest `lean`; the first of ties."""
    best = work.order[a]
    for i in range(a + 1, b):
        if work.lean[work.order[i]] > work.lean[best]:
            best = work.order[i]
    return int(best)


@njit
def _divide(work: ClusterWork, a: int, b: int, least: int) -> int:
    """Sorts a run by `lean`. Returns where side 1 begins.

    It chooses the boundary that makes the sum of squares of `lean` within the sides lowest. The
    boundary lies between two distinct values, and leaves at least `least` rows on both sides. (A
    boundary at 0, moved to leave `least` rows, could separate rows that lie close together.)
    Without such a boundary, side 1 begins in the middle.
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
    """By how much a split lowers the sum of squares.

    This is the squared distance of the centroids times n0 n1 / (n0 + n1), for n0 and n1 rows on
    the sides.
    """
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

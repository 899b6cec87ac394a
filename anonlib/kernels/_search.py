"""Exact search for the nearest and the farthest points in leaves.

One vectorised pass over the boxes computes bounds for all leaves. Then only leaves that can have
the answer are searched.

The squared distance of two points is a float64 sum in column order: (x - y)**2 for each numeric
column, then 1 for each nominal column in which they differ. A search of all points would give the
same results, because the bounds are safe:

- The lower bound is this same sum, with each difference replaced by a smaller one. Rounding is
  monotone, so the bound is not above any computed distance. A leaf differs in a nominal column if
  its box or the bits of its codes leave the point's code out.
- The upper bound is computed in another way, and has a margin for rounding.
"""

from typing import NamedTuple

import numpy as np

from anonlib.arrays import Floats, Ints
from anonlib.compiled import njit, njit_in_place
from anonlib.kernels._kd_tree import SIZE, KdLeaves

#: The relative margin of upper bounds: far above rounding errors, far below relevant differences.
MARGIN = 1e-9


@njit_in_place
def _bound_below(leaves: KdLeaves, point: Floats) -> None:
    """Sets `near`: the squared distances from `point` to the boxes of the leaves."""
    n_leaves = leaves.n_leaves[0]
    near, size = leaves.near, leaves.size
    for i in range(n_leaves):
        near[i] = 0.0 if size[i] > 0 else np.inf
    for j in range(leaves.p):
        low, high, x = leaves.low[j], leaves.high[j], point[j]
        for i in range(n_leaves):
            gap = max(low[i] - x, x - high[i], 0.0)
            near[i] += gap * gap
    for j in range(leaves.p, len(point)):
        low, high, codes, x = leaves.low[j], leaves.high[j], leaves.codes[j - leaves.p], point[j]
        bit = np.int64(1) << np.int64(int(x) & 63)
        for i in range(n_leaves):
            near[i] += 1.0 if x < low[i] or x > high[i] or codes[i] & bit == 0 else 0.0


@njit_in_place
def _bound_above(leaves: KdLeaves, point: Floats) -> None:
    """Sets `far`: the upper bounds of the squared distances from `point` to the points of leaves.

    |x - y|**2 = |x - c|**2 + |y - c|**2 - 2 (x - c)(y - c). The bound takes the largest |x - c| of
    the leaf and the smallest product in its box. It is tighter than the distance to the far corner
    of the box.
    """
    n_leaves = leaves.n_leaves[0]
    far, norm, size = leaves.far, leaves.norm, leaves.size
    own = 0.0
    for j in range(leaves.p):
        own += (point[j] - leaves.center[j]) ** 2
    for i in range(n_leaves):
        far[i] = (norm[i] + own) * (1.0 + MARGIN) if size[i] > 0 else -np.inf
    for j in range(leaves.p):
        low, high, c = leaves.low[j], leaves.high[j], leaves.center[j]
        double = 2.0 * (point[j] - c)
        for i in range(n_leaves):
            far[i] -= min((low[i] - c) * double, (high[i] - c) * double)
    for j in range(leaves.p, len(point)):
        low, high, x = leaves.low[j], leaves.high[j], point[j]
        for i in range(n_leaves):
            far[i] += 0.0 if x == low[i] and x == high[i] else 1.0


@njit_in_place
def measure_leaf(tile: Floats, point: Floats, p: int, distance: Floats) -> None:
    """Sets `distance` to the squared distances from `point` to the points of a leaf.

    Its free places get a number, too: loops of a fixed length are faster. So are two columns at a
    time, which read and write the distances half as often.

    Args:
        tile: float64[d, SIZE]. The leaf's points.
        point: float64[d]. The point.
        p: Numeric columns.
        distance: float64[SIZE]. The result; only the places of points mean anything.
    """
    for i in range(SIZE):
        distance[i] = 0.0
    for j in range(0, p - 1, 2):
        x, y = point[j], point[j + 1]
        for i in range(SIZE):
            gap, other = tile[j, i] - x, tile[j + 1, i] - y
            distance[i] = (distance[i] + gap * gap) + other * other
    if p % 2 == 1:
        x = point[p - 1]
        for i in range(SIZE):
            gap = tile[p - 1, i] - x
            distance[i] += gap * gap
    for j in range(p, len(point)):
        x = point[j]
        for i in range(SIZE):
            distance[i] += 1.0 if tile[j, i] != x else 0.0


@njit_in_place
def find_farthest(leaves: KdLeaves, point: Floats) -> int:
    """Returns the point farthest from `point`; of several, the lowest."""
    _bound_above(leaves, point)
    p, far, distance, size = leaves.p, leaves.far, leaves.distance, leaves.size
    tile, item = leaves.tile, leaves.item
    n_leaves = leaves.n_leaves[0]
    promising = 0
    for leaf in range(n_leaves):
        if far[leaf] > far[promising]:
            promising = leaf
    best, result = -1.0, -1
    for step in range(-1, n_leaves):
        leaf = step if step >= 0 else promising
        if far[leaf] >= best:
            measure_leaf(tile[leaf], point, p, distance)
            for i in range(size[leaf]):
                if distance[i] > best or (distance[i] == best and item[leaf, i] < result):
                    best, result = distance[i], item[leaf, i]
    return result


class Nearest(NamedTuple):
    """A list of points, nearest first; of equally near ones, the lowest first.

    Attributes:
        distance: float64[k + 1]. The squared distance of each point.
        item: int64[k + 1]. The number of each point.
        size: int64[1]. The places in use, which are the first ones.
        weight: int64[1]. The sum of the weights of the points.
    """

    distance: Floats
    item: Ints
    size: Ints
    weight: Ints


@njit
def make_nearest(k: int) -> Nearest:
    """An empty list for points with a total weight of k."""
    one = np.zeros(1, np.int64)
    return Nearest(np.empty(k + 1), np.empty(k + 1, np.int64), one, one.copy())


@njit_in_place
def find_nearest(leaves: KdLeaves, center: int, k: int, weight: Ints, nearest: Nearest) -> None:
    """Fills the list with the points nearest to point `center`, itself included.

    Their total weight is k or more; without the farthest of them, it is below k. Of equally far
    points, the lowest count as nearer.
    """
    point = leaves.value[center]
    _bound_below(leaves, point)
    p, near, distance, size = leaves.p, leaves.near, leaves.distance, leaves.size
    tile, item, order = leaves.tile, leaves.item, leaves.order
    nearest.size[0] = nearest.weight[0] = 0
    limit, within = np.inf, -1.0
    n = _around(leaves, leaves.home[center], k)
    for stage in range(3):
        if stage > 0:
            # Near leaves first: they lower the limit, so that few others need a search.
            above, within = within, (limit / 4.0 if stage == 1 else limit)
            n = _between(near, leaves.n_leaves[0], above, within, order)
        for place in range(n):
            leaf = order[place]
            if near[leaf] <= limit:
                measure_leaf(tile[leaf], point, p, distance)
                hits = 0
                for i in range(SIZE):
                    hits += distance[i] <= limit
                if hits == 0:  # Mostly. This loop looks at several places at once.
                    continue
                for i in range(size[leaf]):
                    if distance[i] <= limit:
                        limit = offer_point(nearest, distance[i], item[leaf, i], k, weight)


@njit_in_place
def _around(leaves: KdLeaves, home: int, k: int) -> int:
    """Lists in `order` leaves around `home` until they have k points together, or all are listed.

    Sets their `near` to -1. Returns their number.
    """
    low = high = home
    points = leaves.size[home]
    while points < k and high - low + 1 < leaves.n_leaves[0]:
        if high + 1 < leaves.n_leaves[0]:
            high += 1
            points += leaves.size[high]
        else:
            low -= 1
            points += leaves.size[low]
    for place in range(high - low + 1):
        leaves.order[place] = low + place
        leaves.near[low + place] = -1.0
    return high - low + 1


@njit_in_place
def _between(near: Floats, n_leaves: int, above: float, within: float, order: Ints) -> int:
    """Lists in `order` the leaves with above < near <= within. Returns their number."""
    n = 0
    for leaf in range(n_leaves):
        order[n] = leaf
        n += above < near[leaf] <= within
    return n


@njit_in_place
def offer_point(nearest: Nearest, distance: float, item: int, k: int, weight: Ints) -> float:
    """Adds a point to the list, and removes points that are no longer needed.

    Cost O(k). Up to k = 200 this is quicker than a heap, or as quick; at k = 1,000 a heap would be
    three times quicker, and few cells are made.

    Returns the largest distance that a further point may have.
    """
    far, points = nearest.distance, nearest.item
    i = nearest.size[0]
    while i > 0 and (distance < far[i - 1] or (distance == far[i - 1] and item < points[i - 1])):
        far[i], points[i] = far[i - 1], points[i - 1]
        i -= 1
    far[i], points[i] = distance, item
    size, total = nearest.size[0] + 1, nearest.weight[0] + weight[item]
    while total - weight[points[size - 1]] >= k:
        size -= 1
        total -= weight[points[size]]
    nearest.size[0], nearest.weight[0] = size, total
    return far[size - 1] if total >= k else np.inf

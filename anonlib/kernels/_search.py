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
from anonlib.kernels._kd_tree import KdLeaves

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
def measure_leaf(
    tile: Floats, leaf: int, size: int, point: Floats, p: int, distance: Floats
) -> None:
    """Sets distance[:size] to the squared distances from `point` to the points of a leaf."""
    for i in range(size):
        distance[i] = 0.0
    for j in range(p):
        x = point[j]
        for i in range(size):
            gap = tile[leaf, j, i] - x
            distance[i] += gap * gap
    for j in range(p, len(point)):
        x = point[j]
        for i in range(size):
            distance[i] += 1.0 if tile[leaf, j, i] != x else 0.0


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
            measure_leaf(tile, leaf, size[leaf], point, p, distance)
            for i in range(size[leaf]):
                if distance[i] > best or (distance[i] == best and item[leaf, i] < result):
                    best, result = distance[i], item[leaf, i]
    return result


class Nearest(NamedTuple):
    """A heap of points, the farthest on top (place 0).

    Attributes:
        distance: float64[k + 1]. The squared distance of each point.
        item: int64[k + 1]. The number of each point.
        size: int64[1]. The places in use, which are the first ones.
        weight: int64[1]. The sum of the weights of the points in the heap.
    """

    distance: Floats
    item: Ints
    size: Ints
    weight: Ints


@njit
def make_nearest(k: int) -> Nearest:
    """An empty heap for points with a total weight of k."""
    one = np.zeros(1, np.int64)
    return Nearest(np.empty(k + 1), np.empty(k + 1, np.int64), one, one.copy())


@njit_in_place
def find_nearest(leaves: KdLeaves, center: int, k: int, weight: Ints, heap: Nearest) -> None:
    """Fills the heap with the points nearest to point `center`, itself included.

    Their total weight is k or more; without the farthest of them, it is below k. Of equally far
    points, the lowest count as nearer.
    """
    point = leaves.value[center]
    _bound_below(leaves, point)
    p, near, distance, size = leaves.p, leaves.near, leaves.distance, leaves.size
    tile, item, order = leaves.tile, leaves.item, leaves.order
    heap.size[0] = heap.weight[0] = 0
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
                measure_leaf(tile, leaf, size[leaf], point, p, distance)
                for i in range(size[leaf]):
                    if distance[i] <= limit:
                        limit = offer_point(heap, distance[i], item[leaf, i], k, weight)


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
def offer_point(heap: Nearest, distance: float, item: int, k: int, weight: Ints) -> float:
    """Adds a point to the heap, and removes points that are no longer needed.

    Returns the largest distance that a further point may have.
    """
    i = heap.size[0]
    heap.size[0] += 1
    while i > 0:
        above = (i - 1) // 2
        if not _less(heap.distance[above], heap.item[above], distance, item):
            break
        heap.distance[i], heap.item[i] = heap.distance[above], heap.item[above]
        i = above
    heap.distance[i], heap.item[i] = distance, item
    heap.weight[0] += weight[item]
    while heap.weight[0] - weight[heap.item[0]] >= k:
        _pop(heap, weight)
    return heap.distance[0] if heap.weight[0] >= k else np.inf


@njit_in_place
def _pop(heap: Nearest, weight: Ints) -> None:
    """Removes the top."""
    heap.weight[0] -= weight[heap.item[0]]
    last = heap.size[0] - 1
    heap.size[0] = last
    distance, item = heap.distance[last], heap.item[last]
    i = 0
    while 2 * i + 1 < last:
        below = 2 * i + 1
        if below + 1 < last and _less(
            heap.distance[below], heap.item[below], heap.distance[below + 1], heap.item[below + 1]
        ):
            below += 1
        if not _less(distance, item, heap.distance[below], heap.item[below]):
            break
        heap.distance[i], heap.item[i] = heap.distance[below], heap.item[below]
        i = below
    heap.distance[i], heap.item[i] = distance, item


@njit_in_place
def _less(distance: float, item: int, other_distance: float, other_item: int) -> bool:
    """Whether the first point is nearer than the second."""
    return distance < other_distance or (distance == other_distance and item < other_item)

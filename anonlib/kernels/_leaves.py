"""Points in small leaves, each with bounds: exact search for the nearest and the farthest.

The leaves are the consecutive cells of a k-d tree, kept as one flat list: bounds of all leaves are
computed in one vectorised sweep, then only leaves that can hold an answer are looked into.

The squared distance of two points is the sum, in column order and in float64, of (x - y)**2 over
the numeric columns, then of 1 for each nominal column in which they differ. The same points are
found as by looking at every one: the lower bound is this same sum with each difference replaced
by a smaller one, and rounding is monotone, so it is below the computed distances; the upper bound
is computed otherwise and has a margin.
"""

from typing import NamedTuple

import numpy as np

from anonlib.block import Floats, Ints
from anonlib.kernels._numba import njit

#: Points in a leaf.
SIZE = 32
#: Relative margin of the upper bounds: far above what rounding can do, far below what matters.
MARGIN = 1e-9


class Leaves(NamedTuple):
    """m points with d columns, the first p numeric, the others codes; at most L leaves.

    value: [m, d]. tile: [L, d, SIZE], the points of each leaf by column, and item: [L, SIZE],
    which points they are; the first size[l] places of leaf l are in use. home: [m], the leaf of
    a point. low, high: [d, L], the box of a leaf; norm: [L], the largest squared numeric distance
    to `center` in it. used: [1], the number of leaves there are. near, far, order: [L] and
    distance: [SIZE] are for the searches.
    """

    p: int
    value: Floats
    tile: Floats
    item: Ints
    size: Ints
    home: Ints
    low: Floats
    high: Floats
    norm: Floats
    center: Floats
    near: Floats
    far: Floats
    distance: Floats
    order: Ints
    used: Ints


@njit
def make_leaves(value: Floats, p: int) -> Leaves:
    """Leaves with room for all points of `value`; `fill` puts points in."""
    m, d = value.shape
    most = (m + SIZE - 1) // SIZE
    return Leaves(
        p,
        value,
        np.empty((most, d, SIZE)),
        np.empty((most, SIZE), np.int64),
        np.empty(most, np.int64),
        np.empty(m, np.int64),
        np.empty((d, most)),
        np.empty((d, most)),
        np.empty(most),
        np.empty(d),
        np.empty(most),
        np.empty(most),
        np.empty(SIZE),
        np.empty(most, np.int64),
        np.zeros(1, np.int64),
    )


@njit
def fill(leaves: Leaves, weight: Ints) -> None:
    """Puts the points of positive weight into leaves. Cost O(m d log m)."""
    item = leaves.item.reshape(-1)
    n = 0
    for i in range(len(weight)):
        if weight[i] > 0:
            item[n] = i
            n += 1
    leaves.used[0] = (n + SIZE - 1) // SIZE
    _order(leaves, item, n)
    for j in range(leaves.p):
        total = 0.0
        for i in range(n):
            total += leaves.value[item[i], j]
        leaves.center[j] = total / n
    for leaf in range(leaves.used[0]):
        leaves.size[leaf] = min(SIZE, n - leaf * SIZE)
        _describe(leaves, leaf)


@njit
def _order(leaves: Leaves, item: Ints, n: int) -> None:
    """Orders item[:n] so that every SIZE in a row are a cell of the k-d tree."""
    key = np.empty(n)
    stack = np.empty((64, 2), np.int64)
    stack[0, 0], stack[0, 1] = 0, n
    depth = 1
    while depth > 0:
        depth -= 1
        start, stop = stack[depth, 0], stack[depth, 1]
        if stop - start <= SIZE:
            continue
        column = _widest(leaves, item[start:stop])
        for i in range(start, stop):
            key[i] = leaves.value[item[i], column]
        middle = start + (stop - start + 2 * SIZE - 1) // (2 * SIZE) * SIZE
        select(key, item, start, stop, middle)
        stack[depth, 0], stack[depth, 1] = start, middle
        stack[depth + 1, 0], stack[depth + 1, 1] = middle, stop
        depth += 2


@njit
def _widest(leaves: Leaves, item: Ints) -> int:
    """The column in which a few of these points differ most; a nominal one by 1 at most."""
    step = 1 + len(item) // (2 * SIZE)
    best, widest = 0, -1.0
    for j in range(leaves.value.shape[1]):
        low = high = leaves.value[item[0], j]
        for place in range(step, len(item), step):
            x = leaves.value[item[place], j]
            low, high = min(low, x), max(high, x)
        width = high - low if j < leaves.p else min(high - low, 1.0)
        if width > widest:
            best, widest = j, width
    return best


@njit
def select(key: Floats, item: Ints, start: int, stop: int, middle: int) -> None:
    """Reorders start..stop so that no key before `middle` is above one from there on."""
    while stop - start > 1:
        pivot = key[(start + stop) // 2]
        i, j = start, stop - 1
        while i <= j:
            while key[i] < pivot:
                i += 1
            while key[j] > pivot:
                j -= 1
            if i <= j:
                key[i], key[j] = key[j], key[i]
                item[i], item[j] = item[j], item[i]
                i += 1
                j -= 1
        if middle <= j:
            stop = j + 1
        elif middle >= i:
            start = i
        else:
            return


@njit
def sort(key: Floats, item: Ints, n: int) -> None:
    """Sorts the first n by key. Cost O(n log n)."""
    run = 1
    while run < n:
        run *= 2
    while run > 1:
        for start in range(0, n, run):
            stop, middle = min(start + run, n), start + run // 2
            if middle < stop:
                select(key, item, start, stop, middle)
        run //= 2


@njit
def _describe(leaves: Leaves, leaf: int) -> None:
    """Writes the tile, the box and the norm of a leaf."""
    d = leaves.value.shape[1]
    for i in range(leaves.size[leaf]):
        leaves.home[leaves.item[leaf, i]] = leaf
        leaves.distance[i] = 0.0
    for j in range(d):
        low, high = np.inf, -np.inf
        for i in range(leaves.size[leaf]):
            x = leaves.value[leaves.item[leaf, i], j]
            leaves.tile[leaf, j, i] = x
            low, high = min(low, x), max(high, x)
            if j < leaves.p:
                leaves.distance[i] += (x - leaves.center[j]) ** 2
        leaves.low[j, leaf], leaves.high[j, leaf] = low, high
    leaves.norm[leaf] = leaves.distance[: leaves.size[leaf]].max()


@njit
def remove(leaves: Leaves, item: int) -> None:
    """Takes a point out of its leaf. The bounds stay: they hold for what is left."""
    leaf = leaves.home[item]
    last = leaves.size[leaf] - 1
    place = 0
    while leaves.item[leaf, place] != item:
        place += 1
    leaves.item[leaf, place] = leaves.item[leaf, last]
    for j in range(leaves.value.shape[1]):
        leaves.tile[leaf, j, place] = leaves.tile[leaf, j, last]
    leaves.size[leaf] = last


@njit
def _bound_below(leaves: Leaves, point: Floats) -> None:
    """Sets `near`: the squared distances from `point` to the boxes of the leaves."""
    used = leaves.used[0]
    near, size = leaves.near, leaves.size
    for i in range(used):
        near[i] = 0.0 if size[i] > 0 else np.inf
    for j in range(leaves.p):
        low, high, x = leaves.low[j], leaves.high[j], point[j]
        for i in range(used):
            gap = max(low[i] - x, x - high[i], 0.0)
            near[i] += gap * gap
    for j in range(leaves.p, len(point)):
        low, high, x = leaves.low[j], leaves.high[j], point[j]
        for i in range(used):
            near[i] += 1.0 if x < low[i] or x > high[i] else 0.0


@njit
def _bound_above(leaves: Leaves, point: Floats) -> None:
    """Sets `far`: no point of a leaf is farther from `point` than that (squared).

    |x - y|**2 = |x - c|**2 + |y - c|**2 - 2 (x - c)(y - c), with the largest |x - c| of the leaf
    and the smallest product in its box: closer than the far corner of the box.
    """
    used = leaves.used[0]
    far, norm, size = leaves.far, leaves.norm, leaves.size
    own = 0.0
    for j in range(leaves.p):
        own += (point[j] - leaves.center[j]) ** 2
    for i in range(used):
        far[i] = (norm[i] + own) * (1.0 + MARGIN) if size[i] > 0 else -np.inf
    for j in range(leaves.p):
        low, high, c = leaves.low[j], leaves.high[j], leaves.center[j]
        double = 2.0 * (point[j] - c)
        for i in range(used):
            far[i] -= min((low[i] - c) * double, (high[i] - c) * double)
    for j in range(leaves.p, len(point)):
        low, high, x = leaves.low[j], leaves.high[j], point[j]
        for i in range(used):
            far[i] += 0.0 if x == low[i] and x == high[i] else 1.0


@njit
def _measure(tile: Floats, leaf: int, size: int, point: Floats, p: int, distance: Floats) -> None:
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


@njit
def farthest(leaves: Leaves, point: Floats) -> int:
    """The point farthest from `point`, the lowest of several."""
    _bound_above(leaves, point)
    p, far, distance, size = leaves.p, leaves.far, leaves.distance, leaves.size
    tile, item = leaves.tile, leaves.item
    used = leaves.used[0]
    promising = 0
    for leaf in range(used):
        if far[leaf] > far[promising]:
            promising = leaf
    best, result = -1.0, -1
    for step in range(-1, used):
        leaf = step if step >= 0 else promising
        if far[leaf] >= best:
            _measure(tile, leaf, size[leaf], point, p, distance)
            for i in range(size[leaf]):
                if distance[i] > best or (distance[i] == best and item[leaf, i] < result):
                    best, result = distance[i], item[leaf, i]
    return result


class Nearest(NamedTuple):
    """A heap, farthest point on top: [k + 1] places, of which the first size[0] are in use;
    weight[0] is the sum of their points' weights."""

    distance: Floats
    item: Ints
    size: Ints
    weight: Ints


@njit
def make_nearest(k: int) -> Nearest:
    """An empty heap for the points that weigh k together."""
    one = np.zeros(1, np.int64)
    return Nearest(np.empty(k + 1), np.empty(k + 1, np.int64), one, one.copy())


@njit
def nearest(leaves: Leaves, center: int, k: int, weight: Ints, heap: Nearest) -> None:
    """Fills the heap with the nearest points to point `center`, itself first, that weigh k or more.

    Of points equally far the lowest count as nearer. Without the top, the weights are below k.
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
            # Close leaves first: they lower the limit, and few others need to be looked into.
            above, within = within, (limit / 4.0 if stage == 1 else limit)
            n = _between(near, leaves.used[0], above, within, order)
        for place in range(n):
            leaf = order[place]
            if near[leaf] <= limit:
                _measure(tile, leaf, size[leaf], point, p, distance)
                for i in range(size[leaf]):
                    if distance[i] <= limit:
                        limit = _offer(heap, distance[i], item[leaf, i], k, weight)


@njit
def _around(leaves: Leaves, home: int, k: int) -> int:
    """Lists in `order` the leaves about `home` that have k points together, or all that there
    are; their `near` becomes -1. Returns how many."""
    low = high = home
    points = leaves.size[home]
    while points < k and high - low + 1 < leaves.used[0]:
        if high + 1 < leaves.used[0]:
            high += 1
            points += leaves.size[high]
        else:
            low -= 1
            points += leaves.size[low]
    for place in range(high - low + 1):
        leaves.order[place] = low + place
        leaves.near[low + place] = -1.0
    return high - low + 1


@njit
def _between(near: Floats, used: int, above: float, within: float, order: Ints) -> int:
    """Lists in `order` the leaves with above < near <= within. Returns how many."""
    n = 0
    for leaf in range(used):
        order[n] = leaf
        n += above < near[leaf] <= within
    return n


@njit
def _offer(heap: Nearest, distance: float, item: int, k: int, weight: Ints) -> float:
    """Puts a point in and takes out those no longer needed.

    Returns the distance that a further point must not exceed.
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


@njit
def _pop(heap: Nearest, weight: Ints) -> None:
    """Takes the top out."""
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


@njit
def _less(distance: float, item: int, other_distance: float, other_item: int) -> bool:
    """Whether the first point is nearer than the second."""
    return distance < other_distance or (distance == other_distance and item < other_item)

"""Points in the leaves of a k-d tree, as one flat list; `_search` searches them."""

from typing import NamedTuple

import numpy as np

from anonlib.arrays import Floats, Ints
from anonlib.compiled import njit, njit_in_place, select

#: The most points of a leaf.
SIZE = 64


class KdLeaves(NamedTuple):
    """m points with d columns in at most L leaves.

    Attributes:
        p: Numeric columns; they come first, the others are codes.
        value: float64[m, d]. The points.
        tile: float64[L, d, SIZE]. The points of each leaf, by column; any numbers at free places.
        item: int64[L, SIZE]. The numbers of these points.
        size: int64[L]. The points of each leaf; they are at its first places.
        home: int64[m]. The leaf of each point.
        low: float64[d, L]. The lower corner of the box around each leaf.
        high: float64[d, L]. Its upper corner.
        codes: int64[d - p, L]. The codes in each leaf, modulo 64, as bits.
        norm: float64[L]. The largest squared distance of its points to `center`, in the numeric
            columns.
        center: float64[d]. The mean of the points, in the numeric columns.
        near: float64[L]. Scratch of searches.
        far: float64[L]. Scratch of searches.
        distance: float64[SIZE]. Scratch of searches.
        order: int64[L]. Scratch of searches.
        n_leaves: int64[1]. The leaves in use.
    """

    p: int
    value: Floats
    tile: Floats
    item: Ints
    size: Ints
    home: Ints
    low: Floats
    high: Floats
    codes: Ints
    norm: Floats
    center: Floats
    near: Floats
    far: Floats
    distance: Floats
    order: Ints
    n_leaves: Ints


@njit
def make_leaves(value: Floats, p: int) -> KdLeaves:
    """Empty leaves with room for all points of `value`; `fill_leaves` fills them."""
    m, d = value.shape
    most = (m + SIZE - 1) // SIZE
    return KdLeaves(
        p,
        value,
        np.zeros((most, d, SIZE)),
        np.empty((most, SIZE), np.int64),
        np.empty(most, np.int64),
        np.empty(m, np.int64),
        np.empty((d, most)),
        np.empty((d, most)),
        np.empty((d - p, most), np.int64),
        np.empty(most),
        np.empty(d),
        np.empty(most),
        np.empty(most),
        np.empty(SIZE),
        np.empty(most, np.int64),
        np.zeros(1, np.int64),
    )


@njit
def fill_leaves(leaves: KdLeaves, weight: Ints) -> None:
    """Distributes the points of positive weight to leaves. Cost O(m d log m)."""
    item = leaves.item.reshape(-1)
    n = 0
    for i in range(len(weight)):
        if weight[i] > 0:
            item[n] = i
            n += 1
    leaves.n_leaves[0] = (n + SIZE - 1) // SIZE
    _order(leaves, item, n)
    for j in range(leaves.p):
        total = 0.0
        for i in range(n):
            total += leaves.value[item[i], j]
        leaves.center[j] = total / n
    for leaf in range(leaves.n_leaves[0]):
        leaves.size[leaf] = min(SIZE, n - leaf * SIZE)
        _describe(leaves, leaf)


@njit
def _order(leaves: KdLeaves, item: Ints, n: int) -> None:
    """Orders item[:n] so that each run of SIZE is a leaf of the k-d tree."""
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


@njit_in_place
def _widest(leaves: KdLeaves, item: Ints) -> int:
    """The column with the widest range in a few of these points; at most 1 for a nominal one."""
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


@njit_in_place
def _describe(leaves: KdLeaves, leaf: int) -> None:
    """Writes the tile, the box and the norm of a leaf."""
    d = leaves.value.shape[1]
    for j in range(d):
        leaves.low[j, leaf], leaves.high[j, leaf] = np.inf, -np.inf
    for h in range(len(leaves.codes)):
        leaves.codes[h, leaf] = 0
    leaves.norm[leaf] = 0.0
    for i in range(leaves.size[leaf]):
        item = leaves.item[leaf, i]
        leaves.home[item] = leaf
        norm = 0.0
        for j in range(d):
            x = leaves.value[item, j]
            leaves.tile[leaf, j, i] = x
            leaves.low[j, leaf] = min(leaves.low[j, leaf], x)
            leaves.high[j, leaf] = max(leaves.high[j, leaf], x)
            if j < leaves.p:
                norm += (x - leaves.center[j]) ** 2
            else:
                leaves.codes[j - leaves.p, leaf] |= np.int64(1) << np.int64(int(x) & 63)
        leaves.norm[leaf] = max(leaves.norm[leaf], norm)


@njit_in_place
def remove(leaves: KdLeaves, item: int) -> None:
    """Removes a point from its leaf. The bounds stay: they hold for the remaining points."""
    leaf = leaves.home[item]
    last = leaves.size[leaf] - 1
    place = 0
    while leaves.item[leaf, place] != item:
        place += 1
    leaves.item[leaf, place] = leaves.item[leaf, last]
    for j in range(leaves.value.shape[1]):
        leaves.tile[leaf, j, place] = leaves.tile[leaf, j, last]
    leaves.size[leaf] = last

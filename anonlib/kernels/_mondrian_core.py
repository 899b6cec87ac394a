"""The compiled core of Mondrian: measures nodes and proposes cuts, many nodes in one call.

A node is a run start[i]..stop[i] of `value`, `weight` and `item`, which are reordered within it.
"""

import numpy as np

from anonlib.block import Floats, Ints
from anonlib.kernels._numba import njit

#: Above all item numbers.
EVERY = 2**62


@njit
def measure(
    value: Floats, weight: Ints, start: Ints, stop: Ints, scale: Floats, min_rows: int
) -> Floats:
    """float64[nodes, d], the range of each dimension as a share of its scale.

    -1 where the scale is 0, and in nodes of too few rows for two cells. value: float64[m, d].
    """
    d = value.shape[1]
    width = np.full((len(start), d), -1.0)
    low, high = np.empty(d), np.empty(d)
    for node in range(len(start)):
        rows = 0
        for i in range(start[node], stop[node]):
            rows += weight[i]
        if rows < 2 * min_rows:
            continue
        for j in range(d):
            low[j] = high[j] = value[start[node], j]
        for i in range(start[node] + 1, stop[node]):
            for j in range(d):
                low[j] = min(low[j], value[i, j])
                high[j] = max(high[j], value[i, j])
        for j in range(d):
            if scale[j] > 0.0:
                width[node, j] = (high[j] - low[j]) / scale[j]
    return width


@njit
def propose(
    value: Floats,
    weight: Ints,
    item: Ints,
    start: Ints,
    stop: Ints,
    width: Floats,
    min_rows: int,
    strict: bool,
) -> Ints:
    """int64[nodes], where the right side of each node's next cut begins; -1 without a cut.

    Tries the dimensions by descending width until both sides have min_rows rows; the widths of
    those tried become -1. The left side is put in front.
    """
    most = 0
    for node in range(len(start)):
        most = max(most, stop[node] - start[node])
    key, load = np.empty((2, most)), np.empty((2, most), np.int64)
    middle = np.full(len(start), -1, np.int64)
    for node in range(len(start)):
        a, b = start[node], stop[node]
        rows = weight[a:b].sum()
        while middle[node] < 0:
            j = widest(width[node])
            if j < 0 or (strict and width[node, j] == 0.0):
                break
            width[node, j] = -1.0
            middle[node] = cut(value, weight, item, a, b, j, rows, min_rows, strict, key, load)
    return middle


@njit
def widest(width: Floats) -> int:
    """The first dimension of the largest width; -1 where all are -1."""
    j, most = -1, -1.0
    for other in range(len(width)):
        if width[other] > most:
            j, most = other, width[other]
    return j


@njit
def cut(
    value: Floats,
    weight: Ints,
    item: Ints,
    a: int,
    b: int,
    j: int,
    rows: int,
    min_rows: int,
    strict: bool,
    key: Floats,
    load: Ints,
) -> int:
    """Cuts a node of so many rows in dimension j: where the right side begins, the left one in
    front; -1, and nothing moved, if a side had fewer than min_rows. key, load: [2, >= b - a]."""
    for i in range(a, b):
        key[0, i - a], load[0, i - a] = value[i, j], weight[i]
    if strict:
        bound, last, left = _boundary(key, load, b - a, rows)
    else:
        bound, last, left = _half(key, load, value[a:b, j], item[a:b], rows)
    if left < min_rows or rows - left < min_rows:
        return -1
    return divide(value, weight, item, a, b, j, bound, last)


@njit
def _boundary(key: Floats, load: Ints, n: int, rows: int) -> tuple[float, int, int]:
    """The boundary between distinct values with nearest to half of the rows on its left, the lower
    of two; no other has as many rows on its smaller side.

    Left are the values below the first result, and those equal to it if the second is not -1; the
    third is how many rows these are.
    """
    median, below, upto = _weighted_select(key, load, n, (rows + 1) // 2)
    if below > 0 and rows - 2 * below <= 2 * upto - rows:
        return median, -1, below
    return median, EVERY, upto


@njit
def _half(key: Floats, load: Ints, column: Floats, item: Ints, rows: int) -> tuple[float, int, int]:
    """The cut after half of the rows by (value, item), whatever the values.

    Left are the values below the first result, and those equal to it of items up to the second;
    the third is how many rows these are.
    """
    median, below, _ = _weighted_select(key, load, len(item), rows // 2)
    n = 0
    for i in range(len(item)):
        if column[i] == median:
            key[0, n], load[0, n] = item[i], 1
            n += 1
    last, _, _ = _weighted_select(key, load, n, rows // 2 - below)
    return median, int(last), rows // 2


@njit
def _weighted_select(key: Floats, load: Ints, n: int, target: int) -> tuple[float, int, int]:
    """The key at which the loads, summed by ascending key, first reach `target` (positive).

    With it, the sums of the loads below it and up to it. key, load: [2, >= n], given in row 0; the
    rest is scratch. Cost O(n).
    """
    source, start, below = 0, 0, 0
    while True:
        pivot = _median_of_three(
            key[source, start], key[source, start + n // 2], key[source, start + n - 1]
        )
        low, high, under, equal = 0, n - 1, 0, 0
        for i in range(start, start + n):
            # Without branches: written to both ends of the other row, kept at one of them or none.
            x, w = key[source, i], load[source, i]
            key[1 - source, low], load[1 - source, low] = x, w
            key[1 - source, high], load[1 - source, high] = x, w
            less, more = int(x < pivot), int(x > pivot)
            low += less
            high -= more
            under += less * w
            equal += (1 - less - more) * w
        source = 1 - source
        if below + under >= target:
            start, n = 0, low
        elif below + under + equal >= target:
            return pivot, below + under, below + under + equal
        else:
            below += under + equal
            start, n = high + 1, n - 1 - high


@njit
def _median_of_three(a: float, b: float, c: float) -> float:
    return max(min(a, b), min(max(a, b), c))


@njit
def divide(
    value: Floats, weight: Ints, item: Ints, a: int, b: int, j: int, bound: float, last: int
) -> int:
    """Puts the left side of a cut (see `_half`) in front; where the right side begins."""
    i, k = a, b - 1
    while True:
        while i <= k and (value[i, j] < bound or (value[i, j] == bound and item[i] <= last)):
            i += 1
        while i < k and not (value[k, j] < bound or (value[k, j] == bound and item[k] <= last)):
            k -= 1
        if i >= k:
            return i
        for c in range(value.shape[1]):
            value[i, c], value[k, c] = value[k, c], value[i, c]
        weight[i], weight[k] = weight[k], weight[i]
        item[i], item[k] = item[k], item[i]
        i += 1
        k -= 1

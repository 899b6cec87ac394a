"""The compiled core of Mondrian: measures nodes and proposes cuts, many nodes in one call.

Node i is the run start[i]..stop[i] - 1 of `value`, `weight` and `item`; cuts reorder it. With
hierarchies, a nominal dimension is cut into the children of a tree node.
"""

import numpy as np

from anonlib.arrays import Floats, Ints
from anonlib.compiled import njit
from anonlib.kernels._trees import Trees

#: Greater than all item numbers.
AFTER_ALL_ITEMS = 2**62


@njit
def measure_ranges(
    value: Floats, weight: Ints, start: Ints, stop: Ints, scale: Floats, min_rows: int
) -> Floats:
    """float64[nodes, d]. The range of each dimension / its scale.

    It is -1 where the scale is 0, and in nodes with fewer than 2 min_rows rows. value:
    float64[m, d].
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
def propose_cuts(
    value: Floats,
    weight: Ints,
    item: Ints,
    start: Ints,
    stop: Ints,
    width: Floats,
    min_rows: int,
    strict: bool,
) -> Ints:
    """int64[nodes]. Where the right side of each node's next cut begins; -1 without a cut.

    Tries the dimensions by descending width until both sides have min_rows rows. Sets the widths of
    tried dimensions to -1, and moves the left side to the front.
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
            j = find_widest(width[node])
            if j < 0 or (strict and width[node, j] == 0.0):
                break
            width[node, j] = -1.0
            middle[node] = cut(value, weight, item, a, b, j, rows, min_rows, strict, key, load)
    return middle


@njit
def find_widest(width: Floats) -> int:
    """The dimension of the largest width, the first of several; -1 if all widths are -1."""
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
    """Cuts the node of the items a..b - 1 in dimension j, and moves the left side to the front.

    Returns where the right side begins. If a side would have fewer than min_rows rows, it returns
    -1 and no item moves. key, load: scratch, [2, >= b - a].
    """
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
    """The boundary between distinct values whose left side comes nearest to half of the rows; of
    two, the lower one. No other boundary has more rows on its smaller side.

    Returns (bound, last, left). The left side has the values below `bound`, and those equal to it
    unless `last` is -1. `left` is the number of its rows.
    """
    median, below, upto = _weighted_select(key, load, n, (rows + 1) // 2)
    if below > 0 and rows - 2 * below <= 2 * upto - rows:
        return median, -1, below
    return median, AFTER_ALL_ITEMS, upto


@njit
def _half(key: Floats, load: Ints, column: Floats, item: Ints, rows: int) -> tuple[float, int, int]:
    """The cut after half of the rows, sorted by (value, item).

    Returns (bound, last, left). The left side has the values below `bound`, and the values equal to
    it of items up to `last`. `left` is the number of its rows.
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

    Returns (key, the sum of the loads below it, the sum of the loads up to it). key, load:
    [2, >= n]; row 0 is the input, the other is scratch. Cost O(n).
    """
    source, start, below = 0, 0, 0
    while True:
        pivot = _median_of_three(
            key[source, start], key[source, start + n // 2], key[source, start + n - 1]
        )
        low, high, under, equal = 0, n - 1, 0, 0
        for i in range(start, start + n):
            # Without branches: each key is written to both ends of the other row, and kept at one
            # end or none.
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
    """Moves the left side of a cut (see `_half`) to the front. Returns where the right begins."""
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


@njit
def measure_along(
    trees: Trees, value: Floats, start: Ints, stop: Ints, width: Floats, p: int
) -> None:
    """Replaces each positive width of a nominal dimension (p, p + 1, ...) by the loss of the lowest
    common ancestor of its codes. width: float64[nodes, d], from `measure_ranges`."""
    for node in range(len(start)):
        for j in range(p, width.shape[1]):
            if width[node, j] > 0.0:
                top = _ancestor(trees, j - p, value[start[node] : stop[node], j])
                width[node, j] = trees.loss[top]


@njit
def _ancestor(trees: Trees, column: int, codes: Floats) -> int:
    """The lowest common ancestor of some codes of a column."""
    low = high = codes[0]
    for code in codes:
        low, high = min(low, code), max(high, code)
    node = trees.start[column] + int(low)
    while trees.high[node] <= high:
        node = trees.parent[node]
    return int(node)


@njit
def propose_along(
    trees: Trees,
    value: Floats,
    weight: Ints,
    item: Ints,
    start: Ints,
    stop: Ints,
    width: Floats,
    min_rows: int,
    p: int,
) -> tuple[Ints, Ints]:
    """Proposes the next cut of each node.

    Tries the dimensions by descending width until all parts have min_rows rows, and sets the widths
    of tried dimensions to -1. The first p dimensions are cut at medians. The others are cut into
    the children of the lowest common ancestor of the node's codes; children without rows are no
    parts.

    Returns:
        int64[parts]. The node of each part, ascending.
        int64[parts]. Where each part begins.
    """
    most = (stop - start).max()
    key, load = np.empty((2, most)), np.empty((2, most), np.int64)
    child, rows_of = np.empty(most, np.int64), np.zeros(len(trees.parent), np.int64)
    of, begin = np.empty((stop - start).sum(), np.int64), np.empty((stop - start).sum(), np.int64)
    n = 0
    for node in range(len(start)):
        a, b = start[node], stop[node]
        rows, first = weight[a:b].sum(), n
        while n == first:
            j = find_widest(width[node])
            if j < 0 or width[node, j] == 0.0:
                break
            width[node, j] = -1.0
            if j < p:
                middle = cut(value, weight, item, a, b, j, rows, min_rows, True, key, load)
                if middle >= 0:
                    begin[n], begin[n + 1] = a, middle
                    n += 2
            elif _fits(trees, j - p, value[a:b, j], weight[a:b], min_rows, child, rows_of):
                order = np.argsort(child[: b - a], kind="mergesort")
                value[a:b], weight[a:b] = value[a:b][order], weight[a:b][order]
                item[a:b], found = item[a:b][order], child[order]
                for i in range(b - a):
                    if i == 0 or found[i] != found[i - 1]:
                        begin[n] = a + i
                        n += 1
        of[first:n] = node
    return of[:n], begin[:n]


@njit
def _fits(
    trees: Trees,
    column: int,
    codes: Floats,
    weight: Ints,
    min_rows: int,
    child: Ints,
    rows_of: Ints,
) -> bool:
    """Whether every child of the codes' lowest common ancestor has no rows, or at least min_rows.

    Writes to `child` the child at or above each code. rows_of: scratch, int64[nodes], zeros before
    and after.
    """
    top = _ancestor(trees, column, codes)
    for i in range(len(codes)):
        node = trees.start[column] + int(codes[i])
        while trees.parent[node] != top:
            node = trees.parent[node]
        child[i] = node
        rows_of[node] += weight[i]
    fits = True
    for i in range(len(codes)):
        fits &= rows_of[child[i]] >= min_rows
    for i in range(len(codes)):
        rows_of[child[i]] = 0
    return fits

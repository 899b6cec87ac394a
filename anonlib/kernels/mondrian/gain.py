"""The compiled core of Mondrian's cuts by information gain.

It finds the best boundary of each dimension, for many nodes in one call. Nodes are runs of items,
as in `anonlib.kernels.mondrian.core`.
"""

from typing import NamedTuple

import numpy as np

from anonlib.arrays import Codes, Floats, Ints
from anonlib.compiled import njit
from anonlib.kernels.mondrian.core import divide


class GainSearch(NamedTuple):
    """The m items and their target, for the search of boundaries.

    For a target of classes, each item has pairs (class, rows): item i has the pairs start[i] to
    start[i + 1] - 1. For a numeric target `start`, `label`, `rows` and `information` are empty.

    Attributes:
        rank: int32[d, m]. In each dimension, the rank of each item's value.
        order: int32[d, m]. In each dimension, the items of each node, sorted by rank.
        weight: int64[m]. The rows of each item.
        n_classes: Classes of the target; 0 for a numeric one.
        start: int64[m + 1]. Where the pairs of each item begin.
        label: int32[pairs]. The class of each pair.
        rows: int32[pairs]. The item's rows of that class.
        information: int64[n + 1]. c log2(c) in units of 2^-10, so that sums are exact.
        total: float64[m]. The sum of the numeric target over the rows of each item; empty for
            classes.
    """

    rank: Codes
    order: Codes
    weight: Ints
    n_classes: int
    start: Ints
    label: Codes
    rows: Codes
    information: Ints
    total: Floats


@njit
def find_gains(
    search: GainSearch, start: Ints, stop: Ints, width: Floats, min_rows: int
) -> tuple[Floats, Ints]:
    """The best boundary of each dimension of each node; of several, the lowest.

    Boundaries leave min_rows rows on both sides. Dimensions with width[node, dimension] <= 0 have
    no boundary.

    Returns:
        float64[nodes, d]. The gain of the best boundary; 0 if no boundary gains.
        int64[nodes, d]. The first item on its right side.
    """
    gain, bound = np.zeros(width.shape), np.full(width.shape, -1)
    classes = np.empty((2, search.n_classes), np.int64)
    for node in range(len(start)):
        a, b = start[node], stop[node]
        if not (width[node] > 0.0).any():
            continue
        content = 0
        if search.n_classes > 0:
            content = _content(search, a, b, classes[0])
            if content == 0:
                continue
        for j in range(width.shape[1]):
            if width[node, j] > 0.0:
                gain[node, j], bound[node, j] = (
                    _by_entropy(search, j, a, b, classes, content, min_rows)
                    if search.n_classes > 0
                    else _by_deviation(search, j, a, b, min_rows)
                )
    return gain, bound


@njit
def _content(search: GainSearch, a: int, b: int, classes: Ints) -> int:
    """The content of a node: its number of rows times the entropy of their classes. Writes the rows
    of each class to `classes`."""
    begin, label, rows = search.start, search.label, search.rows
    classes[:] = 0
    for i in search.order[0, a:b]:
        for pair in range(begin[i], begin[i + 1]):
            classes[label[pair]] += rows[pair]
    result = search.information[classes.sum()]
    for c in range(len(classes)):
        result -= search.information[classes[c]]
    return int(result)


@njit
def _by_entropy(
    search: GainSearch, j: int, a: int, b: int, classes: Ints, content: int, min_rows: int
) -> tuple[float, int]:
    """The most by which a boundary of dimension j lowers the content, and the item after it.

    classes: int64[2, n_classes]. The rows of each class in the node; scratch.
    """
    rank, weight, order, begin = search.rank[j], search.weight, search.order[j], search.start
    label, rows, information = search.label, search.rows, search.information
    every, left = classes[0], classes[1]
    left[:] = 0
    below, total = 0, every.sum()
    # The sum of c log2(c) over the classes of both sides.
    sides = 0
    for c in range(len(every)):
        sides += information[every[c]]
    # A gain must exceed what the rounding of `information` alone can make.
    noise = 3 * (len(every) + 1) // 2
    best, bound = noise, -1
    for place in range(a, b - 1):
        i = order[place]
        below += weight[i]
        for pair in range(begin[i], begin[i + 1]):
            c = label[pair]
            before, after = left[c], left[c] + rows[pair]
            sides += information[after] - information[before]
            sides += information[every[c] - after] - information[every[c] - before]
            left[c] = after
        if below >= min_rows and total - below >= min_rows:
            following = order[place + 1]
            if rank[following] > rank[i]:
                gain = content + sides - information[below] - information[total - below]
                if gain > best:
                    best, bound = gain, following
    return (float(best) if bound >= 0 else 0.0), bound


@njit
def _by_deviation(search: GainSearch, j: int, a: int, b: int, min_rows: int) -> tuple[float, int]:
    """The most by which a boundary of dimension j lowers the sum of squared deviations, and the
    item after it."""
    rank, weight, order, sums = search.rank[j], search.weight, search.order[j], search.total
    total, every = 0, 0.0
    for i in order[a:b]:
        total += weight[i]
        every += sums[i]
    best, bound = 0.0, -1
    below, left = 0, 0.0
    for place in range(a, b - 1):
        i = order[place]
        below += weight[i]
        left += sums[i]
        above = total - below
        if below >= min_rows and above >= min_rows:
            following = order[place + 1]
            if rank[following] > rank[i]:
                gap = above * left - below * (every - left)
                gain = gap * gap / (float(below) * above * total)
                if gain > best:
                    best, bound = gain, following
    return best, bound


@njit
def propose_best(
    value: Floats,
    weight: Ints,
    item: Ints,
    start: Ints,
    stop: Ints,
    gain: Floats,
    bound: Ints,
) -> Ints:
    """int64[nodes]. Where the right side of the cut of largest gain begins; -1 if no cut gains.

    Of dimensions with equal gains, the first is cut. Its gain is set to 0, and the left side is
    moved to the front.
    """
    middle = np.full(len(start), -1, np.int64)
    for node in range(len(start)):
        j = 0
        for other in range(gain.shape[1]):
            if gain[node, other] > gain[node, j]:
                j = other
        if gain[node, j] > 0.0:
            gain[node, j] = 0.0
            a, b = start[node], stop[node]
            place = a
            while item[place] != bound[node, j]:
                place += 1
            middle[node] = divide(value, weight, item, a, b, j, value[place, j], -1)
    return middle


@njit
def split_orders(search: GainSearch, item: Ints, start: Ints, middle: Ints, stop: Ints) -> None:
    """Splits `search.order` of nodes that were cut, just as `item` was split at `middle`."""
    order = search.order
    is_right = np.zeros(order.shape[1], np.bool_)
    right = np.empty(order.shape[1], np.int32)
    for node in range(len(start)):
        a, b = start[node], stop[node]
        for i in item[middle[node] : b]:
            is_right[i] = True
        for j in range(len(order)):
            row = order[j]
            kept, moved = a, 0
            for place in range(a, b):
                # Without branches: each item is written to both sides, and kept at one.
                i = row[place]
                row[kept] = right[moved] = i
                kept += not is_right[i]
                moved += is_right[i]
            row[kept:b] = right[:moved]

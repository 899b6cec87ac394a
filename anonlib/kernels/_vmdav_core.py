"""The compiled core of V-MDAV, on the distinct tuples of a block."""

from typing import NamedTuple

import numpy as np

from anonlib.arrays import Floats, Ints
from anonlib.compiled import njit
from anonlib.kernels._kd_tree import KdLeaves, fill_leaves, make_leaves, remove
from anonlib.kernels._mdav_core import REFILL
from anonlib.kernels._search import Nearest, find_nearest, make_nearest, measure_leaf


class RowRest(NamedTuple):
    """The rest (rows that are not in a cell yet), by tuple, and the cells of the other rows.

    Attributes:
        first: int64[m]. The first row of each tuple.
        weight: int64[m]. The rows of each tuple, which follow each other.
        left: int64[m]. The rows of each tuple that are not in a cell yet. They are its last rows.
        rows: int64[1]. The sum of `left`.
        cell: int64[n]. The cell of each row; -1 for none.
    """

    first: Ints
    weight: Ints
    left: Ints
    rows: Ints
    cell: Ints


class Group(NamedTuple):
    """The tuples of the cell that is being made.

    Attributes:
        item: int64[2k]. The tuples.
        size: int64[1]. The places of `item` in use, which are the first ones.
        low: float64[d]. The lower corner of the box around the tuples.
        high: float64[d]. Its upper corner.
        box: float64[2, d, L]. Scratch of searches: the boxes of leaves.
    """

    item: Ints
    size: Ints
    low: Floats
    high: Floats
    box: Floats


@njit
def make_vmdav_cells(
    value: Floats, p: int, outermost: Ints, first: Ints, weight: Ints, k: int, gain: float
) -> Ints:
    """Puts n rows with m distinct tuples into cells of k to 2k - 1 rows.

    Args:
        value: float64[m, p + q]. The distinct tuples: numeric columns, then codes.
        p: Numeric columns.
        outermost: int64[m]. The tuples in the order in which they begin cells.
        first: int64[m]. The first row of each tuple.
        weight: int64[m]. The rows of each tuple, which follow each other.
        k: The fewest rows of a cell.
        gain: gamma**2. A row joins a cell of k or more rows if its squared distance from the cell
            is below `gain` times its squared distance from the nearest other remaining row.

    Returns:
        int64[n]. The cell of each row; -1 for rows left over, at most k - 1.
    """
    n, d = weight.sum(), value.shape[1]
    rest = RowRest(first, weight, weight.copy(), np.full(1, n), np.full(n, -1, np.int64))
    leaves, nearest, pair = make_leaves(value, p), make_nearest(k), make_nearest(2)
    item, size = np.empty(2 * k, np.int64), np.zeros(1, np.int64)
    group = Group(item, size, np.empty(d), np.empty(d), np.empty((2, d, len(leaves.size))))
    filled, n_cells, place = 0, 0, 0
    while rest.rows[0] >= 2 * k:
        if filled == 0 or rest.rows[0] <= REFILL * filled:
            fill_leaves(leaves, rest.left)
            filled = rest.rows[0]
        while rest.left[outermost[place]] == 0:
            place += 1
        _begin(leaves, rest, outermost[place], k, nearest, group, n_cells)
        n_rows = k
        while gain > 0.0 and n_rows < 2 * k - 1:
            closest, near = _closest(leaves, group)
            find_nearest(leaves, closest, 2, rest.left, pair)
            # The second row is the last. Its distance is 0 if the tuple has two rows.
            if not near < gain * pair.distance[pair.size[0] - 1]:
                break
            _take(leaves, rest, closest, 1, group, n_cells)
            n_rows += 1
        n_cells += 1
    if rest.rows[0] >= k:
        for row in range(n):
            if rest.cell[row] < 0:
                rest.cell[row] = n_cells
    return rest.cell


@njit
def _begin(
    leaves: KdLeaves,
    rest: RowRest,
    center: int,
    k: int,
    nearest: Nearest,
    group: Group,
    cell_id: int,
) -> None:
    """Makes a cell of the k rows nearest to tuple `center`, its own rows first."""
    find_nearest(leaves, center, k, rest.left, nearest)
    group.size[0] = 0
    for j in range(len(group.low)):
        group.low[j], group.high[j] = np.inf, -np.inf
    last = nearest.size[0] - 1
    for place in range(last + 1):
        item = nearest.item[place]
        # The farthest tuple, which is the last, gives only the rows that the cell still needs.
        extra = nearest.weight[0] - k if place == last else 0
        _take(leaves, rest, item, rest.left[item] - extra, group, cell_id)


@njit
def _take(
    leaves: KdLeaves, rest: RowRest, item: int, rows: int, group: Group, cell_id: int
) -> None:
    """Moves rows of a tuple from the rest into the cell."""
    start = rest.first[item] + rest.weight[item] - rest.left[item]
    for row in range(start, start + rows):
        rest.cell[row] = cell_id
    rest.left[item] -= rows
    rest.rows[0] -= rows
    if rest.left[item] == 0:
        remove(leaves, item)
    group.item[group.size[0]] = item
    group.size[0] += 1
    for j in range(len(group.low)):
        x = leaves.value[item, j]
        group.low[j] = min(group.low[j], x)
        group.high[j] = max(group.high[j], x)


@njit
def _closest(leaves: KdLeaves, group: Group) -> tuple[int, float]:
    """The tuple of the rest that is nearest to any tuple of the group (of several, the lowest), and
    its squared distance."""
    _bound_below(leaves, leaves.low, leaves.high, leaves.n_leaves[0], group.low, group.high)
    best, result = np.inf, -1
    for place in range(group.size[0]):
        item = group.item[place]
        best, result = _look(leaves, leaves.home[item], leaves.value[item], best, result)
    n = _gather(leaves, group, best)
    for place in range(group.size[0]):
        point = leaves.value[group.item[place]]
        _bound_below(leaves, group.box[0], group.box[1], n, point, point)
        for i in range(n):
            if leaves.near[i] <= best:
                best, result = _look(leaves, leaves.order[i], point, best, result)
    return result, best


@njit
def _bound_below(
    leaves: KdLeaves, low: Floats, high: Floats, n: int, below: Floats, above: Floats
) -> None:
    """Sets near[i], for i < n, to the squared distance between two boxes. One reaches from `below`
    to `above`, the other from low[:, i] to high[:, i]."""
    near = leaves.near
    for i in range(n):
        near[i] = 0.0
    for j in range(leaves.p):
        for i in range(n):
            gap = max(low[j, i] - above[j], below[j] - high[j, i], 0.0)
            near[i] += gap * gap
    for j in range(leaves.p, len(below)):
        for i in range(n):
            near[i] += 1.0 if above[j] < low[j, i] or below[j] > high[j, i] else 0.0


@njit
def _gather(leaves: KdLeaves, group: Group, within: float) -> int:
    """Lists in `order` the leaves with near <= within, and copies their boxes to `group.box`.
    Returns their number."""
    order, n = leaves.order, 0
    for leaf in range(leaves.n_leaves[0]):
        order[n] = leaf
        n += leaves.near[leaf] <= within and leaves.size[leaf] > 0
    for j in range(len(group.low)):
        for i in range(n):
            group.box[0, j, i] = leaves.low[j, order[i]]
            group.box[1, j, i] = leaves.high[j, order[i]]
    return n


@njit
def _look(
    leaves: KdLeaves, leaf: int, point: Floats, best: float, result: int
) -> tuple[float, int]:
    """The squared distance and the number of the nearest tuple so far: (best, result), or those of
    a nearer tuple to `point` in the leaf."""
    size, distance, item = leaves.size[leaf], leaves.distance, leaves.item
    measure_leaf(leaves.tile[leaf], point, leaves.p, distance)
    for i in range(size):
        if distance[i] < best or (distance[i] == best and item[leaf, i] < result):
            best, result = distance[i], item[leaf, i]
    return best, result

"""The compiled walk of rows through a forest. It rounds as `Sample.left`, and as plans in Spark."""

import numpy as np

from anonlib.arrays import Codes, Floats, Ints
from anonlib.compiled import njit, njit_in_place
from anonlib.partition.cuts import CHUNK, INDICATOR, FlatTree, Singles

#: Rows that go from node to node at the same time: a processor scores some while it waits for the
#: scores of others.
BATCH = 32


@njit
def walk(numeric: Floats, nominal: Codes, tree: FlatTree, root: Ints) -> Ints:
    """int64[n]. The leaf of each row.

    Args:
        numeric: float64[n, p]. The numeric columns.
        nominal: int32[n, q]. The codes of nominal columns.
        tree: The forest.
        root: int64[n]. The tree of each row.
    """
    n = len(root)
    points = np.zeros((BATCH, tree.weights.shape[1]), np.float32)
    leaf = np.empty(n, np.int64)
    for first in range(0, n, BATCH):
        end = min(first + BATCH, n)
        for row in range(first, end):
            leaf[row] = -1 - tree.roots[root[row]]
            if len(tree.weights):
                _locate(numeric, nominal, tree.tops, row, points, row - first)
        on_the_way = True
        while on_the_way:
            on_the_way = False
            for row in range(first, end):
                node = -1 - leaf[row]
                if node >= 0:
                    on_the_way = True
                    side = _choose_side(numeric, nominal, tree, row, points, row - first, node)
                    leaf[row] = -1 - tree.sides[node, side]
    return leaf


@njit_in_place
def _locate(
    numeric: Floats, nominal: Codes, tops: Codes, row: int, points: Singles, place: int
) -> None:
    """Fills in the coordinates of a row that planes weigh, and -1 for the threshold."""
    p, t = numeric.shape[1], len(tops)
    for j in range(p):
        points[place, j] = numeric[row, j]
    for i in range(t):
        same = nominal[row, tops[i, 0] - p] == tops[i, 1]
        points[place, p + i] = INDICATOR if same else np.float32(0)
    points[place, p + t] = -1


@njit_in_place
def _choose_side(
    numeric: Floats,
    nominal: Codes,
    tree: FlatTree,
    row: int,
    points: Singles,
    place: int,
    node: int,
) -> int:
    """0 if a row goes left at an inner node, 1 if it goes right."""
    column, p = tree.column[node], numeric.shape[1]
    if column < 0:
        return int(not _score(tree.weights, -1 - column, points, place) < 0)
    first, end = tree.start[node], tree.start[node + 1]
    if first < end:
        return int(not _has(tree.codes, first, end, nominal[row, column - p]))
    value = numeric[row, column] if column < p else np.float64(nominal[row, column - p])
    return int(not np.float32(value) < tree.threshold[node])


@njit_in_place
def _score(weights: Singles, plane: int, points: Singles, place: int) -> np.float32:
    """The score of a row by a plane: the sum of their products, CHUNK at a time, as in Spark."""
    total = np.float32(0)
    for start in range(0, points.shape[1], CHUNK):
        part = weights[plane, start] * points[place, start]
        for j in range(start + 1, start + CHUNK):
            part += weights[plane, j] * points[place, j]
        total += part
    return total


@njit_in_place
def _has(codes: Codes, first: int, end: int, code: int) -> bool:
    """Whether a code is among the ascending ones from first to end - 1."""
    while end - first > 1:
        middle = (first + end) // 2
        if codes[middle] <= code:
            first = middle
        else:
            end = middle
    return bool(codes[first] == code)

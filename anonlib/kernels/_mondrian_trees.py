"""The compiled core of Mondrian along hierarchies: nodes as in `_mondrian_core`, but that a nominal
dimension is cut into the children of a tree node."""

import numpy as np

from anonlib.block import Floats, Ints
from anonlib.kernels._mondrian_core import cut, widest
from anonlib.kernels._numba import njit
from anonlib.kernels._trees import Trees


@njit
def measure_along(
    trees: Trees, value: Floats, start: Ints, stop: Ints, width: Floats, p: int
) -> None:
    """Makes the positive widths of nominal dimensions (p, p + 1, ...) the losses of the lowest
    common ancestors of their codes. width: float64[nodes, d], as measured by range."""
    for node in range(len(start)):
        for j in range(p, width.shape[1]):
            if width[node, j] > 0.0:
                top = _ancestor(trees, j - p, value[start[node] : stop[node], j])
                width[node, j] = trees.loss[top]


@njit
def _ancestor(trees: Trees, column: int, codes: Floats) -> int:
    """The lowest node of a column with all of these codes under it."""
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
    """Each node's next cut: for every part which node it is of, ascending, and where it begins.

    Tries the dimensions by descending width until all parts have min_rows rows; the widths of those
    tried become -1. The first p dimensions are cut at medians, the others into the children of the
    lowest common ancestor of the node's codes, those without rows left out.
    """
    most = (stop - start).max()
    key, load = np.empty((2, most)), np.empty((2, most), np.int64)
    child, rows_of = np.empty(most, np.int64), np.zeros(len(trees.parent), np.int64)
    of, begin = np.empty((stop - start).sum(), np.int64), np.empty((stop - start).sum(), np.int64)
    n = 0
    for node in range(len(start)):
        a, b = start[node], stop[node]
        rows, done = weight[a:b].sum(), n
        while n == done:
            j = widest(width[node])
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
        of[done:n] = node
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
    """Whether every child of the codes' lowest common ancestor has no rows or min_rows of them;
    writes the child that each code is under. rows_of: [nodes], zeros, as it is left."""
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

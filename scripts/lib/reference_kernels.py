"""Plain versions that benchmarks compare kernels with: loops over all remaining rows, compiled for
MDAV, in Python for greedy."""

from typing import Any

import numba
import numpy as np

from anonlib.arrays import GRID
from anonlib.hierarchy.tree import Tree


@numba.njit(cache=True)
def mdav_loop(x: Any, k: int) -> Any:
    """int64[n]: the cells of MDAV (variant figure4) on float64[n, p]; at most k - 1 rows get -1."""
    n, p = x.shape
    cell = np.full(n, -1, np.int64)
    left = np.arange(n)
    m, n_cells = n, 0
    centroid = np.empty(p)
    distance, near = np.empty(k), np.empty(k, np.int64)
    while m >= k:
        for j in range(p):
            total = 0.0
            for i in range(m):
                total += x[left[i], j]
            centroid[j] = total / m
        farthest = -1.0
        center = 0
        for i in range(m):
            d = 0.0
            for j in range(p):
                d += (x[left[i], j] - centroid[j]) ** 2
            if d > farthest:
                farthest, center = d, left[i]
        for _ in range(2 if m >= 2 * k else 1):
            farthest, other, size = -1.0, 0, 0
            for i in range(m):
                d = 0.0
                for j in range(p):
                    d += (x[left[i], j] - x[center, j]) ** 2
                if d > farthest:
                    farthest, other = d, left[i]
                if size < k or d < distance[size - 1]:
                    size = min(size + 1, k)
                    place = size - 1
                    while place > 0 and distance[place - 1] > d:
                        distance[place], near[place] = distance[place - 1], near[place - 1]
                        place -= 1
                    distance[place], near[place] = d, left[i]
            for place in range(k):
                cell[near[place]] = n_cells
            n_cells += 1
            kept = 0
            for i in range(m):
                if cell[left[i]] < 0:
                    left[kept] = left[i]
                    kept += 1
            m = kept
            center = other
    return cell


def greedy_loop(tuples: Any, count: Any, trees: list[Tree], k: int) -> Any:
    """int64[m]: the cells of greedy (k-anonymity alone, by NLLM) on the codes int[m, q] of distinct
    tuples; tuple i has count[i] rows; one tree per column."""
    loss = [np.rint(tree.loss / GRID).astype(int).tolist() for tree in trees]
    met = [ancestors(tree) for tree in trees]
    cells = {i: [i] for i in range(len(tuples))}
    node = dict(enumerate(np.asarray(tuples).tolist()))
    size = dict(enumerate(np.asarray(count).tolist()))
    lost = {i: sum(map(list.__getitem__, loss, node[i])) for i in cells}
    while size[small := min(size, key=lambda i: (size[i], i))] < k:
        rows = [above[x] for above, x in zip(met, node[small], strict=True)]
        best: Any = None
        for i, at in node.items():
            if i == small:
                continue
            whole = 0
            for j, x in enumerate(at):
                whole += loss[j][rows[j][x]]
            cost = size[small] * (whole - lost[small]) + size[i] * (whole - lost[i])
            if best is None or (cost, size[i], i) < best:
                best = (cost, size[i], i)
        other = best[2]
        one, two = min(small, other), max(small, other)
        node[one] = [row[x] for row, x in zip(rows, node[other], strict=True)]
        cells[one] = cells[small] + cells[other]
        size[one] = size[small] + size[other]
        lost[one] = sum(map(list.__getitem__, loss, node[one]))
        for each in (node, cells, size, lost):
            del each[two]
    cell_id = np.empty(len(tuples), np.int64)
    for number, cell in enumerate(cells.values()):
        cell_id[cell] = number
    return cell_id


def ancestors(tree: Tree) -> list[list[int]]:
    """The lowest common ancestor of every two nodes."""
    n = len(tree.parent)
    table = [[0] * n for _ in range(n)]
    for i in range(n):
        for j in range(n):
            node = i
            while not (tree.low[node] <= tree.low[j] and tree.high[j] <= tree.high[node]):
                node = int(tree.parent[node])
            table[i][j] = node
    return table

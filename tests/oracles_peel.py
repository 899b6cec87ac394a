"""Peeling in plain Python: slow, and obvious."""

from itertools import combinations, pairwise, product
from typing import Any

import numpy as np

from anonlib.hierarchy.tree import Tree
from anonlib.table.block import Block

UNIT = 2**20


def heights(tree: Tree) -> list[int]:
    """Of all nodes: the longest way down to a leaf."""
    children: dict[int, list[int]] = {}
    for node, above in enumerate(tree.parent[:-1]):
        children.setdefault(int(above), []).append(node)

    def height(node: int) -> int:
        return max((1 + height(child) for child in children.get(node, [])), default=0)

    return [height(node) for node in range(len(tree.parent))]


def generalized(tree: Tree, code: int, height: int) -> int:
    """The highest node above a code that is no higher than `height`."""
    all_heights, node, root = heights(tree), code, len(tree.parent) - 1
    while node != root and all_heights[tree.parent[node]] <= height:
        node = int(tree.parent[node])
    return node


def lca_loss(tree: Tree, codes: set[int]) -> int:
    """What is lost of a value released as the lowest common ancestor, in multiples of 2^-20."""
    covering = [
        node
        for node in range(len(tree.parent))
        if all(tree.low[node] <= code < tree.high[node] for code in codes)
    ]
    return min(round(float(tree.loss[node]) * UNIT) for node in covering)


def cell_loss(block: Block, rows: list[int]) -> int:
    """What a cell loses, in multiples of 2^-20, rows times columns."""
    weight = np.ones(block.n, np.int64) if block.weight is None else block.weight
    columns = zip(block.trees, block.nominal[rows].T.tolist(), strict=True)
    return int(weight[rows].sum()) * sum(lca_loss(tree, set(codes)) for tree, codes in columns)


def peel(block: Block, *, by_class: bool, stages: int = 16, last: int = 4) -> list[list[int]]:
    """The cells, as rows; then those that are left, as one list.

    Nodes come by the sum of the squares of what the rows lose on average in each column; by class,
    in each of the stages only with the classes whose own loss is in its range.
    """
    weight = np.ones(block.n, np.int64) if block.weight is None else block.weight
    columns = []
    for tree, codes in zip(block.trees, block.nominal.T, strict=True):
        levels = []
        for height in range(max(heights(tree)) + 1):
            node = [generalized(tree, code, height) for code in range(int(tree.high[-1]))]
            if not levels or len(set(node)) < len(set(levels[-1])):
                levels.append(node)
        losses = [[round(float(tree.loss[node]) * UNIT) for node in level] for level in levels]
        mean = [int(weight @ [loss[c] for c in codes]) // int(weight.sum()) for loss in losses]
        columns.append((levels, losses, mean))
    nodes = list(product(*(range(len(levels)) for levels, _, _ in columns)))
    nodes.sort(key=lambda at: sum(c[2][h] ** 2 for c, h in zip(columns, at, strict=True)))
    bounds: list[float] = [0, np.inf]
    if by_class:
        bounds = [i * UNIT // stages for i in range(last * stages + 1)] + [np.inf]
    rest, cells = list(range(block.n)), []
    for low, high in pairwise(bounds):
        for at in nodes:
            classes: dict[Any, list[int]] = {}
            for row in rest:
                codes = block.nominal[row]
                key = tuple(c[0][h][x] for c, h, x in zip(columns, at, codes, strict=True))
                loss = sum(c[1][h][x] for c, h, x in zip(columns, at, codes, strict=True))
                if low <= loss < high:
                    classes.setdefault(key, []).append(row)
            for rows in classes.values():
                if block.holds(np.zeros(len(rows), np.int64), 1, np.array(rows))[0]:
                    cells.append(rows)
                    rest = [row for row in rest if row not in rows]
    return [*cells, rest]


def optimum(block: Block) -> int:
    """The least that cells can lose, by trying them all; for few rows."""

    def best(rest: tuple[int, ...]) -> float:
        if not rest:
            return 0
        found = np.inf
        for size in range(len(rest)):
            for others in combinations(rest[1:], size):
                rows = [rest[0], *others]
                if block.holds(np.zeros(len(rows), np.int64), 1, np.array(rows))[0]:
                    left = tuple(row for row in rest if row not in rows)
                    found = min(found, cell_loss(block, rows) + best(left))
        return found

    return int(best(tuple(range(block.n))))

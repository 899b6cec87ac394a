"""What target-aware trees are compared with, slow and obvious."""

from itertools import combinations
from math import log2
from typing import Any

import numpy as np

from anonlib.partition import Among, Below, Cut, CutTree, Grower, Leaf, Sample
from anonlib.table.block import Block


def grown(
    step: Any, block: Block, place: Any = None, share: float = 1.0
) -> tuple[CutTree, list[Any]]:
    """The tree that a step grows on all rows, and the rows of its leaves in the tree's order."""
    grower = Grower()
    place = np.arange(block.n) if place is None else place
    leaf = Leaf(0, np.arange(block.n))
    leaves = step.grow(Sample(block, place, share), grower, leaf, block.n, 0)
    rows = {grower.leaves()[leaf.id]: leaf.rows for leaf in leaves}
    return grower.tree(), [rows[i] for i in range(len(rows))]


def nodes(tree: CutTree, block: Block) -> list[tuple[Cut | None, Any, int]]:
    """Each node's cut, None of a leaf, its rows and its depth: by following every row alone."""
    found: list[tuple[Cut | None, Any, int]] = []
    todo = [(int(tree.roots[0]), np.arange(block.n), 0)]
    while todo:
        at, rows, depth = todo.pop()
        found.append((tree.cuts[at] if at >= 0 else None, rows, depth))
        if at >= 0:
            left = np.array([goes_left(tree.cuts[at], block, row) for row in rows], bool)
            todo.append((int(tree.left[at]), rows[left], depth + 1))
            todo.append((int(tree.right[at]), rows[~left], depth + 1))
    return found


def goes_left(cut: Cut, block: Block, row: int) -> bool:
    p = block.numeric.shape[1]
    match cut:
        case Below(column, threshold):
            return bool(np.float32(block.numeric[row, column]) < np.float32(threshold))
        case Among(column, codes):
            return int(block.nominal[row, column - p]) in codes.tolist()
    raise TypeError(cut)


def impurity(target: Any, criterion: str) -> float:
    """Rows times entropy in bits or times Gini's impurity; squared deviations of numbers."""
    if criterion == "variance":
        return float(((target - target.mean()) ** 2).sum()) if len(target) else 0.0
    shares = [(target == c).mean() for c in set(target.tolist())]
    if criterion == "gini":
        return float(len(target) * (1 - sum(s * s for s in shares)))
    return float(-len(target) * sum(s * log2(s) for s in shares))


def gain(target: Any, left: Any, criterion: str) -> float:
    sides = impurity(target[left], criterion) + impurity(target[~left], criterion)
    return impurity(target, criterion) - sides


def best_gain(
    block: Block, rows: Any, criterion: str, least: int, guides: Any, column: int | None = None
) -> float:
    """The most that any threshold or any subset of categories, of one column or of all, gains on
    those of a node's rows that guide, with `least` rows, of all of them, on both sides."""
    assert block.target is not None
    target, best = block.target[rows], 0.0
    p, d = block.numeric.shape[1], block.numeric.shape[1] + block.nominal.shape[1]
    for j in range(d) if column is None else [column]:
        values = block.numeric[rows, j] if j < p else block.nominal[rows, j - p]
        for left in thresholds(values) if j < p else any_subsets(values, guides):
            if min(left.sum(), (~left).sum()) >= least:
                best = max(best, gain(target[guides], left[guides], criterion))
    return best


def thresholds(values: Any) -> Any:
    for value in sorted(set(values.tolist()))[1:]:
        yield values < value


def any_subsets(values: Any, guides: Any) -> Any:
    """Of the categories that guides have; others are on the side of most rows."""
    codes = sorted(set(values[guides].tolist()))
    known = np.isin(values, codes).sum()
    for size in range(1, len(codes)):
        for chosen in combinations(codes, size):
            left = np.isin(values, chosen)
            if 2 * left.sum() <= known:
                yield left

"""Hierarchies by height, for kernels that generalize along them.

The nodes of the generalization lattice are vectors of heights, one for each column.
"""

from typing import NamedTuple

import numpy as np

from anonlib.block import Block, Floats, Ints, Tree


class Levels(NamedTuple):
    """The hierarchy of a column over its c codes, by height.

    node: int64[h, c], the node of the tree that each code is generalized to at the heights 0 (the
    codes themselves) .. h - 1 (the root): the highest one above it, or itself, that is no higher.
    loss: float64[h, c], what is lost then.
    """

    node: Ints
    loss: Floats


def levels(tree: Tree) -> Levels:
    """All heights of a hierarchy. Cost O(nodes + h c)."""
    heights = np.zeros(len(tree.parent), np.int64)
    for node, above in enumerate(tree.parent[:-1]):  # a node comes before its parent
        heights[above] = max(heights[above], heights[node] + 1)
    rows = [np.arange(tree.high[-1])]
    for height in range(1, int(heights[-1]) + 1):
        above = tree.parent[rows[-1]]
        rows.append(np.where(heights[above] <= height, above, rows[-1]))
    nodes = np.stack(rows)
    return Levels(nodes, tree.loss[nodes])


def merging(given: Levels) -> Levels:
    """Without the heights at which no two codes are the same that were different below.

    Where any codes meet first, and with what loss, stays as it was.
    """
    n_distinct = [len(np.unique(row)) for row in given.node]
    kept = np.diff(n_distinct, prepend=n_distinct[0] + 1) < 0
    return Levels(given.node[kept], given.loss[kept])


def meet(given: Levels, low: Ints, high: Ints) -> Ints:
    """The lowest height at which codes are the same; as leaves are in depth-first order, so are
    all that lie between. Their lowest common ancestor is `node[height, low]`."""
    height: Ints = np.argmax(given.node[:, low] == given.node[:, high], axis=0)
    return height


def trees_of(block: Block) -> tuple[Tree, ...]:
    """The hierarchies of a block's nominal columns, flat ones where it has none."""
    given = block.trees or (None,) * len(block.n_categories)
    return tuple(
        flat(int(n)) if tree is None else tree
        for tree, n in zip(given, block.n_categories, strict=True)
    )


def flat(n: int) -> Tree:
    """n leaves under a root."""
    leaves = np.arange(n)
    return Tree(
        np.full(n + 1, n),
        np.append(leaves, 0),
        np.append(leaves + 1, n),
        np.append(np.zeros(n), 1.0),
    )

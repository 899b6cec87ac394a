"""Hierarchies by height, for kernels that generalize along them.

The nodes of the generalization lattice are vectors of heights, one for each column.
"""

from typing import NamedTuple

import numpy as np

from anonlib.block import Floats, Ints, Tree


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
    codes = np.arange(tree.high[-1])
    nodes = np.stack([tree.raised(codes, height) for height in range(tree.heights[-1] + 1)])
    return Levels(nodes, tree.loss[nodes])


def merging(given: Levels) -> Levels:
    """Without the heights at which no two codes are the same that were different below.

    Where any codes meet first, and with what loss, stays as it was.
    """
    n_distinct = [len(np.unique(row)) for row in given.node]
    kept = np.diff(n_distinct, prepend=n_distinct[0] + 1) < 0
    return Levels(given.node[kept], given.loss[kept])

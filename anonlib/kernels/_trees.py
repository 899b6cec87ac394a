"""Hierarchies for compiled cores: those of several columns side by side, and the heights of one.

The nodes of the generalization lattice are vectors of heights, one for each column.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from anonlib.arrays import Floats, Ints
from anonlib.hierarchy.tree import Tree


class Trees(NamedTuple):
    """Column j of q has the nodes start[j]..start[j + 1] - 1, numbered through.

    parent: a node comes before its own, the last one of a column is its root. low, high: the codes
    under a node are low..high - 1, and code c is the node start[j] + c. loss: of each node, in
    whatever unit.
    """

    start: Ints
    parent: Ints
    low: Ints
    high: Ints
    loss: npt.NDArray[Any]


def side_by_side(trees: Sequence[Tree], losses: Sequence[npt.NDArray[Any]]) -> Trees:
    """The trees as one, with these losses of their nodes."""
    start = np.cumsum([0, *(len(tree.parent) for tree in trees)])
    none = np.zeros(0, np.int64)
    return Trees(
        start,
        np.concatenate([none, *(t.parent + first for t, first in zip(trees, start, strict=False))]),
        np.concatenate([none, *(tree.low for tree in trees)]),
        np.concatenate([none, *(tree.high for tree in trees)]),
        np.concatenate(losses) if losses else none,
    )


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

"""Hierarchies for compiled cores: several columns side by side, and one column by height.

A node of the generalization lattice is a vector of heights, one for each column.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from anonlib.arrays import Floats, Ints
from anonlib.hierarchy.tree import Tree


class Trees(NamedTuple):
    """The hierarchies of q columns side by side.

    Column j has the nodes start[j]..start[j + 1] - 1. Code c is the node start[j] + c. A node comes
    before its parent, so the last node of a column is its root.

    Attributes:
        start: int64[q + 1]. The first node of each column.
        parent: int64[nodes]. The parent of each node.
        low: int64[nodes]. The lowest code under each node.
        high: int64[nodes]. The code after the highest under each node.
        loss: [nodes]. The loss of each node, in the caller's unit and dtype.
    """

    start: Ints
    parent: Ints
    low: Ints
    high: Ints
    loss: npt.NDArray[Any]


def join_trees(trees: Sequence[Tree], losses: Sequence[npt.NDArray[Any]]) -> Trees:
    """Puts trees side by side. losses: the loss of each node, by tree."""
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
    """The hierarchy of a column with c codes, by height: from 0 (codes) to h - 1 (the root).

    Attributes:
        node: int64[h, c]. The node to which each height generalizes each code: the highest node at
            or above the code whose own height is at most this one.
        loss: float64[h, c]. The loss of that node.
    """

    node: Ints
    loss: Floats


def list_levels(tree: Tree) -> Levels:
    """The levels of all heights of a hierarchy. Cost O(nodes + h c)."""
    codes = np.arange(tree.high[-1])
    nodes = np.stack([tree.raised(codes, height) for height in range(tree.heights[-1] + 1)])
    return Levels(nodes, tree.loss[nodes])


def drop_idle_levels(levels: Levels) -> Levels:
    """The levels without the heights that merge no codes.

    The node at which codes first meet, and its loss, stay the same.
    """
    n_distinct = [len(np.unique(row)) for row in levels.node]
    kept = np.diff(n_distinct, prepend=n_distinct[0] + 1) < 0
    return Levels(levels.node[kept], levels.loss[kept])

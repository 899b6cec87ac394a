"""Hierarchies from a release's manifest."""

from collections.abc import Sequence

import numpy as np

from anonlib.errors import InputError
from anonlib.hierarchy import Hierarchy
from anonlib.hierarchy.tree import Tree


def read_parents(names: Sequence[str], parents: Sequence[int]) -> Hierarchy:
    """The hierarchy with these `names` and this `tree.parent`.

    Leaves must come first, in depth-first order. Then every node must come before its parent. The
    root must be last, and its own parent.

    Raises:
        InputError: The names or parents do not make such a hierarchy.
    """
    parent = np.array(parents, np.int64)
    n, root = len(names), len(names) - 1
    if n < 2 or parent.shape != (n,) or parent[root] != root or len({*names}) < n:
        raise InputError("a hierarchy of nodes takes names that differ, and a parent for each")
    c = len(np.setdiff1d(np.arange(n), parent))
    if (parent > root).any() or (parent[:-1] <= np.maximum(np.arange(root), c - 1)).any():
        raise InputError("a hierarchy of nodes has leaves first, then nodes before their parents")
    low = np.append(np.arange(c), np.full(n - c, c))
    high = np.append(np.arange(1, c + 1), np.zeros(n - c, np.int64))
    width = np.append(np.ones(c, np.int64), np.zeros(n - c, np.int64))
    for node, above in enumerate(parent[:-1]):
        low[above] = min(low[above], low[node])
        high[above] = max(high[above], high[node])
        width[above] += width[node]
    if (high - low != width).any():
        raise InputError("a hierarchy of nodes has its leaves in depth-first order")
    loss = (high - low - 1) / max(c - 1, 1)
    loss[-1] = 1.0
    return Hierarchy(tuple(names), Tree(parent, low, high, loss))

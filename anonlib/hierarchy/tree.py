"""The tree of a hierarchy: nodes by number, over the codes of a nominal column."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from anonlib.arrays import Floats, Ints


@dataclass(frozen=True, eq=False)
class Tree:
    """The hierarchy of a nominal column over its c codes.

    Nodes 0..c-1 are the leaves, which are the codes, in depth-first order: those under node i are
    low[i] .. high[i] - 1. The inner nodes follow, each before its parent[i]; the last node is the
    root, its own parent. loss: what is lost of a value that is released as the node: the leaves
    under it minus 1 over all leaves minus 1, those counted too that the data lack; 1 at the root.
    height: as `heights`, where the data lack some of what counts for them; else None.
    """

    parent: Ints
    low: Ints
    high: Ints
    loss: Floats
    height: Ints | None = None

    @classmethod
    def flat(cls, n: int) -> "Tree":
        """n leaves right under the root."""
        leaves = np.arange(n)
        loss = np.append(np.zeros(n), 1.0)
        return cls(np.full(n + 1, n), np.append(leaves, 0), np.append(leaves + 1, n), loss)

    @cached_property
    def heights(self) -> Ints:
        """int64[nodes]: the length of the longest way from each node down to a leaf, those counted
        too that the data lack."""
        if self.height is not None:
            return self.height
        heights = np.zeros(len(self.parent), np.int64)
        for node, above in enumerate(self.parent[:-1]):  # a node comes before its parent
            heights[above] = max(heights[above], heights[node] + 1)
        return heights

    def common(self, first: Ints, last: Ints) -> Ints:
        """int64[n]: the lowest node that has all of the codes first[i] .. last[i] under it."""
        node = first.astype(np.int64)
        while (below := self.high[node] <= last).any():
            node = np.where(below, self.parent[node], node)
        return node

    def raised(self, node: Ints, height: int) -> Ints:
        """int64[n]: the highest node above each of these, or itself, that is no higher than that;
        itself where it is higher."""
        for _ in range(min(height, int(self.heights[-1]))):
            above = self.parent[node]
            node = np.where(self.heights[above] <= height, above, node)
        return node

"""The tree of a hierarchy: nodes by number, over the codes of a nominal column."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from anonlib.arrays import Floats, Ints


@dataclass(frozen=True, eq=False)
class Tree:
    """The hierarchy of a nominal column over its c codes.

    Nodes 0..c-1 are the leaves: the codes, in depth-first order. The inner nodes follow, each
    before its parent. The last node is the root.

    Attributes:
        parent: int64[nodes]. The parent of each node. The root is its own parent.
        low: int64[nodes]. The leaves under node i are low[i]..high[i]-1.
        high: int64[nodes]. See `low`.
        loss: float64[nodes]. The loss of a value that is released as the node: (leaves under it
            minus 1) / (all leaves minus 1), including leaves that the data lack; 1 at the root.
        height: int64[nodes] or None. The heights, including leaves and nodes that the data lack.
            None if the heights follow from `parent`.
    """

    parent: Ints
    low: Ints
    high: Ints
    loss: Floats
    height: Ints | None = None

    @classmethod
    def flat(cls, n: int) -> "Tree":
        """The tree of n leaves directly under the root."""
        leaves = np.arange(n)
        loss = np.append(np.zeros(n), 1.0)
        return cls(np.full(n + 1, n), np.append(leaves, 0), np.append(leaves + 1, n), loss)

    @cached_property
    def heights(self) -> Ints:
        """int64[nodes]. The length of the longest path from each node down to a leaf, including
        leaves that the data lack."""
        if self.height is not None:
            return self.height
        heights = np.zeros(len(self.parent), np.int64)
        for node, above in enumerate(self.parent[:-1]):  # a node comes before its parent
            heights[above] = max(heights[above], heights[node] + 1)
        return heights

    def common(self, first: Ints, last: Ints) -> Ints:
        """int64[n]. The lowest node with all codes first[i]..last[i] under it."""
        node = first.astype(np.int64)
        while (below := self.high[node] <= last).any():
            node = np.where(below, self.parent[node], node)
        return node

    def raised(self, node: Ints, height: int) -> Ints:
        """int64[n]. The highest ancestor of each node with at most this height; the node itself if
        there is none."""
        for _ in range(min(height, int(self.heights[-1]))):
            above = self.parent[node]
            node = np.where(self.heights[above] <= height, above, node)
        return node

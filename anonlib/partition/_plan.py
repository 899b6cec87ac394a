"""Plans: binary trees of linear cuts, evaluated row by row in the JVM and (for tests) in numpy.

One shape serves every partitioner: a k-means split is the hyperplane between two centres, a
Mondrian or decision-tree cut has a single weight. Assigning a row costs O(depth * features).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from anonlib.block import Floats, Ints


@dataclass(frozen=True)
class Sample:
    """m distinct rows of the seeded sample: `features` float64[m, f] as `FeatureSpace` defines
    them, `weight` int64[m] how many sampled rows each stands for."""

    features: Floats
    weight: Ints


@dataclass(frozen=True)
class Cuts:
    """A tree with i inner nodes and i + 1 leaves.

    Inner node j sends a row to `left[j]` if `weights[j] @ features < threshold[j]`, else to
    `right[j]`. A child c >= 0 is an inner node (c > j), c < 0 the leaf -1 - c. The root is node 0;
    without inner nodes every row is in leaf 0. Weights and thresholds are on block.GRID.
    """

    weights: Floats
    threshold: Floats
    left: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]

    @property
    def n_leaves(self) -> int:
        return len(self.threshold) + 1

    @property
    def depth(self) -> int:
        """The largest number of cuts that a row passes."""
        depth = np.zeros(len(self.threshold) + 1, np.int64)
        for j in range(len(self.threshold) - 1, -1, -1):
            below = [depth[c] for c in (self.left[j], self.right[j]) if c >= 0]
            depth[j] = 1 + max(below, default=0)
        return int(depth[0])

    def assign(self, features: Floats) -> Ints:
        """int64[n]: the leaf of every row; the products are summed in column order."""
        node = np.zeros(len(features), np.int64)
        if not len(self.threshold):
            return node
        for _ in range(self.depth):
            inner = np.flatnonzero(node >= 0)
            at = node[inner]
            score = np.zeros(len(inner))
            for f in range(features.shape[1]):
                score += self.weights[at, f] * features[inner, f]
            low = score < self.threshold[at]
            node[inner] = np.where(low, self.left[at], self.right[at])
        return -1 - node

    def to_dict(self) -> dict[str, Any]:
        """For the private run record."""
        return {
            "weights": self.weights.tolist(),
            "threshold": self.threshold.tolist(),
            "left": self.left.tolist(),
            "right": self.right.tolist(),
        }


class Grower:
    """Builds `Cuts` by cutting leaves one at a time."""

    def __init__(self, n_features: int):
        self._n_features = n_features
        self._nodes: list[tuple[Floats, float, int, int]] = []  # weights, threshold, children
        self._children: list[int] = []  # child -> inner node, or -1 while it is a leaf
        self.root = self._leaf()

    def _leaf(self) -> int:
        self._children.append(-1)
        return len(self._children) - 1

    def cut(self, leaf: int, weights: Floats, threshold: float) -> tuple[int, int]:
        """Makes an inner node of a leaf; returns its two new leaves."""
        left, right = self._leaf(), self._leaf()
        self._children[leaf] = len(self._nodes)
        self._nodes.append((weights, threshold, left, right))
        return left, right

    def cuts(self) -> Cuts:
        """The tree, its leaves numbered from left to right as they were made."""
        leaf_ids = {c: i for i, c in enumerate(c for c, n in enumerate(self._children) if n < 0)}

        def child(c: int) -> int:
            return self._children[c] if c not in leaf_ids else -1 - leaf_ids[c]

        return Cuts(
            np.array([n[0] for n in self._nodes]).reshape(len(self._nodes), self._n_features),
            np.array([n[1] for n in self._nodes], np.float64),
            np.array([child(n[2]) for n in self._nodes], np.int32),
            np.array([child(n[3]) for n in self._nodes], np.int32),
        )


def no_cuts(n_features: int) -> Cuts:
    """The plan of one leaf."""
    return Grower(n_features).cuts()

"""Plans: binary trees of linear cuts, evaluated row by row in the JVM and in numpy alike.

One shape serves every partitioner: a k-means split is the hyperplane between two centres, a
Mondrian or decision-tree cut has a single weight. Assigning a row costs O(depth * features).

Features, weights and thresholds are float32, and products are summed in the order of Spark's
`vector_inner_product`, so that both give the same leaf. A cut with the single weight 1 is exact:
x - t is negative if and only if x < t, in floating point too.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from anonlib.block import Ints

Singles = npt.NDArray[np.float32]

#: The inner product adds up this many products at a time.
CHUNK = 8


@dataclass(frozen=True)
class Sample:
    """m distinct rows of the seeded sample: `features` float32[m, f], `weight` int64[m] how many
    sampled rows each stands for."""

    features: Singles
    weight: Ints


@dataclass(frozen=True)
class Cuts:
    """A tree with i inner nodes and i + 1 leaves.

    Inner node j sends a row to `left[j]` if `weights[j] @ features < threshold[j]`, else to
    `right[j]`. A child c >= 0 is an inner node (c > j), c < 0 the leaf -1 - c. The root is node 0;
    without inner nodes every row is in leaf 0.
    """

    weights: Singles
    threshold: Singles
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

    def assign(self, features: Singles) -> Ints:
        """int64[n]: the leaf of every row."""
        node = np.zeros(len(features), np.int64)
        if not len(self.threshold):
            return node
        rows, cuts = with_one(features), with_threshold(self.weights, self.threshold)
        for _ in range(self.depth):
            inner = np.flatnonzero(node >= 0)
            at = node[inner]
            low = scores(cuts[at], rows[inner]) < 0
            node[inner] = np.where(low, self.left[at], self.right[at])
        return -1 - node

    def levels(self) -> list[tuple[Singles, Ints]]:
        """The tree level by level, for a walk by look-ups: (weights, child) for each.

        A row at place p of a level goes to place child[p], or child[p] + 1 if
        weights[p] @ (features, -1, 0, ...) >= 0; child[p] is even where that can be. Leaves are
        handed down to the last level, whose child is the leaf's id.
        """
        result = []
        # the node or leaf at each place
        places = np.zeros(1, np.int64) if len(self.threshold) else np.full(1, -1)
        cuts = with_threshold(self.weights, self.threshold)
        for _ in range(self.depth):
            inner = places >= 0
            at = places[inner]
            weights = np.zeros((len(places), cuts.shape[1]), np.float32)
            weights[inner] = cuts[at]
            weights[~inner, self.weights.shape[1]] = 1.0  # a score of -1
            child = np.empty(len(places), np.int64)
            child[inner] = 2 * np.arange(len(at))
            child[~inner] = 2 * len(at) + np.arange(len(places) - len(at))
            result.append((weights, child))
            pairs = np.column_stack([self.left[at], self.right[at]]).reshape(-1)
            places = np.concatenate([pairs, places[~inner]]).astype(np.int64)
        return [*result, (np.zeros((0, cuts.shape[1]), np.float32), -1 - places)]

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
        self._nodes: list[tuple[Singles, float, int, int]] = []  # weights, threshold, children
        self._children: list[int] = []  # child -> inner node, or -1 while it is a leaf
        self.root = self._leaf()

    def _leaf(self) -> int:
        self._children.append(-1)
        return len(self._children) - 1

    def cut(self, leaf: int, weights: Singles, threshold: float) -> tuple[int, int]:
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

        n_inner = len(self._nodes)
        return Cuts(
            np.array([n[0] for n in self._nodes], np.float32).reshape(n_inner, self._n_features),
            np.array([n[1] for n in self._nodes], np.float32),
            np.array([child(n[2]) for n in self._nodes], np.int32),
            np.array([child(n[3]) for n in self._nodes], np.int32),
        )


def no_cuts(n_features: int) -> Cuts:
    """The plan of one leaf."""
    return Grower(n_features).cuts()


def scores(cuts: Singles, rows: Singles) -> Singles:
    """float32[n]: the inner products of n cuts, or one, and n rows, as made by `with_threshold`
    and `with_one`."""
    total = np.zeros(len(rows), np.float32)
    for start in range(0, rows.shape[1], CHUNK):
        part = cuts[:, start] * rows[:, start]
        for j in range(start + 1, start + CHUNK):
            part += cuts[:, j] * rows[:, j]
        total += part
    return total


def with_threshold(weights: Singles, threshold: Singles) -> Singles:
    """The weights of cuts, with their thresholds as one more, filled with 0 to whole chunks."""
    return _filled(np.column_stack([weights, threshold]))


def with_one(features: Singles) -> Singles:
    """The features of rows, with -1 for the threshold, filled with 0 to whole chunks."""
    return _filled(np.column_stack([features, np.full(len(features), -1)]))


def _filled(array: npt.NDArray[Any]) -> Singles:
    n, width = array.shape
    result = np.zeros((n, -(-width // CHUNK) * CHUNK), np.float32)
    result[:, :width] = array
    return result

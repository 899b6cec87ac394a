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

from anonlib.arrays import Ints

Singles = npt.NDArray[np.float32]

#: The inner product adds up this many products at a time.
CHUNK = 8


@dataclass(frozen=True)
class Cuts:
    """A forest with i inner nodes, r roots and i + r leaves.

    Inner node j sends a row to `left[j]` if `weights[j] @ features < threshold[j]`, else to
    `right[j]`. A child or root c >= 0 is an inner node (a child c > j), c < 0 the leaf -1 - c.
    """

    weights: Singles
    threshold: Singles
    left: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]
    roots: npt.NDArray[np.int32]

    @property
    def n_leaves(self) -> int:
        return len(self.threshold) + len(self.roots)

    @property
    def depth(self) -> int:
        """The largest number of cuts that a row passes."""
        depth = np.zeros(len(self.threshold), np.int64)
        for j in range(len(self.threshold) - 1, -1, -1):
            below = [depth[c] for c in (self.left[j], self.right[j]) if c >= 0]
            depth[j] = 1 + max(below, default=0)
        return int(max(depth[self.roots[self.roots >= 0]], default=0))

    @property
    def root_of_leaf(self) -> Ints:
        """int64[leaves]: the root above each leaf."""
        result = np.zeros(self.n_leaves, np.int64)
        below = [(child, root) for root, child in enumerate(self.roots.tolist())]
        while below:
            child, of = below.pop()
            if child < 0:
                result[-1 - child] = of
            else:
                below += [(int(self.left[child]), of), (int(self.right[child]), of)]
        return result

    def levels(self) -> list[tuple[Singles, Ints]]:
        """The forest level by level, for a walk by look-ups: (weights, child) for each.

        A row begins at the place of its root. A row at place p of a level goes to place child[p],
        or child[p] + 1 if weights[p] @ (features, -1, 0, ...) >= 0; child[p] is even where that
        can be. Leaves are handed down to the last level, whose child is the leaf's id.
        """
        result = []
        places = self.roots.astype(np.int64)  # the node or leaf at each place
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
            "roots": self.roots.tolist(),
        }


def no_cuts(n_features: int, n_roots: int) -> Cuts:
    """A forest without cuts: each of its n_roots roots is a leaf."""
    none = np.zeros(0, np.float32)
    ids = np.zeros(0, np.int32)
    roots = -1 - np.arange(n_roots, dtype=np.int32)
    return Cuts(none.reshape(0, n_features), none, ids, ids, roots)


def score_rows(cuts: Singles, rows: Singles) -> Singles:
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

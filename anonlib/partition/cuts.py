"""Binary trees of linear cuts, evaluated row by row. The JVM and numpy give the same leaves.

All partitioners share this form: a k-means split is the hyperplane between two centres, a Mondrian
or decision-tree cut has a single weight. To find the leaf of a row costs O(depth * features).

Features, weights and thresholds are float32, and products are summed in the order of Spark's
`vector_inner_product`, so both sides round alike. A cut with the single weight 1 is exact: x - t is
negative if and only if x < t, in floating point too.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from anonlib.arrays import Codes, Ints

Singles = npt.NDArray[np.float32]

#: Spark's inner product sums this many products at a time.
CHUNK = 8
#: The value of an indicator. With it, rows of different categories are at squared distance 1, as in
#: kernels.
INDICATOR = np.float32(np.sqrt(0.5))
#: In place of a leaf's cut.
NO_CUT = -1


class Level(NamedTuple):
    """A level of a forest, for `Cuts.levels`.

    Attributes:
        weights: float32[cuts, f + 1, padded to whole chunks]. The cuts of its inner nodes.
        cut: int64[places]. The cut at each place; NO_CUT at a leaf.
        child: int64[places]. Where the node's left child is on the next level, an even place; at a
            leaf, the leaf itself.
    """

    weights: Singles
    cut: Ints
    child: Ints


class TreeShape:
    """What every forest of cuts has: inner nodes, and where each sends its rows. A child or root
    c >= 0 is the inner node c; c < 0 is the leaf -1 - c."""

    left: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]
    roots: npt.NDArray[np.int32]

    @property
    def n_leaves(self) -> int:
        return len(self.left) + len(self.roots)

    @property
    def root_of_leaf(self) -> Ints:
        """int64[leaves]. The tree of each leaf, 0..r-1."""
        result = np.zeros(self.n_leaves, np.int64)
        below = [(child, root) for root, child in enumerate(self.roots.tolist())]
        while below:
            child, of = below.pop()
            if child < 0:
                result[-1 - child] = of
            else:
                below += [(int(self.left[child]), of), (int(self.right[child]), of)]
        return result


@dataclass(frozen=True)
class Cuts(TreeShape):
    """A forest with i inner nodes, r roots and i + r leaves, on f features.

    Inner node j sends a row to `left[j]` if `weights[j] @ features < threshold[j]`, else to
    `right[j]`. A child or root c >= 0 is an inner node, c < 0 is the leaf -1 - c. Inner nodes come
    before their children: c > j.

    Attributes:
        weights: float32[i, f]. The weights of each cut.
        threshold: float32[i]. The threshold of each cut.
        left: int32[i]. The left child of each inner node.
        right: int32[i]. The right child of each inner node.
        roots: int32[r]. The root of each tree.
    """

    weights: Singles
    threshold: Singles
    left: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]
    roots: npt.NDArray[np.int32]

    @property
    def depth(self) -> int:
        """The largest number of cuts that a row passes."""
        depth = np.zeros(len(self.threshold), np.int64)
        for j in range(len(self.threshold) - 1, -1, -1):
            below = [depth[c] for c in (self.left[j], self.right[j]) if c >= 0]
            depth[j] = 1 + max(below, default=0)
        return int(max(depth[self.roots[self.roots >= 0]], default=0))

    def levels(self) -> list[Level]:
        """The forest level by level, for a walk by look-ups.

        A row starts at the place of its root. From place p of a level, it goes to place child[p] of
        the next level, or to child[p] + 1 if weights[cut[p]] @ (features, -1, 0, ...) >= 0. A leaf
        above the last level is repeated on every level below it, where no cut is looked at. On the
        last level child[p] is the id of the leaf.
        """
        result = []
        places = self.roots.astype(np.int64)  # the node or leaf at each place
        cuts = with_threshold(self.weights, self.threshold)
        for _ in range(self.depth):
            inner = places >= 0
            at = places[inner]
            cut = np.full(len(places), NO_CUT)
            cut[inner] = np.arange(len(at))
            child = np.empty(len(places), np.int64)
            child[inner] = 2 * np.arange(len(at))
            child[~inner] = 2 * len(at) + np.arange(len(places) - len(at))
            result.append(Level(cuts[at], cut, child))
            pairs = np.column_stack([self.left[at], self.right[at]]).reshape(-1)
            places = np.concatenate([pairs, places[~inner]]).astype(np.int64)
        return [*result, Level(cuts[:0], np.full(len(places), NO_CUT), -1 - places)]

    def to_dict(self) -> dict[str, Any]:
        """The forest as lists, for the private run record."""
        return {
            "weights": self.weights.tolist(),
            "threshold": self.threshold.tolist(),
            "left": self.left.tolist(),
            "right": self.right.tolist(),
            "roots": self.roots.tolist(),
        }


class FlatTree(NamedTuple):
    """A forest of cuts of a block's columns, in a few arrays: for compiled loops, and quick to send
    to a task.

    Attributes:
        column: int32[i]. The column of the cut of each inner node; -1 - j for the plane j.
        threshold: float32[i]. The threshold of each `Below`; of others it is not used.
        start: int64[i + 1]. Where the codes of each inner node start, then their number; only an
            `Among` has some.
        codes: int32[]. The codes that go left, ascending for each cut.
        weights: float32[planes, w]. The planes, from `with_threshold`.
        tops: int32[t, 2]. `Sample.tops`, which the planes weigh.
        sides: int32[i, 2]. The left and the right child of each inner node, as in `Cuts`.
        roots: int32[r]. The root of each tree.
    """

    column: Codes
    threshold: Singles
    start: Ints
    codes: Codes
    weights: Singles
    tops: Codes
    sides: Codes
    roots: Codes


def no_cuts(n_features: int, n_roots: int) -> Cuts:
    """A forest without cuts: each root is a leaf."""
    none = np.zeros(0, np.float32)
    ids = np.zeros(0, np.int32)
    roots = -1 - np.arange(n_roots, dtype=np.int32)
    return Cuts(none.reshape(0, n_features), none, ids, ids, roots)


def score_rows(cuts: Singles, rows: Singles) -> Singles:
    """float32[n]. weights @ features - threshold of each row; negative if the row goes left.

    Args:
        cuts: float32[n or 1, w]. One cut per row, or one for all rows, from `with_threshold`.
        rows: float32[n, w]. The rows, from `with_one`.
    """
    total = np.zeros(len(rows), np.float32)
    for start in range(0, rows.shape[1], CHUNK):
        part = cuts[:, start] * rows[:, start]
        for j in range(start + 1, start + CHUNK):
            part += cuts[:, j] * rows[:, j]
        total += part
    return total


def with_threshold(weights: Singles, threshold: Singles) -> Singles:
    """The weights of cuts, with the threshold as the last weight, zero-padded to whole chunks."""
    return _fill(np.column_stack([weights, threshold]))


def with_one(features: Singles) -> Singles:
    """The features of rows, with -1 as the last feature, zero-padded to whole chunks."""
    return _fill(np.column_stack([features, np.full(len(features), -1)]))


def _fill(array: npt.NDArray[Any]) -> Singles:
    n, width = array.shape
    result = np.zeros((n, -(-width // CHUNK) * CHUNK), np.float32)
    result[:, :width] = array
    return result

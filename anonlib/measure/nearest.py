"""The nearest released tuples of original rows, column by column."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from anonlib.arrays import Bools, Floats, Ints, Sparse
from anonlib.hierarchy.tree import Tree

#: Squared distances count as equal up to this relative difference, since they are rounded; or up
#: to this one, in squares of standard deviations.
TIE, NEGLIGIBLE = 1e-9, 1e-18
#: The number of distances in memory at once. They fit in a CPU cache.
CHUNK = 2**18


class Distances:
    """Squared distances from n original values of a column to its d distinct released values."""

    @abstractmethod
    def squared(self, rows: slice) -> Floats:
        """float64[rows, d]. The squared distances of some of the original values."""


@dataclass(frozen=True, eq=False)
class SpanDistances(Distances):
    """Distances between numbers and ranges: 0 inside, else the distance from the nearer end.

    A missing value has the mean. If only one of the two values is missing, 1 is added to the
    squared distance.

    Attributes:
        value: float64[n]. The original numbers.
        absent: bool[n]. Whether they are missing.
        low: float64[d]. Lower ends of the released ranges.
        high: float64[d]. Upper ends.
        blank: bool[d]. Whether each released range is missing.
    """

    value: Floats
    absent: Bools
    low: Floats
    high: Floats
    blank: Bools

    def squared(self, rows: slice) -> Floats:
        value = self.value[rows, None]
        gap = np.maximum(np.maximum(self.low - value, value - self.high), 0.0)
        result: Floats = gap * gap + (self.absent[rows, None] != self.blank)
        return result


@dataclass(frozen=True, eq=False)
class ShareDistances(Distances):
    """Distances between categories and sets with shares: 1 - the category's share.

    Attributes:
        code: int64[n]. The original categories.
        share: csr_matrix[c, d]. The share of each category in each released value. A set has the
            share 1 of each of its categories, a single category the share 1 of itself.
    """

    code: Ints
    share: Sparse

    def squared(self, rows: slice) -> Floats:
        away: Floats = 1.0 - self.share[self.code[rows]].toarray()
        return away * away


@dataclass(frozen=True, eq=False)
class NodeDistances(Distances):
    """Distances between leaves and nodes of a tree.

    The distance is 0 below the node, else the loss of the lowest common ancestor. A missing value
    has the code -1 and counts as a child of the root.

    Attributes:
        leaf: int64[n]. The original leaves.
        node: int64[d]. The released nodes; -2 for one that the tree lacks.
        tree: The tree.
    """

    leaf: Ints
    node: Ints
    tree: Tree

    def squared(self, rows: slice) -> Floats:
        leaf, node = self.leaf[rows, None], self.node[None, :]
        root = len(self.tree.parent) - 1
        away = np.where(leaf == node, 0.0, 1.0)  # right for missing values; the others follow below
        away[np.broadcast_to(node == root, away.shape)] = 0.0
        r, c = np.nonzero((leaf >= 0) & (node >= 0))
        first = np.minimum(self.leaf[rows][r], self.tree.low[self.node[c]])
        last = np.maximum(self.leaf[rows][r], self.tree.high[self.node[c]] - 1)
        inside = (first == self.tree.low[self.node[c]]) & (last == self.tree.high[self.node[c]] - 1)
        away[r, c] = np.where(inside, 0.0, self.tree.loss[self.tree.common(first, last)])
        return away * away


class MatchedColumn(NamedTuple):
    """One column of an attack.

    Attributes:
        distances: The distances from its d distinct released values.
        place: int64[t]. The distinct value of each tuple, 0..d-1.
    """

    distances: Distances
    place: Ints


class Links(NamedTuple):
    """The links of an attack.

    Attributes:
        own: int64[rows]. 1 if the row's own tuple is among the nearest tuples, else 0.
        n_tuples: int64[rows]. The number of nearest tuples.
        n_rows: int64[rows]. The released rows of these tuples.
    """

    own: Ints
    n_tuples: Ints
    n_rows: Ints


@dataclass(frozen=True, eq=False)
class Attack:
    """n original rows, and the t released tuples to which they may belong.

    Attributes:
        columns: The quasi-identifiers.
        own: int64[n]. The tuple that each row was released as.
        n_rows: int64[t]. The released rows of each tuple.
    """

    columns: tuple[MatchedColumn, ...]
    own: Ints
    n_rows: Ints

    @property
    def chunk(self) -> int:
        """The number of rows to compare at once."""
        return max(1, CHUNK // max(1, len(self.n_rows)))

    def linked(self, rows: slice) -> Links:
        """Links some rows to their nearest tuples. Cost: O(rows t) per column."""
        own = self.own[rows]
        total = np.zeros((len(own), len(self.n_rows)))
        for column in self.columns:
            total += column.distances.squared(rows)[:, column.place]
        nearest = total <= total.min(axis=1, keepdims=True) * (1 + TIE) + NEGLIGIBLE
        return Links(
            nearest[np.arange(len(own)), own].astype(np.int64),
            nearest.sum(axis=1),
            nearest @ self.n_rows,
        )

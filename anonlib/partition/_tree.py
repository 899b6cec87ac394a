"""Trees that grow: the sample that partitioners see, and their cuts."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from anonlib.arrays import Bools, Ints
from anonlib.partition.cuts import Singles, score_rows, with_one, with_threshold
from anonlib.table.block import Block

#: Most categories of a nominal column that have a coordinate of their own.
TOP_CATEGORIES = 8
#: Rarer categories don't guide the cuts.
MIN_SHARE = 0.02
#: Two rows of different categories are at squared distance 1, as in kernels.
INDICATOR = np.float32(np.sqrt(0.5))


class Below(NamedTuple):
    """Rows whose value of a column is below the threshold go left. Columns 0..p-1 are the block's
    numeric columns, p..p+q-1 the codes of its nominal columns."""

    column: int
    threshold: float


class Among(NamedTuple):
    """Rows whose code of a nominal column, p..p+q-1, is among `codes` go left."""

    column: int
    codes: Ints


class Plane(NamedTuple):
    """Rows with weights @ coordinates below the threshold go left."""

    weights: Singles
    threshold: float


Cut = Below | Among | Plane


@dataclass(frozen=True, eq=False)
class Sample:
    """m sampled rows of a table, as partitioners see them.

    Attributes:
        block: The rows.
        place: int64[m]. The place of each row in the order of a seeded hash. The rows with the
            lowest places are again a sample.
        share: The share of the table's rows; exactly 1.0 for all rows.
    """

    block: Block
    place: Ints
    share: float

    @cached_property
    def values(self) -> Singles:
        """float32[m, p + q]: the columns that `Below` and `Among` name, as plans see them. On GRID,
        numbers of less than 16 standard deviations are exact."""
        block = self.block
        return np.column_stack([block.numeric, block.nominal]).astype(np.float32)

    @cached_property
    def tops(self) -> list[tuple[int, int]]:
        """Column and code of the most frequent categories, ties in their order. The first of a
        column is there however rare: a table of such columns must have something to cut by."""
        found = []
        p = self.block.numeric.shape[1]
        for j in range(self.block.nominal.shape[1]):
            counts = np.bincount(self.block.nominal[:, j])
            frequent = np.argsort(-counts, kind="stable")[:TOP_CATEGORIES]
            least = MIN_SHARE * self.block.n
            found += [(p + j, int(c)) for i, c in enumerate(frequent) if not i or counts[c] > least]
        return found

    @cached_property
    def coordinates(self) -> Singles:
        """float32[m, p + tops]: the points that distances are between."""
        numbers = self.values[:, : self.block.numeric.shape[1]]
        indicators = [(self.values[:, j] == c) * INDICATOR for j, c in self.tops]
        return np.column_stack([numbers, *indicators]).astype(np.float32)

    def left(self, cut: Cut, rows: Ints) -> Bools:
        """bool[rows]: which of the rows go left, as plans have it everywhere."""
        match cut:
            case Below(column, threshold):
                below: Bools = self.values[rows, column] < np.float32(threshold)
                return below
            case Among(column, codes):
                return np.isin(self.values[rows, column], codes)
            case Plane(weights, threshold):
                return along(weights, threshold, self.coordinates[rows]) < 0


def along(weights: Singles, threshold: float, x: Singles) -> npt.NDArray[np.float32]:
    """float32[n]: weights @ x - threshold, as plans have it everywhere."""
    return score_rows(with_threshold(weights[None], np.array([threshold])), with_one(x))


@dataclass(frozen=True)
class CutTree:
    """A forest of cuts: a child or root c >= 0 is inner node c, c < 0 is leaf -1 - c."""

    cuts: tuple[Cut, ...]
    left: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]
    roots: npt.NDArray[np.int32]


class Grower:
    """Builds a `CutTree` by cutting leaves one at a time; begins with `n_roots` leaves, its roots
    0..n_roots-1."""

    def __init__(self, n_roots: int = 1):
        self._cuts: list[tuple[Cut, int, int]] = []  # with the children
        self._inner: list[int] = [-1] * n_roots  # child -> inner node, or -1 while it is a leaf
        self._n_roots = n_roots

    def cut(self, leaf: int, cut: Cut) -> tuple[int, int]:
        """Makes an inner node of a leaf; returns its two new leaves."""
        left, right = len(self._inner), len(self._inner) + 1
        self._inner[leaf] = len(self._cuts)
        self._inner += [-1, -1]
        self._cuts.append((cut, left, right))
        return left, right

    def tree(self) -> CutTree:
        """The forest, its leaves numbered in the order in which they were made."""
        numbers = self.leaves()

        def child(c: int) -> int:
            return self._inner[c] if self._inner[c] >= 0 else -1 - numbers[c]

        return CutTree(
            tuple(cut for cut, _, _ in self._cuts),
            np.array([child(left) for _, left, _ in self._cuts], np.int32),
            np.array([child(right) for _, _, right in self._cuts], np.int32),
            np.array([child(root) for root in range(self._n_roots)], np.int32),
        )

    def leaves(self) -> dict[int, int]:
        """The number in the tree of each leaf."""
        return {c: i for i, c in enumerate(c for c, n in enumerate(self._inner) if n < 0)}

"""Growing trees: the sample that partitioners see, and their cuts."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from anonlib.arrays import Bools, Codes, Ints
from anonlib.errors import ContractError
from anonlib.partition.cuts import (
    INDICATOR,
    FlatTree,
    Singles,
    TreeShape,
    score_rows,
    with_one,
    with_threshold,
)
from anonlib.table.block import Block

#: The most categories of a nominal column that get a coordinate.
TOP_CATEGORIES = 8
#: Categories with at most this share of the rows get no coordinate, and so don't guide cuts.
MIN_SHARE = 0.02


class Below(NamedTuple):
    """Rows with a value below the threshold go left.

    Attributes:
        column: 0..p-1 is a numeric column of the block, p..p+q-1 the codes of a nominal one.
        threshold: The lowest value that goes right.
    """

    column: int
    threshold: float


class Among(NamedTuple):
    """Rows with one of the given codes go left.

    Attributes:
        column: p..p+q-1, a nominal column of the block.
        codes: The codes that go left.
    """

    column: int
    codes: Ints


class Plane(NamedTuple):
    """Rows on one side of a hyperplane go left: weights @ coordinates < threshold.

    Attributes:
        weights: float32[coordinates]. See `Sample.coordinates`.
        threshold: The lowest product that goes right.
    """

    weights: Singles
    threshold: float


Cut = Below | Among | Plane


@dataclass(frozen=True, eq=False)
class Sample:
    """m sampled rows of a table, as partitioners see them.

    Attributes:
        block: The rows.
        place: int64[m]. The rank of each row by a seeded hash. The rows with the lowest places are
            a smaller random sample.
        share: The sampled share of the table's rows; exactly 1.0 for all rows.
    """

    block: Block
    place: Ints
    share: float

    @cached_property
    def values(self) -> Singles:
        """float32[m, p + q]. The columns of `Below` and `Among`, as plans see them.

        Numbers on GRID within 16 standard deviations are exact in float32.
        """
        block = self.block
        return np.column_stack([block.numeric, block.nominal]).astype(np.float32)

    @cached_property
    def tops(self) -> list[tuple[int, int]]:
        """(column, code) of the most frequent categories of each nominal column; ties by code.

        The most frequent category of a column is included, however rare it is: a table of such
        columns needs something to cut by.
        """
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
        """float32[m, p + tops]. The rows as points: numeric columns, then indicators of `tops`."""
        numbers = self.values[:, : self.block.numeric.shape[1]]
        indicators = [(self.values[:, j] == c) * INDICATOR for j, c in self.tops]
        return np.column_stack([numbers, *indicators]).astype(np.float32)

    @cached_property
    def points(self) -> Singles:
        """The coordinates as cuts are scored with them (`with_one`)."""
        return with_one(self.coordinates)

    def left(self, cut: Cut, rows: Ints) -> Bools:
        """bool[rows]. Whether each row goes left. Plans decide this in the same way everywhere."""
        match cut:
            case Below(column, threshold):
                below: Bools = self.values[rows, column] < np.float32(threshold)
                return below
            case Among(column, codes):
                return np.isin(self.values[rows, column], codes)
            case Plane(weights, threshold):
                return score_along(weights, threshold, self.points[rows]) < 0


def score_along(weights: Singles, threshold: float, points: Singles) -> npt.NDArray[np.float32]:
    """float32[n]. weights @ x - threshold for the coordinates x of each row, with the rounding of
    plans. points: float32[n, w]. The coordinates, from `with_one`."""
    return score_rows(with_threshold(weights[None], np.array([threshold])), points)


@dataclass(frozen=True)
class CutTree(TreeShape):
    """A forest of cuts. A child or root c >= 0 is the inner node c; c < 0 is the leaf -1 - c.

    Attributes:
        cuts: The cut of each inner node.
        left: int32[i]. The left child of each inner node.
        right: int32[i]. The right child of each inner node.
        roots: int32[r]. The root of each tree.
    """

    cuts: tuple[Cut, ...]
    left: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]
    roots: npt.NDArray[np.int32]


class Grower:
    """Builds a `CutTree` by cutting leaves, one at a time.

    At first the leaves are the roots, 0..n_roots-1. Cuts must be of columns of `sample`, if one is
    given.
    """

    def __init__(self, n_roots: int = 1, sample: Sample | None = None):
        self._sample = sample
        self._cuts: list[tuple[Cut, int, int]] = []  # each with its children
        self._inner: list[int] = [-1] * n_roots  # by node id: its inner node, or -1 for a leaf
        self._n_roots = n_roots

    def cut(self, leaf: int, cut: Cut) -> tuple[int, int]:
        """Replaces a leaf by an inner node. Returns the ids of its left and right leaf.

        Raises ContractError if there is no such leaf, or if the sample can't be cut like this.
        """
        if not self.has_leaf(leaf):
            raise ContractError("a cut must be of a leaf of the tree")
        if self._sample is not None:
            _check_cut(cut, self._sample)
        left, right = len(self._inner), len(self._inner) + 1
        self._inner[leaf] = len(self._cuts)
        self._inner += [-1, -1]
        self._cuts.append((cut, left, right))
        return left, right

    def has_leaf(self, id: int) -> bool:
        """Whether this is the id of a leaf."""
        return 0 <= id < len(self._inner) and self._inner[id] < 0

    def tree(self) -> CutTree:
        """The forest so far. Its leaves are numbered in the order in which they were made."""
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
        """By leaf id: its number in `tree()`."""
        return {c: i for i, c in enumerate(c for c, n in enumerate(self._inner) if n < 0)}


def _check_cut(cut: Cut, sample: Sample) -> None:
    """Raises ContractError if rows of a sample can't be sent left or right by a cut."""
    p, q = sample.block.numeric.shape[1], sample.block.nominal.shape[1]
    fits, numbers = False, np.zeros(0)
    if isinstance(cut, Below):
        fits, numbers = 0 <= cut.column < p + q, np.array([cut.threshold])
    elif isinstance(cut, Among):
        fits = p <= cut.column < p + q
    elif isinstance(cut, Plane):
        fits = len(cut.weights) == sample.coordinates.shape[1]
        numbers = np.append(cut.weights, cut.threshold)
    if not fits or not np.isfinite(numbers).all():
        raise ContractError(
            f"a cut must be along the {p} numeric and {q} nominal columns of the sample, which are "
            "numbered from 0, and its numbers must be finite"
        )


def flatten_tree(tree: CutTree, sample: Sample) -> FlatTree:
    """The arrays of a forest that grew on a sample."""
    planes = [cut for cut in tree.cuts if isinstance(cut, Plane)]
    p = sample.block.numeric.shape[1]
    weights = np.zeros((len(planes), p + len(sample.tops)), np.float32)
    for row, plane in zip(weights, planes, strict=True):
        row[:] = plane.weights
    column, codes, n_planes = [], [], 0
    for cut in tree.cuts:
        column.append(-1 - n_planes if isinstance(cut, Plane) else cut.column)
        codes.append(np.unique(cut.codes) if isinstance(cut, Among) else np.zeros(0, np.int64))
        n_planes += isinstance(cut, Plane)
    return FlatTree(
        np.array(column, np.int32),
        np.array([0 if isinstance(c, Among) else c.threshold for c in tree.cuts], np.float32),
        np.cumsum([0, *map(len, codes)]),
        np.concatenate([np.zeros(0, np.int64), *codes]).astype(np.int32),
        with_threshold(weights, np.array([plane.threshold for plane in planes])),
        np.array(sample.tops, np.int32).reshape(-1, 2),
        np.column_stack([tree.left, tree.right]),
        tree.roots,
    )


def send_rows(tree: FlatTree, block: Block, root: Ints) -> Ints:
    """int64[n]. The leaf of each row of a table, by a forest that grew on a sample of it. root:
    int64[n], the tree of each row."""
    from anonlib.kernels.merge import make_writable
    from anonlib.partition._walk_core import walk  # this imports numba

    # Arrays that came by pickle may be read-only: loops would be compiled anew for these.
    arrays: Iterable[Any] = map(make_writable, cast(Iterable[Codes], tree))
    columns = make_writable(block.numeric), make_writable(block.nominal)
    return walk(*columns, FlatTree(*arrays), root)

"""The search for the node of a generalization lattice at which a table loses least."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import reduce
from math import prod
from typing import ClassVar, NamedTuple

import numpy as np

from anonlib.arrays import GRID, Bools, Ints
from anonlib.hierarchy.tree import Tree
from anonlib.table.block import Block

#: The loss of a value that is lost entirely, where values differ, in steps of GRID.
ALL = round(1 / GRID)
#: Greater than any loss: the bound of nodes that are ruled out.
OUT = 2**61
#: The most nodes of a lattice that `LatticeSearch` takes. A node takes 24 bytes.
MOST_NODES = 2**22

Heights = tuple[int, ...]


class LatticeColumn(NamedTuple):
    """A nominal column with c codes, at all heights 0..h.

    Attributes:
        node: int64[h + 1, c]. The node to which each code is generalized.
        loss: int64[h + 1, c]. The loss of that node per row, in steps of GRID.
        total: int64[h + 1]. The loss of all rows.
        worst: The loss of a value that is lost entirely; 0 for a column of a single category, which
            loses nothing, as in `nllm` and `ncp`. It has height 0 only.
    """

    node: Ints
    loss: Ints
    total: Ints
    worst: int


class NodeClasses(NamedTuple):
    """The classes at a lattice node.

    Attributes:
        id: int64[m]. The class of each tuple.
        first: int64[classes]. The first tuple of each class.
        rows: int64[classes]. The rows of each class.
    """

    id: Ints
    first: Ints
    rows: Ints


class Failing(NamedTuple):
    """The failing classes at a lattice node.

    Attributes:
        rows: Their rows.
        loss: The loss of their suppression, in addition to generalization.
    """

    rows: int
    loss: int


class HeightLattice:
    """The generalization lattice of a block, over its m distinct tuples.

    Attributes:
        shape: [q]. The number of heights of each nominal column.
        n_nodes: The number of nodes.
        block: The block.
        codes: int32[m, q]. The codes of each tuple.
        rows: int64[m]. The rows of each tuple.
        columns: [q]. Each nominal column at all heights.
        start: int64[q]. Where the codes of each column begin, side by side.
        n_looks: How often `classes` was called.
    """

    def __init__(self, block: Block):
        trees = [block.tree(j) for j in range(block.nominal.shape[1])]
        self.block = block
        self.codes = np.ascontiguousarray(block.nominal[block.tuples.first])
        self.rows = block.tuples.count
        self.columns = [
            _column(tree, np.bincount(codes, self.rows, int(tree.high[-1])))
            for tree, codes in zip(trees, self.codes.T, strict=True)
        ]
        self.shape = tuple(len(column.node) for column in self.columns)
        self.n_nodes = prod(self.shape)
        self.start = np.cumsum(block.n_categories) - block.n_categories
        self.n_looks = 0

    def floor(self, heights: Heights) -> int:
        """The loss of a node by generalization alone."""
        return sum(int(col.total[h]) for col, h in zip(self.columns, heights, strict=True))

    def classes(self, heights: Heights) -> NodeClasses:
        """The classes at a node. Cost O(m q)."""
        from anonlib.kernels.full_domain.core import find_equal_tuples

        self.n_looks += 1
        node = [column.node[h] for column, h in zip(self.columns, heights, strict=True)]
        joined = np.concatenate([np.zeros(0, np.int64), *node])
        return NodeClasses(*find_equal_tuples(self.codes, self.rows, joined, self.start))

    def failing(self, heights: Heights, classes: NodeClasses, fails: Bools) -> Failing:
        """The rows of failing classes, and the loss of suppressing them. fails: bool[classes]."""
        rows, codes = classes.rows[fails], self.codes[classes.first[fails]]
        left = np.full(len(rows), sum(column.worst for column in self.columns))
        for j, (column, h) in enumerate(zip(self.columns, heights, strict=True)):
            left -= column.loss[h][codes[:, j]]
        return Failing(int(rows.sum()), int(rows @ left))

    def holding(self, classes: NodeClasses) -> Bools:
        """bool[classes]. Which classes hold every model."""
        return self.block.holds(classes.id[self.block.tuples.id], len(classes.rows))


def _column(tree: Tree, rows: Ints) -> LatticeColumn:
    """The column with this hierarchy. rows: int64[c], the rows of each code."""
    varies = len(rows) > 1
    worst, top = (ALL, int(tree.heights[-1])) if varies else (0, 0)
    steps = np.rint(tree.loss * worst).astype(np.int64)
    codes = np.arange(len(rows))
    node = np.stack([tree.raised(codes, h) for h in range(top + 1)])
    return LatticeColumn(node, steps[node], steps[node] @ rows.astype(np.int64), worst)


class NodeSearch(ABC):
    """A search for the node of least loss that suppresses at most `may_suppress` rows.

    Ties go to the least sum of heights, then to the least heights in order of columns.

    Attributes:
        judges_all: Whether it judges the classes of all nodes by all models, not only those of
            nodes that may be the best.
        block: The block.
        lattice: Its lattice.
        closed: Whether all failing classes of a node give bounds for the nodes below. Otherwise,
            only classes with too few rows do.
        best: The best node so far. At first, this is the top.
        least: Its loss.
    """

    judges_all: ClassVar[bool] = False

    def __init__(self, lattice: HeightLattice):
        self.block, self.lattice = lattice.block, lattice
        # If a class holds the models as soon as a part of it does, all parts of a failing class
        # fail. Under other models at least one part fails; without suppression, that is enough.
        self.closed = self.block.may_suppress == 0 or not (
            self.block.joint or any(model.looks_at == "counts" for model in self.block.models)
        )
        self.best = tuple(n - 1 for n in lattice.shape)
        self.least = lattice.floor(self.best)  # the block holds its models as one cell

    @abstractmethod
    def run(self) -> Heights:
        """Returns the best node; `least` is its loss."""

    @abstractmethod
    def describe(self) -> str:
        """What the notes of a release say about the search."""

    @abstractmethod
    def _rule_out_below(self, heights: Heights, failing: Failing) -> None:
        """Raises the bounds of the nodes below. There, the parts of failing classes fail too, and
        their suppression loses no less."""

    def _rule_out_above(self, heights: Heights) -> None:  # noqa: B027
        """Rules out the nodes above a node without failing classes. They lose no less."""

    def _descend(self) -> None:
        """Finds a first node of low loss. From the top, it lowers one column at a time: the column
        that saves most."""
        heights, columns = self.best, set(range(len(self.best)))
        while columns := {j for j in columns if heights[j] > 0}:
            lower = {j: set_height(heights, j, heights[j] - 1) for j in columns}
            j = min(columns, key=lambda j: (self.lattice.floor(lower[j]), j))
            self._look(lower[j])
            if self.best == lower[j]:
                heights = lower[j]
            else:
                columns.remove(j)

    def _better(self, loss: int, heights: Heights) -> bool:
        return (loss, sum(heights), heights) < (self.least, sum(self.best), self.best)

    def _look(self, heights: Heights) -> int:
        """Evaluates a node. Returns its loss, or OUT if it suppresses too many rows.

        If the node can't be the best, and `judges_all` is not set, this is a lower bound.
        """
        floor, may = self.lattice.floor(heights), self.block.may_suppress
        classes = self.lattice.classes(heights)
        small = classes.rows < self.block.min_rows
        failing = below = self.lattice.failing(heights, classes, small)
        judge = self.judges_all or self._better(floor + failing.loss, heights)
        if judge and failing.rows <= may and not self.block.counts_rows_only:
            failing = self.lattice.failing(heights, classes, ~self.lattice.holding(classes))
            below = failing if self.closed else below
        self._rule_out_below(heights, below)
        loss = floor + failing.loss if failing.rows <= may else OUT
        if self._better(loss, heights):
            self.best, self.least = heights, loss
            if failing.rows == 0:  # no class fails at the nodes above either
                self._rule_out_above(heights)
        return loss


class LatticeSearch(NodeSearch):
    """The exact search, with arrays of all nodes.

    Attributes:
        floor: int64[shape]. The loss of each node by generalization alone.
        height: int64[shape]. The sum of the heights of each node.
        lower: int64[shape]. A lower bound of the loss of each node; OUT if the node was evaluated
            or is ruled out.
    """

    def __init__(self, lattice: HeightLattice):
        super().__init__(lattice)
        self.floor = _sums([column.total for column in lattice.columns])
        self.height = _sums([np.arange(n) for n in lattice.shape])
        self.lower = self.floor.copy()
        self.lower[self.best] = OUT

    def run(self) -> Heights:
        self._descend()
        while (heights := self._next()) is not None:
            self._look(heights)
        return self.best

    def describe(self) -> str:
        return describe_exact(self.lattice)

    def _next(self) -> Heights | None:
        """The highest node that may be the best; None if there is none.

        The highest comes first because it can rule out all nodes below.
        """
        open_ = self.lower < self.least
        if open_.any():
            return self._at(int(np.argmax(np.where(open_, self.height, -1))))
        ties = map(self._at, np.flatnonzero(self.lower == self.least).tolist())
        return next((each for each in ties if self._better(self.least, each)), None)

    def _at(self, place: int) -> Heights:
        return tuple(map(int, np.unravel_index(place, self.floor.shape)))

    def _rule_out_below(self, heights: Heights, failing: Failing) -> None:
        nodes = tuple(slice(h + 1) for h in heights)
        if failing.rows > self.block.may_suppress:
            self.lower[nodes] = OUT
        else:
            bound = self.floor[nodes] + failing.loss
            self.lower[nodes] = np.maximum(self.lower[nodes], bound)
        self.lower[heights] = OUT

    def _rule_out_above(self, heights: Heights) -> None:
        self.lower[tuple(slice(h, None) for h in heights)] = OUT


def set_height(heights: Heights, j: int, height: int) -> Heights:
    """The node with another height of column j."""
    return (*heights[:j], height, *heights[j + 1 :])


def describe_exact(lattice: HeightLattice) -> str:
    """What the notes of a release say about a search that is exact."""
    count = f"all {lattice.n_nodes:,} choices" if lattice.n_nodes > 1 else "the only choice"
    return f"full_domain: an exact search: these levels lose least of {count}"


def _sums(columns: Sequence[Ints]) -> Ints:
    """For every node, the sum of the columns' values at its heights."""
    return reduce(np.add.outer, columns, np.zeros((), np.int64))

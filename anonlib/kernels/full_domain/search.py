"""The search for the node of a generalization lattice at which a table loses least."""

from collections.abc import Sequence
from functools import reduce
from math import prod
from typing import NamedTuple

import numpy as np

from anonlib.arrays import GRID, Bools, Ints
from anonlib.errors import InputError
from anonlib.hierarchy.tree import Tree
from anonlib.table.block import Block

#: What is lost of a value of which all is lost: losses are counted in steps of GRID.
ALL = round(1 / GRID)
#: More than any loss: nodes with it are out.
OUT = 2**61
#: The largest lattice: its nodes take 24 bytes each.
MOST_NODES = 2**22

Heights = tuple[int, ...]


class LatticeColumn(NamedTuple):
    """A nominal column at all heights 0..h. node: int64[h + 1, c], what each code is generalized
    to; loss: int64[h + 1, c], what that loses of a row; total: int64[h + 1], of all rows."""

    node: Ints
    loss: Ints
    total: Ints


class NodeClasses(NamedTuple):
    """The tuples that are one at a node: id[i] is the class of tuple i; of each class, the first
    tuple and the rows."""

    id: Ints
    first: Ints
    rows: Ints


class Failing(NamedTuple):
    """What fails at a node: its rows, and what they lose besides what generalization takes."""

    rows: int
    loss: int


class HeightLattice:
    """A block's distinct tuples and all ways to generalize each column to a height.

    codes: int32[m, q], rows: int64[m]. n_looks: how often classes have been made.
    Raises InputError where it has more than MOST_NODES nodes.
    """

    def __init__(self, block: Block):
        trees = [block.tree(j) for j in range(block.nominal.shape[1])]
        self.shape = tuple(int(tree.heights[-1]) + 1 for tree in trees)
        if prod(self.shape) > MOST_NODES:
            raise InputError(
                f"full_domain: the lattice has {prod(self.shape):,} nodes, more than "
                f"{MOST_NODES:,}; take fewer columns, or lower hierarchies"
            )
        self.block = block
        self.codes = np.ascontiguousarray(block.nominal[block.tuples.first])
        self.rows = block.tuples.count
        self.columns = [
            _column(tree, np.bincount(codes, self.rows, int(tree.high[-1])))
            for tree, codes in zip(trees, self.codes.T, strict=True)
        ]
        self.start = np.cumsum(block.n_categories) - block.n_categories
        self.n_looks = 0

    def classes(self, heights: Heights) -> NodeClasses:
        """The classes at a node. Cost O(m q)."""
        from anonlib.kernels.full_domain.core import find_equal_tuples

        self.n_looks += 1
        node = [column.node[h] for column, h in zip(self.columns, heights, strict=True)]
        joined = np.concatenate([np.zeros(0, np.int64), *node])
        return NodeClasses(*find_equal_tuples(self.codes, self.rows, joined, self.start))

    def failing(self, heights: Heights, classes: NodeClasses, fails: Bools) -> Failing:
        """What it means that these classes fail."""
        rows, codes = classes.rows[fails], self.codes[classes.first[fails]]
        left = np.full(len(rows), ALL * len(heights))
        for j, (column, h) in enumerate(zip(self.columns, heights, strict=True)):
            left -= column.loss[h][codes[:, j]]
        return Failing(int(rows.sum()), int(rows @ left))

    def holding(self, classes: NodeClasses) -> Bools:
        """bool[classes]: which of them hold every model."""
        return self.block.holds(classes.id[self.block.tuples.id], len(classes.rows))


def _column(tree: Tree, rows: Ints) -> LatticeColumn:
    """The column of a hierarchy, and of how many rows have each code."""
    steps = np.rint(tree.loss * ALL).astype(np.int64)
    codes = np.arange(len(rows))
    node = np.stack([tree.raised(codes, h) for h in range(int(tree.heights[-1]) + 1)])
    return LatticeColumn(node, steps[node], steps[node] @ rows.astype(np.int64))


class LatticeSearch:
    """The node of least loss among those where the classes that fail have few enough rows; of
    several, that of the least sum of heights, then of the least heights in order of columns.

    floor: int64[shape], what generalizing alone loses. lower: int64[shape], no less is lost at a
    node; OUT where it can't be the one, or has been looked at.
    """

    def __init__(self, block: Block):
        self.block, self.lattice = block, HeightLattice(block)
        self.floor = _sums([column.total for column in self.lattice.columns])
        self.height = _sums([np.arange(n) for n in self.lattice.shape])
        self.lower = self.floor.copy()
        # Whether a class holds the models if a part of it does: what fails at a node then fails at
        # all nodes below it. Other models hold of a union for sure only if they do of all parts.
        self.closed = block.may_suppress == 0 or not (
            block.joint or any(model.looks_at == "counts" for model in block.models)
        )
        self.best = tuple(n - 1 for n in self.lattice.shape)
        self.least = int(self.floor[self.best])  # the block holds its models as one cell
        self.lower[self.best] = OUT

    def run(self) -> Heights:
        """The node; `least` is its loss."""
        self._descend()
        while (heights := self._next()) is not None:
            self._look(heights)
        return self.best

    def _descend(self) -> None:
        """A first node that loses little: from the top, ever one column lower, where that takes off
        most."""
        heights, columns = self.best, set(range(len(self.best)))
        while columns := {j for j in columns if heights[j] > 0}:
            lower = {j: (*heights[:j], heights[j] - 1, *heights[j + 1 :]) for j in columns}
            j = min(columns, key=lambda j: (int(self.floor[lower[j]]), j))
            if self._look(lower[j]):
                heights = lower[j]
            else:
                columns.remove(j)

    def _next(self) -> Heights | None:
        """Of the nodes that may be the best, one far up: if it isn't allowed, none below is."""
        open_ = self.lower < self.least
        if open_.any():
            return self._at(int(np.argmax(np.where(open_, self.height, -1))))
        ties = map(self._at, np.flatnonzero(self.lower == self.least).tolist())
        return next((each for each in ties if self._better(self.least, each)), None)

    def _at(self, place: int) -> Heights:
        return tuple(map(int, np.unravel_index(place, self.floor.shape)))

    def _better(self, loss: int, heights: Heights) -> bool:
        return (loss, sum(heights), heights) < (self.least, sum(self.best), self.best)

    def _look(self, heights: Heights) -> bool:
        """Evaluates a node, and says whether it is the best so far."""
        floor, may = int(self.floor[heights]), self.block.may_suppress
        classes = self.lattice.classes(heights)
        small = classes.rows < self.block.min_rows
        failing = below = self.lattice.failing(heights, classes, small)
        better = failing.rows <= may and self._better(floor + failing.loss, heights)
        if better and not self.block.counts_rows_only:
            failing = self.lattice.failing(heights, classes, ~self.lattice.holding(classes))
            better = failing.rows <= may and self._better(floor + failing.loss, heights)
            below = failing if self.closed else below
        self._rule_out_below(heights, below)
        if better:
            self.best, self.least = heights, floor + failing.loss
            if failing.rows == 0:  # then nothing fails further up
                self.lower[tuple(slice(h, None) for h in heights)] = OUT
        return better

    def _rule_out_below(self, heights: Heights, failing: Failing) -> None:
        """What fails at this node fails at those below it, and loses no less besides what
        generalization takes."""
        nodes = tuple(slice(h + 1) for h in heights)
        if failing.rows > self.block.may_suppress:
            self.lower[nodes] = OUT
        else:
            bound = self.floor[nodes] + failing.loss
            self.lower[nodes] = np.maximum(self.lower[nodes], bound)
        self.lower[heights] = OUT


def _sums(columns: Sequence[Ints]) -> Ints:
    """At every node the sum of what the columns have at its heights."""
    return reduce(np.add.outer, columns, np.zeros((), np.int64))

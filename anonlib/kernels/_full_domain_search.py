"""The search for the node of a generalization lattice at which a table loses least."""

from functools import cached_property
from math import prod
from typing import NamedTuple

import numpy as np

from anonlib.block import GRID, Block, Bools, Codes, Ints, Tree
from anonlib.errors import InputError

#: What is lost of a value of which all is lost: losses are counted in steps of GRID.
ALL = round(1 / GRID)
#: More than any loss: nodes with it are out.
OUT = 2**61
#: The largest lattice: its nodes take 16 bytes each.
MOST_NODES = 2**22

Heights = tuple[int, ...]


class Column(NamedTuple):
    """A nominal column at all heights 0..h. node: int32[h + 1, c], what each code is generalized
    to; loss: int64[h + 1, c], what that loses of a row; total: int64[h + 1], of all rows."""

    node: Codes
    loss: Ints
    total: Ints


class Classes(NamedTuple):
    """Tuples with equal nodes: of each class the first of them and its rows; of each item that it
    was made from, which class it is in."""

    id: Ints
    first: Ints
    rows: Ints


class Failing(NamedTuple):
    """What fails at a node: rows, and what they lose more than generalization takes from them."""

    rows: int
    loss: int


class Lattice:
    """A block of nominal columns and all ways to generalize each to a height.

    n_looks: how many nodes have been evaluated.
    Raises InputError if that is more than MOST_NODES.
    """

    def __init__(self, block: Block):
        first = block.tuples.first
        self.block = block
        trees = [block.tree(j) for j in range(block.nominal.shape[1])]
        self.shape = tuple(int(tree.heights[-1]) + 1 for tree in trees)
        if prod(self.shape) > MOST_NODES:
            text = f"the lattice has {prod(self.shape):,} nodes, more than {MOST_NODES:,}"
            raise InputError(
                f"full_domain: {text}; take fewer columns, or hierarchies of less height"
            )
        self.codes = np.ascontiguousarray(block.nominal[first])
        self.rows = block.tuples.count
        self.columns = [
            _column(tree, np.bincount(codes, self.rows, int(tree.high[-1])))
            for tree, codes in zip(trees, self.codes.T, strict=True)
        ]
        self.start = np.cumsum(block.n_categories) - block.n_categories
        self.n_looks = 0

    @cached_property
    def floor(self) -> Ints:
        """int64[shape]: what generalization alone loses at every node; it grows upward."""
        floor = np.zeros((), np.int64)
        for column in self.columns:
            floor = np.add.outer(floor, column.total)
        return floor

    def classes(self, heights: Heights) -> Classes:
        """The classes of the tuples at a node. Cost O(m q)."""
        from anonlib.kernels._full_domain_core import classes

        self.n_looks += 1
        item = np.arange(len(self.rows))
        node = [column.node[h] for column, h in zip(self.columns, heights, strict=True)]
        none = np.zeros(0, np.int32)
        return Classes(
            *classes(self.codes, item, self.rows, np.concatenate([none, *node]), self.start)
        )

    def failing(self, heights: Heights, classes: Classes, fails: Bools) -> Failing:
        """What the rows of the classes that fail lose, besides what generalization does."""
        rows = classes.rows[fails]
        codes = self.codes[classes.first[fails]]
        left = np.full(len(rows), ALL * len(heights))
        for j, (column, h) in enumerate(zip(self.columns, heights, strict=True)):
            left -= column.loss[h][codes[:, j]]
        return Failing(int(rows.sum()), int(rows @ left))

    def holding(self, classes: Classes) -> Bools:
        """bool[classes]: which of them hold every model."""
        return self.block.holds(classes.id[self.block.tuples.id], len(classes.rows))


def _column(tree: Tree, rows: Ints) -> Column:
    """The column of a hierarchy and the rows of each code."""
    steps = np.rint(tree.loss * ALL).astype(np.int64)
    codes = np.arange(len(rows))
    node = np.stack([tree.raised(codes, h) for h in range(int(tree.heights[-1]) + 1)])
    return Column(node.astype(np.int32), steps[node], steps[node] @ rows.astype(np.int64))


class Search:
    """The node of least loss among those where the classes that fail have few enough rows; of
    several, that of the least sum of heights, then of the least heights in order of columns.

    lower: int64[shape], no node loses less than that; OUT where it isn't the one.
    """

    def __init__(self, block: Block):
        self.block, self.lattice = block, Lattice(block)
        self.floor = self.lattice.floor
        self.lower = self.floor.copy()
        # Whether a class holds the models if a part of it does: what fails at a node then fails at
        # all nodes below it. Other models hold of unions only if they do of both parts.
        self.closed = block.may_suppress == 0 or not (
            block.joint or any(model.looks_at == "counts" for model in block.models)
        )
        self.best = tuple(h - 1 for h in self.lattice.shape)
        self.least = int(self.floor[self.best])  # the block holds its models as one cell
        self.lower[self.best] = OUT

    def run(self) -> Heights:
        self._descend()
        while (heights := self._next()) is not None:
            self.look(heights)
        return self.best

    def better(self, loss: int, heights: Heights) -> bool:
        return (loss, sum(heights), heights) < (self.least, sum(self.best), self.best)

    def look(self, heights: Heights) -> bool:
        """Evaluates a node, and says whether it is the best so far."""
        floor, below = int(self.floor[heights]), tuple(slice(h + 1) for h in heights)
        found = self.lattice.classes(heights)
        small = found.rows < self.block.min_rows
        failing = bound = self.lattice.failing(heights, found, small)
        may = self.block.may_suppress
        better = failing.rows <= may and self.better(floor + failing.loss, heights)
        if better and not self.block.counts_rows_only:
            failing = self.lattice.failing(heights, found, ~self.lattice.holding(found))
            better = failing.rows <= may and self.better(floor + failing.loss, heights)
            bound = failing if self.closed else bound
        lower = self.lower[below]
        if bound.rows > may:
            lower[...] = OUT
        else:
            np.maximum(lower, self.floor[below] + bound.loss, out=lower)
        self.lower[heights] = OUT
        if better:
            self.best, self.least = heights, floor + failing.loss
            if failing.rows == 0:
                self.lower[tuple(slice(h, None) for h in heights)] = OUT
        return better

    def _descend(self) -> None:
        """A first node that loses little: from the top, ever one column lower, where that takes off
        most."""
        heights = self.best
        columns = set(range(len(heights)))
        while columns := {j for j in columns if heights[j] > 0}:
            lower = {j: _with(heights, j, heights[j] - 1) for j in columns}
            j = min(columns, key=lambda j: (int(self.floor[lower[j]]), j))
            if self.look(lower[j]):
                heights = lower[j]
            else:
                columns.remove(j)

    def _next(self) -> Heights | None:
        """Of the nodes that may be the best, one that generalizes most: if it isn't allowed, none
        below is."""
        open_ = self.lower < self.least
        if not open_.any():
            ties = np.argwhere(self.lower == self.least)
            for each in ties:
                heights = tuple(map(int, each))
                if self.better(self.least, heights):
                    return heights
            return None
        place = np.argmax(np.where(open_, self.floor, -1))
        return tuple(map(int, np.unravel_index(place, self.floor.shape)))


def _with(heights: Heights, j: int, height: int) -> Heights:
    return (*heights[:j], height, *heights[j + 1 :])

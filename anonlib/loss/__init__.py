"""Metrics of what a release is worth: mergeable states, the same on a block, in Spark, in a test.

A state is a float64 array of fixed length; `merge` is commutative up to rounding and is applied
in block order, so that a figure repeats exactly.

Figures are those of cells: equal released tuples of cells that lie apart (of two blocks, say) count
as several. Rows without a cell count as lost altogether where the block still has them; rows that
were left out before or after (of blocks that can't hold the models, of the costliest cells) count
not at all, or as the rows of their cells.
"""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from anonlib.arrays import Floats, Ints
from anonlib.hierarchy.tree import Tree
from anonlib.registry import Plugin
from anonlib.table.block import Block


@dataclass(frozen=True, eq=False)
class ReleasedBlock:
    """A block and its m cells, as metrics see them.

    Attributes:
        block: The block.
        id: int64[n]. The cell of each row, 0..m-1, every one in use; -1 for suppressed rows.
        m: Number of cells.
        levels: int64[q] or None. The least height that each nominal column is released at
            (`Tree.raised`). None: a column is released as the lowest node over a cell's values.
    """

    block: Block
    id: Ints
    m: int
    levels: Ints | None = None

    @cached_property
    def weight(self) -> Ints:
        """int64[n]: the rows of the table that each row stands for; rows are such from here on."""
        weight = self.block.weight
        return np.ones(self.block.n, np.int64) if weight is None else weight

    @cached_property
    def n(self) -> int:
        """All rows, the suppressed ones too."""
        return int(self.weight.sum())

    @cached_property
    def rows(self) -> Ints:
        """int64[m]: the rows of each cell."""
        kept = self.order
        return np.bincount(self.id[kept], self.weight[kept], self.m).astype(np.int64)

    @cached_property
    def n_suppressed(self) -> int:
        return self.n - int(self.rows.sum())

    @cached_property
    def order(self) -> Ints:
        """The rows of the block that have a cell, by cell."""
        order = np.argsort(self.id, kind="stable")
        return order[np.searchsorted(self.id[order], 0) :]

    @cached_property
    def start(self) -> Ints:
        """int64[m]: where each cell begins in `order`."""
        return np.searchsorted(self.id[self.order], np.arange(self.m))

    @cached_property
    def trees(self) -> tuple[Tree, ...]:
        """The hierarchies of the nominal columns, flat ones where there are none."""
        return tuple(self.block.tree(j) for j in range(self.block.nominal.shape[1]))

    @cached_property
    def nodes(self) -> tuple[Ints, ...]:
        """int64[m] for each nominal column: the node that each cell is released as."""
        nodes = []
        for j, tree in enumerate(self.trees):
            codes = self.block.nominal[self.order, j].astype(np.int64)
            first = np.minimum.reduceat(codes, self.start)
            node = tree.common(first, np.maximum.reduceat(codes, self.start))
            nodes.append(node if self.levels is None else tree.raised(node, int(self.levels[j])))
        return tuple(nodes)


class Metric(Plugin):
    """A figure of the information lost, from the cells of every block."""

    family: ClassVar[str] = "metric"

    @abstractmethod
    def update(self, released: ReleasedBlock) -> Floats:
        """The state of one block, of one row or more."""

    def merge(self, a: Floats, b: Floats) -> Floats:
        """The state of both."""
        return a + b

    @abstractmethod
    def value(self, state: Floats) -> float | None:
        """The figure; None where it is not defined, as `undefined` explains."""

    def by_column(self, state: Floats) -> Floats | None:
        """float64[p]: the figure of each numeric column of the blocks; None where it has none."""
        return None

    #: why `value` can be None
    undefined: ClassVar[str] = ""

"""Metrics of information loss, as mergeable states.

A metric is the same on one block, in Spark and in a test. A state is a float64 array of fixed
length. `merge` is commutative up to rounding: the last bits of a state depend on which blocks share
a task, which is chance. So figures are rounded (`anonlib.worker.losses`).

Figures are about cells. Cells of two blocks count as two, even if their released tuples are equal.
There are three kinds of suppressed rows:

- Rows without a cell, which a kernel left out, have lost all their information.
- So have rows left out before that, with a controller that can't hold the models (`add_lost`).
- Rows left out after that, because their cells are the costliest, count as rows of their cells.

Metrics that look at cells alone, such as `sse` and `cell_size`, count no suppressed rows: their
texts say so.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from anonlib import registry
from anonlib.arrays import Floats, Ints, freeze, freeze_fields
from anonlib.hierarchy.tree import Tree
from anonlib.registry import Plugin
from anonlib.table.block import Block

#: What a metric looks at: all quasi-identifiers, some of them, the sizes of cells, or the target.
Subject: TypeAlias = Literal["all", "numbers", "categories", "classes", "target"]


@dataclass(frozen=True, eq=False)
class ReleasedBlock:
    """A block and its m cells, as metrics see them. The arrays can't be written to: all metrics get
    the same.

    Attributes:
        block: The block.
        id: int64[n]. The cell of each row, 0..m-1; -1 for suppressed rows. Every cell has rows.
        m: The number of cells.
        block_start: int64[b] or None. The first row of each block, if these are the rows of several
            blocks, one after the other. None stands for one block.
        levels: int64[q] or None. The least height at which each nominal column is released
            (`Tree.raised`). None stands for 0: the lowest common ancestor of a cell's values is
            released.
        least_extents: By column, numeric ones before nominal ones: float64[m], 0 to 1. The least
            share of the column's whole range that the released value of each cell covers, where
            that can be more than the values of the cell do.
    """

    block: Block
    id: Ints
    m: int
    levels: Ints | None = None
    block_start: Ints | None = None
    least_extents: Mapping[int, Floats] = field(default_factory=dict)

    def __post_init__(self) -> None:
        freeze_fields(self, "id", "levels", "block_start")
        extents = {j: freeze(extent) for j, extent in self.least_extents.items()}
        object.__setattr__(self, "least_extents", extents)

    @cached_property
    def weight(self) -> Ints:
        """int64[n]. How many rows of the table each row stands for. All counts below are of rows of
        the table."""
        weight = self.block.weight
        return freeze(np.ones(self.block.n, np.int64)) if weight is None else weight

    @cached_property
    def n(self) -> int:
        """The number of rows, including suppressed ones."""
        return int(self.weight.sum())

    @cached_property
    def rows(self) -> Ints:
        """int64[m]. The rows of each cell."""
        kept = self.order
        return freeze(np.bincount(self.id[kept], self.weight[kept], self.m).astype(np.int64))

    @cached_property
    def n_suppressed(self) -> int:
        return self.n - int(self.rows.sum())

    @cached_property
    def order(self) -> Ints:
        """int64[]. The rows of the block that have a cell, sorted by cell."""
        order = np.argsort(self.id, kind="stable")
        return freeze(order[np.searchsorted(self.id[order], 0) :])

    @cached_property
    def start(self) -> Ints:
        """int64[m]. Where each cell begins in `order`."""
        return freeze(np.searchsorted(self.id[self.order], np.arange(self.m)))

    @cached_property
    def columns(self) -> Floats:
        """float64[p, n]. The numeric columns, each in one piece: faster to read than in rows."""
        return freeze(np.ascontiguousarray(self.block.numeric.T))

    @cached_property
    def squares_within(self) -> Floats:
        """float64[p]. The sum of squares of each numeric column about the means of the cells."""
        kept = np.flatnonzero(self.id >= 0)
        cell_id, weight = self.id[kept], self.weight_of(kept)
        squares = np.zeros(len(self.columns))
        for j, values in enumerate(self.columns):
            column = values[kept]
            mean = np.bincount(cell_id, column * weight, self.m) / self.rows
            squares[j] = np.sum((column - mean[cell_id]) ** 2 * weight)
        return freeze(squares)

    def weight_of(self, rows: Ints) -> Ints | int:
        """`weight` of some rows, as a factor."""
        return 1 if self.block.weight is None else self.block.weight[rows]

    @cached_property
    def trees(self) -> tuple[Tree, ...]:
        """The hierarchies of the nominal columns. Columns without one get a flat one."""
        return tuple(self.block.tree(j) for j in range(self.block.nominal.shape[1]))

    @cached_property
    def nodes(self) -> tuple[Ints, ...]:
        """The released node of each cell: int64[m] for each nominal column."""
        nodes = []
        for j, tree in enumerate(self.trees):
            codes = self.block.nominal[self.order, j].astype(np.int64)
            first = np.minimum.reduceat(codes, self.start)
            node = tree.common(first, np.maximum.reduceat(codes, self.start))
            nodes.append(node if self.levels is None else tree.raised(node, int(self.levels[j])))
        return tuple(map(freeze, nodes))


class Metric(Plugin):
    """A figure of information loss, computed from the cells of all blocks."""

    family: ClassVar[str] = "metric"
    #: What it looks at: reports have these together.
    subject: ClassVar[Subject] = "all"
    #: What it means, as in `Measure.names`: a short plain phrase; after a semicolon, the range or
    #: unit and the worse direction.
    meaning: ClassVar[str] = ""

    @abstractmethod
    def update(self, released: ReleasedBlock) -> Floats:
        """The state of one block. The block has at least one row."""

    def merge(self, a: Floats, b: Floats) -> Floats:
        """The state of two sets of blocks together."""
        return a + b

    def add_lost(self, state: Floats, n_rows: int) -> Floats:
        """The state with further rows, in no block, that have lost all. It is the same where
        suppressed rows don't count."""
        return state

    @abstractmethod
    def value(self, state: Floats) -> float | None:
        """The figure; None if it is not defined (see `undefined`)."""

    def by_column(self, state: Floats) -> Floats | None:
        """float64[p]. The figure of each numeric column; None if the metric has none."""
        return None

    def describe(self, state: Floats) -> str | None:
        """What a release's notes say about the figure; None for nothing."""
        return None

    #: Why `value` can be None.
    undefined: ClassVar[str] = ""
    #: Whether it is a bound of another metric, which takes long: only for configs with
    #: `bound: true`.
    is_bound: ClassVar[bool] = False


def list_metrics(bound: bool) -> tuple[dict[str, Any], ...]:
    """The specs of the metrics of a release.

    Args:
        bound: Whether the config asks for bounds.
    """
    metrics = registry.plugins("metric")
    return tuple(
        {"type": name}
        for name, metric in metrics.items()
        if bound or not (issubclass(metric, Metric) and metric.is_bound)
    )

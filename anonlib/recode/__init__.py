"""Recoders turn a column and its cells into the released column. Each has its own file.

A recoder gives one value per cell, so all rows of a cell are equal by construction.
"""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from anonlib.arrays import Floats, Ints, freeze, freeze_fields
from anonlib.hierarchy import Hierarchy
from anonlib.registry import Plugin
from anonlib.table.schema import Scale

#: An Arrow array of any type. With a more exact type, pyarrow's stubs reject working code.
Column: TypeAlias = Any

#: What a released column holds. Measures, encodings and the audit read it by its form.
#:
#: A recoder that can also write its form as text has a field `form`, set to "text".
#:
#: value: one value of the column's own type, or a mean of such values.
#: interval: struct<lower, upper>, both included; or text "[lower, upper]".
#: set: an array of values, null for missing; or a JSON array as text.
#: node: the name of a node of the column's hierarchy.
#: shares: array<struct<node: int, share: double>> over the leaves of the column's hierarchy.
#: nothing: one text for all rows.
Form: TypeAlias = Literal["value", "interval", "set", "node", "shares", "nothing"]

#: The forms that stand for several values at once. They lose more, the more these are.
EXTENTS: frozenset[Form] = frozenset(("interval", "set", "node", "nothing"))

#: A height that no hierarchy exceeds: generalized to it, every node is the root.
HIGHEST = 2**31 - 1


@dataclass(frozen=True)
class Cells:
    """The m cells of n rows, of one block or several. All recoders get the same arrays, which can't
    be written to.

    Attributes:
        id: int64[n]. The cell of each row, 0..m-1. Every cell has rows.
        m: The number of cells.
        weight: int64[n]. Rows of the table that each row stands for; None for one each. Only
            recoders with `takes_weights` get weights.
        block: int64[m], ascending. The block of each cell; None for a single block.
    """

    id: Ints
    m: int
    weight: Ints | None = None
    block: Ints | None = None

    def __post_init__(self) -> None:
        freeze_fields(self, "id", "weight", "block")

    @cached_property
    def order(self) -> Ints:
        """int64[n]. The rows sorted by cell, in block order within a cell."""
        return freeze(np.argsort(self.id, kind="stable"))

    @cached_property
    def count(self) -> Ints:
        """int64[m]. Rows of the table in each cell."""
        return freeze(self.rows(self.id, self.m))

    def rows(self, id: Ints, n: int) -> Ints:
        """int64[n]. Rows of the table with each id 0..n-1. `id` has the id of each row."""
        return np.bincount(id, self.weight, minlength=n).astype(np.int64)  # exact below 2^53

    @cached_property
    def start(self) -> Ints:
        """int64[m]. Where each cell begins in `order`."""
        return freeze(np.searchsorted(self.id[self.order], np.arange(self.m)))


class Domain(NamedTuple):
    """What is known about the values of a column in the whole table.

    Attributes:
        order: The categories of an ordinal column of text, from low to high; None for the natural
            order.
        hierarchy: The hierarchy of a nominal column, if it has one.
    """

    order: tuple[str, ...] | None = None
    hierarchy: Hierarchy | None = None


class Recoder(Plugin):
    """Turns the values of one quasi-identifier into one released value per cell."""

    family: ClassVar[str] = "recoder"
    #: The scales that it can recode.
    scales: ClassVar[frozenset[Scale]]
    #: Whether a row may stand for several rows of the table, as with tuples.
    takes_weights: ClassVar[bool] = False
    #: Whether the column must have a hierarchy.
    needs_hierarchy: ClassVar[bool] = False
    #: What the released column holds.
    releases: ClassVar[Form] = "value"
    #: Whether a released value is made of all values of its cell, and shows one of them only where
    #: they agree. Otherwise the column must not be made of an identifier.
    blends: ClassVar[bool] = False
    #: Parameters that readers of the release are told, if they are set.
    public_parameters: ClassVar[frozenset[str]] = frozenset()

    def explain(self) -> str:
        """What the released values are, to a reader who may know the public parameters; empty if
        the first paragraph of the docstring says it."""
        return ""

    @property
    def names_nodes(self) -> bool:
        """Whether it releases nodes of the column's hierarchy. Readers then need the hierarchy."""
        return self.releases in ("node", "shares")

    @property
    def shows(self) -> str:
        """What the released values show of single persons, and what to do; empty if nothing."""
        return ""

    @property
    def least_level(self) -> int:
        """The least height of a released node in the hierarchy. Losses are computed from it."""
        return HIGHEST if self.releases == "nothing" else 0

    @property
    def exceeds_cells(self) -> bool:
        """Whether released intervals can be wider than the values of their cells. Losses are then
        computed from their ends."""
        return self.releases == "interval"

    def open_ends(self, low: Floats, high: Floats, column: pa.DataType) -> tuple[Floats, Floats]:
        """The ends of released intervals as they are read: infinite where they say "or less" or
        "or more".

        Args:
            low: float64[n]. The lower ends; NaN for none.
            high: float64[n]. The upper ends.
            column: The column's type.
        """
        return low, high

    @abstractmethod
    def output(self, column: pa.DataType) -> pa.DataType:
        """The type of the released column.

        Raises:
            InputError: The recoder can't take a column of this type.
        """

    @abstractmethod
    def recode(self, values: Column, cells: Cells, domain: Domain) -> Column:
        """Computes the released value of each cell.

        It depends on the present values of the cell, and is null if more than half of the values
        are missing. Recoders that treat missing as a category document their own rule.

        Args:
            values: [n]. The original values of the block, in the source's own type. Missing values
                are null; NaN has become null.
            cells: The cells.
            domain: What is known about the column in the whole table.

        Returns:
            [m], of type `output(values.type)`. The released values.
        """

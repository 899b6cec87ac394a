"""Recoders: a column and its cells -> the released column. One file each.

A recoder gives one value per cell, so that all rows of a cell get the same by construction.
"""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from anonlib.arrays import Ints
from anonlib.hierarchy import Hierarchy
from anonlib.registry import Plugin
from anonlib.table.schema import Scale

#: An Arrow array of any type. (Declared so, pyarrow's stubs reject what works.)
Column: TypeAlias = Any

#: What a released column holds. Whoever reads it (measures, encodings, the audit) goes by this.
#:
#: A recoder that can write its form as text has a field `form`, which is then "text".
#:
#: value: one value, of the column's own type or a mean of it.
#: interval: struct<lower, upper>, both included; or text "[lower, upper]".
#: set: an array of values, null for missing; or a JSON array as text.
#: node: the name of a node of the column's hierarchy.
#: shares: array<struct<node: int, share: double>> over the leaves of the column's hierarchy.
#: nothing: one text for all rows.
Form: TypeAlias = Literal["value", "interval", "set", "node", "shares", "nothing"]

#: A height at which all nodes are roots.
HIGHEST = 2**31 - 1


@dataclass(frozen=True)
class Cells:
    """The m cells of a block of n rows.

    Attributes:
        id: int64[n]. The cell of each row, 0..m-1, every one in use.
        m: Number of cells.
        weight: int64[n] or None. Rows of the table per row; None means one. Only recoders with
            `takes_weights` get weights.
    """

    id: Ints
    m: int
    weight: Ints | None = None

    @cached_property
    def order(self) -> Ints:
        """int64[n]: the rows sorted by cell, in block order within a cell."""
        return np.argsort(self.id, kind="stable")

    @cached_property
    def count(self) -> Ints:
        """int64[m]: rows of the table per cell."""
        return self.rows(self.id, self.m)

    def rows(self, id: Ints, n: int) -> Ints:
        """int64[n]: rows of the table with each of the ids that the rows have."""
        return np.bincount(id, self.weight, minlength=n).astype(np.int64)  # exact below 2^53

    @cached_property
    def start(self) -> Ints:
        """int64[m]: where each cell begins in `order`."""
        return np.searchsorted(self.id[self.order], np.arange(self.m))


class Domain(NamedTuple):
    """What is known of all values of a column.

    Attributes:
        order: The categories of an ordinal column of text, from low to high; None if values order
            themselves.
        hierarchy: The hierarchy of a nominal column, if it has one.
    """

    order: tuple[str, ...] | None = None
    hierarchy: Hierarchy | None = None


class Recoder(Plugin):
    """Turns the values of one quasi-identifier into one released value per cell."""

    family: ClassVar[str] = "recoder"
    #: the scales it can recode
    scales: ClassVar[frozenset[Scale]]
    #: whether it takes cells whose rows stand for several of the table
    takes_weights: ClassVar[bool] = False
    #: whether it can't recode a column without a hierarchy
    needs_hierarchy: ClassVar[bool] = False
    #: what the released column holds
    releases: ClassVar[Form] = "value"

    @property
    def names_nodes(self) -> bool:
        """Whether it releases nodes of the column's hierarchy, which readers then need."""
        return self.releases in ("node", "shares")

    @property
    def least_level(self) -> int:
        """The height in the hierarchy below which it releases no node; losses go by it."""
        return HIGHEST if self.releases == "nothing" else 0

    @abstractmethod
    def output(self, column: pa.DataType) -> pa.DataType:
        """The released column's type."""

    @abstractmethod
    def recode(self, values: Column, cells: Cells, domain: Domain) -> Column:
        """The m released values, of type `output(values.type)`.

        `values` has the n original values of the block in the source's own type, nulls where
        missing (NaN has become null). Computed from the present values of a cell; null where more
        than half are missing (recoders to which missing is a category say how they go beyond
        that).
        """

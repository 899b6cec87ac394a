"""Measures that look into cells: workers count while they have cells and original values."""

import json
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from anonlib.arrays import MISSING, Codes, Floats, Ints
from anonlib.loss import ReleasedBlock
from anonlib.loss.ncp import penalize
from anonlib.measure import Measure
from anonlib.measure.states import read_costs
from anonlib.table.encoding import Encoding
from anonlib.table.schema import Column, Schema

#: An Arrow array of any type.
Values: TypeAlias = Any


class CellParts(NamedTuple):
    """Things that a measure sums up under one name, such as the rows of a group in a cell.

    Attributes:
        cell: int64[x]. The cell of each thing.
        sums: float64[x, c]. What is summed up: integers, or multiples of GRID, so that sums are
            exact in any order.
    """

    cell: Ints
    sums: Floats


@dataclass(frozen=True, eq=False)
class OriginalCells:
    """The m cells of a task, with the original values of their n rows.

    Attributes:
        values: By id: [n]. The original values of the columns that the measure needs.
        released: By id: [m]. The released quasi-identifiers.
        released_block: The block and its cells.
        fit: What the measure fitted to the whole table.
    """

    values: Mapping[str, Values]
    released: Mapping[str, Values]
    released_block: ReleasedBlock
    fit: Any = None

    @property
    def id(self) -> Ints:
        """int64[n]. The cell of each row, 0..m-1."""
        return self.released_block.id

    @property
    def m(self) -> int:
        return self.released_block.m

    @property
    def weight(self) -> Ints:
        """int64[n]. The rows of the table that each row stands for."""
        return self.released_block.weight

    @property
    def person(self) -> Codes | None:
        """int32[n]. The person of each row, MISSING for none; None if each row is a person."""
        return self.released_block.block.unit

    @cached_property
    def penalty(self) -> Floats:
        """float64[m]. The information loss of each cell: `ncp`."""
        return penalize(self.released_block)

    @cached_property
    def persons(self) -> Ints:
        """int64[m]. The persons of each cell."""
        if self.person is None:
            return self.released_block.rows
        known = np.flatnonzero(self.person != MISSING)
        pairs = np.unique(np.column_stack([self.id[known], self.person[known]]), axis=0)
        return np.bincount(pairs[:, 0], minlength=self.m)


class CellMeasure(Measure):
    """A measure of what the cells of a release have in them.

    Workers count each cell while they make it. So it needs no pass over a table, and has no values
    for a published release, whose rows have no link to the original ones.
    """

    @abstractmethod
    def choose_columns(self, schema: Schema) -> tuple[Column, ...]:
        """The columns whose original values it needs."""

    def fit(self, schema: Schema, encodings: Sequence[Encoding], sample: pa.Table) -> Any:
        """What workers must know of the whole table; None for nothing.

        Args:
            schema: The columns.
            encodings: The encodings of the quasi-identifiers.
            sample: The scan's sample of the source, in a fixed order.
        """
        return None

    @abstractmethod
    def count(self, cells: OriginalCells) -> dict[str, CellParts]:
        """What it counts in the cells of a task, by name."""


def sum_by_cost(parts: CellParts, cost: Ints) -> Floats:
    """float64[1 + x * (1 + c)]. The state of some parts: c, then their sums for each cost of a
    cell, ascending. States are small: cells have one cost unless a config suppresses the costliest.

    cost: int64[m]. The cost of each cell.
    """
    return _add_up(np.column_stack([cost[parts.cell], parts.sums]))


def merge_costs(a: Floats, b: Floats) -> Floats:
    """The state of two tasks together."""
    return _add_up(np.concatenate([read_costs(a), read_costs(b)]))


def _add_up(rows: Floats) -> Floats:
    """The state of rows of costs and sums: one row for each cost."""
    cost, place = np.unique(rows[:, 0], return_inverse=True)
    sums = [np.bincount(place, column, len(cost)) for column in rows[:, 1:].T]
    return np.append(float(len(sums)), np.column_stack([cost, *sums]))


def name_of(id: str, *value: str | None) -> str:
    """The name of a column, or of the rows that have a value there; None for a missing value."""
    return json.dumps([id, *value])


def read_name(name: str) -> tuple[str, tuple[str | None, ...]]:
    """The inverse of `name_of`."""
    id, *value = json.loads(name)
    return id, tuple(value)

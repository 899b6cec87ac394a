"""Predicates on rows: conjunctions of conditions. They are counted over tables of any size."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from anonlib.arrays import Bools, Floats
from anonlib.measure.risk._regions import Region, read_regions
from anonlib.table.schema import Column

#: Bits of rows, eight in a byte.
Bits: TypeAlias = npt.NDArray[np.uint8]
#: A condition on the column with this place among the columns.
Condition: TypeAlias = tuple[int, Region]


@dataclass(frozen=True, eq=False)
class Predicates:
    """Predicates on rows of some columns.

    Attributes:
        columns: The columns.
        conjunctions: The conditions of each predicate.
    """

    columns: tuple[Column, ...]
    conjunctions: tuple[tuple[Condition, ...], ...]

    @cached_property
    def _distinct(self) -> dict[Condition, int]:
        """The distinct conditions and their places."""
        every = dict.fromkeys(each for conditions in self.conjunctions for each in conditions)
        return {each: i for i, each in enumerate(every)}

    @cached_property
    def _places(self) -> list[list[int]]:
        """The places of the conditions of each predicate."""
        return [[self._distinct[each] for each in conditions] for conditions in self.conjunctions]

    def take(self, places: Iterable[int]) -> "Predicates":
        """Some of the predicates."""
        return Predicates(self.columns, tuple(self.conjunctions[i] for i in places))

    def count(self, tables: Iterable[pa.Table], number: str, *, released: bool) -> Floats:
        """Counts the rows for which each predicate holds.

        Cost: O(n) for each distinct condition, and n bits for each condition of each predicate.

        Args:
            tables: Rows.
            number: The column that numbers rows or persons. If it is absent, all rows differ.
            released: Whether they are released rows, else original ones.

        Returns:
            float64[predicates * 3 + 1]: of each predicate the rows, and the least and the greatest
            of their numbers; then all rows. The rows of a predicate that holds for different
            released rows are not all counted.
        """
        found = np.zeros((len(self.conjunctions), 3))
        found[:, 1], found[:, 2] = np.inf, -np.inf
        n = 0
        for table in tables:
            n += table.num_rows
            bits = self._bits(table, released=released)
            numbers = None
            if number in table.column_names:
                numbers = table.column(number).to_numpy().astype(np.float64)
            for row, places in zip(found, self._places, strict=True):
                # Of rows, only whether they are one is asked, and these are not.
                if released and row[1] < row[2]:
                    continue
                both = np.bitwise_and.reduce(bits[places], axis=0)
                count = int(np.bitwise_count(both).sum())
                row[0] += count
                # Who has two numbers already can only get more.
                if numbers is not None and count and not row[1] < row[2]:
                    its = numbers[np.unpackbits(both, count=table.num_rows).view(np.bool_)]
                    row[1], row[2] = min(row[1], its.min()), max(row[2], its.max())
        return np.append(found.ravel(), n)

    def _bits(self, table: pa.Table, *, released: bool) -> Bits:
        """uint8[conditions, bytes]. The rows for which each distinct condition holds."""
        found = np.zeros((len(self._distinct), -(-table.num_rows // 8)), np.uint8)
        for place, column in enumerate(self.columns):
            its = [(i, region) for (at, region), i in self._distinct.items() if at == place]
            if its:
                regions = read_regions(column, table.column(column.id), released=released)
                inside = regions.within([region for _, region in its])
                for (i, _), rows in zip(its, inside, strict=True):
                    found[i] = np.packbits(rows)
        return found


def merge_matches(_: str, left: Floats, right: Floats) -> Floats:
    """Merges two states of `Predicates.count`."""
    a, b = left[:-1].reshape(-1, 3), right[:-1].reshape(-1, 3)
    least, most = np.minimum(a[:, 1], b[:, 1]), np.maximum(a[:, 2], b[:, 2])
    both = np.column_stack([a[:, 0] + b[:, 0], least, most])
    return np.append(both.ravel(), left[-1] + right[-1])


def are_single(state: Floats, *, numbered: bool) -> Bools:
    """bool[predicates]. Whether each holds for exactly one row; or, if rows are numbered, for rows
    of exactly one number."""
    rows, least, most = state[:-1].reshape(-1, 3).T
    single: Bools = least == most if numbered else rows == 1
    return single

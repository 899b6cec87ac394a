"""Predicates on rows: conjunctions of conditions. They are counted over tables of any size."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from anonlib.arrays import Bools, Floats, Ints
from anonlib.measure.risk._region_index import RegionIndex, index_regions
from anonlib.measure.risk._regions import Region, read_regions
from anonlib.measure.risk._tables import join_tables
from anonlib.table.schema import Column

#: A condition on the column with this place among the columns.
Condition: TypeAlias = tuple[int, Region]
#: The conditions of a predicate.
Conjunction: TypeAlias = tuple[Condition, ...]


class IndexedCondition(NamedTuple):
    """A condition on the rows of a table.

    Attributes:
        size: At least the rows in it.
        regions: The index of its column.
        place: Its place there.
    """

    size: int
    regions: RegionIndex
    place: int


@dataclass(frozen=True, eq=False)
class Predicates:
    """Predicates on rows of some columns.

    Attributes:
        columns: The columns.
        conjunctions: The conditions of each predicate.
    """

    columns: tuple[Column, ...]
    conjunctions: tuple[Conjunction, ...]

    @cached_property
    def _distinct(self) -> dict[Condition, int]:
        """The distinct conditions and their places."""
        every = dict.fromkeys(each for conditions in self.conjunctions for each in conditions)
        return {each: i for i, each in enumerate(every)}

    @cached_property
    def _places(self) -> list[list[int]]:
        """The places of the conditions of each predicate."""
        return [[self._distinct[each] for each in conditions] for conditions in self.conjunctions]

    def count(self, tables: Iterable[pa.Table], number: str, *, released: bool) -> Floats:
        """Counts the rows for which each predicate holds.

        Cost: O(n log n) for each column. For each predicate, the rows of its rarest condition, and
        of these the rows that are left for each other one.

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
        for table in join_tables(tables):
            n += table.num_rows
            indexes = self._index(table, released=released)
            numbers = None
            if number in table.column_names:
                numbers = table.column(number).to_numpy().astype(np.float64)
            for row, places in zip(found, self._places, strict=True):
                # Of rows, only whether they are one is asked, and these are not.
                if released and row[1] < row[2]:
                    continue
                rows = _find_rows([indexes[place] for place in places])
                row[0] += len(rows)
                # Who has two numbers already can only get more.
                if numbers is not None and len(rows) and not row[1] < row[2]:
                    its = numbers[rows]
                    row[1], row[2] = min(row[1], its.min()), max(row[2], its.max())
        return np.append(found.ravel(), n)

    def _index(self, table: pa.Table, *, released: bool) -> dict[int, IndexedCondition]:
        """By place of a distinct condition: its rows, by the index of its column."""
        found = {}
        for place, column in enumerate(self.columns):
            its = [(i, region) for (at, region), i in self._distinct.items() if at == place]
            if its:
                regions = read_regions(column, table.column(column.id), released=released)
                index = index_regions(regions, [region for _, region in its])
                for k, ((i, _), size) in enumerate(zip(its, index.sizes.tolist(), strict=True)):
                    found[i] = IndexedCondition(size, index, k)
        return found


def _find_rows(conditions: Sequence[IndexedCondition]) -> Ints:
    """The rows in all conditions, in any order."""
    rarest, *others = sorted(conditions, key=itemgetter(0))
    rows = rarest.regions.rows(rarest.place)
    for each in others:
        if not len(rows):
            break
        rows = rows[each.regions.holds(each.place, rows)]
    return rows


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

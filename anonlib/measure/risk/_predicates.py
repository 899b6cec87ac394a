"""Predicates on rows: conjunctions of conditions. They are counted over tables of any size."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from anonlib.arrays import Bools, Codes, Floats, Ints
from anonlib.measure.risk._region_index import (
    Conditions,
    RegionIndex,
    gather_conditions,
    index_regions,
)
from anonlib.measure.risk._regions import Region, read_regions
from anonlib.measure.risk._tables import join_tables
from anonlib.table.schema import Column

#: A condition on the column with this place among the columns.
Condition: TypeAlias = tuple[int, Region]
#: The conditions of a predicate.
Conjunction: TypeAlias = tuple[Condition, ...]


@dataclass(frozen=True, eq=False)
class Predicates:
    """Predicates on rows of some columns, as arrays: tasks get them sooner than many objects.

    Attributes:
        columns: The columns.
        conditions: Of each column: the distinct conditions.
        place: int32[predicates, columns]. The place of a predicate's condition among these; -1 if
            it has none on the column.
    """

    columns: tuple[Column, ...]
    conditions: tuple[Conditions, ...]
    place: Codes

    @classmethod
    def of(cls, columns: tuple[Column, ...], conjunctions: Sequence[Conjunction]) -> "Predicates":
        """The predicates with these conditions, at least one each."""
        distinct: list[dict[Region, int]] = [{} for _ in columns]
        place = np.full((len(conjunctions), len(columns)), -1, np.int32)
        for i, conditions in enumerate(conjunctions):
            for at, region in conditions:
                its = distinct[at]
                place[i, at] = its.setdefault(region, len(its))
        return cls(columns, tuple(gather_conditions([*each]) for each in distinct), place)

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
        tally = _Tally(len(self.place))
        for table in join_tables(tables):
            tally.n_rows += table.num_rows
            numbers = _read_numbers(table, number)
            # Of released rows, only whether they are one is asked, and these are not.
            some = ~tally.have_several() if released else np.ones(len(self.place), np.bool_)
            for i, rows in self._find_rows(table, np.flatnonzero(some), released=released):
                tally.add(i, rows, numbers)
        return tally.state

    def count_apart(
        self, tables: Iterable[pa.Table], number: str, flag: str
    ) -> tuple[Floats, Floats]:
        """Counts original rows as `count`: those whose flag is false, then those whose flag is
        true."""
        tallies = _Tally(len(self.place)), _Tally(len(self.place))
        every = np.arange(len(self.place))
        for table in join_tables(tables):
            flags = table.column(flag).to_numpy()
            numbers = _read_numbers(table, number)
            for tally, n_rows in zip(tallies, (int((~flags).sum()), int(flags.sum())), strict=True):
                tally.n_rows += n_rows
            for i, rows in self._find_rows(table, every, released=False):
                is_flagged = flags[rows]
                tallies[0].add(i, rows[~is_flagged], numbers)
                tallies[1].add(i, rows[is_flagged], numbers)
        return tallies[0].state, tallies[1].state

    def _find_rows(
        self, table: pa.Table, some: Ints, *, released: bool
    ) -> Iterator[tuple[int, Ints]]:
        """The rows of a table for which predicates hold, in any order; those that hold for none are
        left out. some: int64[w]. The predicates."""
        place = self.place[some]
        used = np.flatnonzero((place >= 0).any(axis=0)).tolist()
        indexes = {at: self._index(table, at, released=released) for at in used}
        # At least the rows in each condition; the rarest is looked up first.
        size = np.full(place.shape, table.num_rows + 1)
        for at, index in indexes.items():
            there = place[:, at] >= 0
            size[there, at] = index.sizes[place[there, at]]
        order = np.argsort(size, axis=1, kind="stable")
        n_conditions = (place >= 0).sum(axis=1).tolist()
        rarest = np.take_along_axis(size, order[:, :1], axis=1)[:, 0]
        for j in np.flatnonzero(rarest > 0).tolist():
            first, *others = order[j, : n_conditions[j]].tolist()
            rows = indexes[first].rows(place[j, first])
            for at in others:
                if not len(rows):
                    break
                rows = rows[indexes[at].holds(place[j, at], rows)]
            if len(rows):
                yield int(some[j]), rows

    def _index(self, table: pa.Table, at: int, *, released: bool) -> RegionIndex:
        column = self.columns[at]
        regions = read_regions(column, table.column(column.id), released=released)
        return index_regions(regions, self.conditions[at])


class _Tally:
    """The rows of predicates. See `Predicates.count`."""

    def __init__(self, n: int):
        self.n_rows = 0
        self._found = np.zeros((n, 3))
        self._found[:, 1], self._found[:, 2] = np.inf, -np.inf

    @property
    def state(self) -> Floats:
        return np.append(self._found.ravel(), self.n_rows)

    def have_several(self) -> Bools:
        """bool[predicates]. Whether each holds for rows of several numbers."""
        found: Bools = self._found[:, 1] < self._found[:, 2]
        return found

    def add(self, i: int, rows: Ints, numbers: Floats | None) -> None:
        """Counts rows of a predicate. numbers: float64[n]. Those of all rows of the table."""
        found = self._found[i]
        found[0] += len(rows)
        # Who has two numbers already can only get more.
        if numbers is not None and len(rows) and not found[1] < found[2]:
            its = numbers[rows]
            found[1], found[2] = min(found[1], its.min()), max(found[2], its.max())


def _read_numbers(table: pa.Table, name: str) -> Floats | None:
    if name not in table.column_names:
        return None
    numbers: Floats = table.column(name).to_numpy().astype(np.float64)
    return numbers


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

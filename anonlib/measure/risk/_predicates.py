"""Predicates on rows: conjunctions of conditions. They are counted over tables of any size."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from anonlib.arrays import Bools, Codes, Floats
from anonlib.measure.risk._passes import join_tables
from anonlib.measure.risk._region_index import (
    Conditions,
    RegionIndex,
    gather_conditions,
    index_regions,
    join_ranges,
)
from anonlib.measure.risk._regions import Region, read_regions
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

        Cost: O(n) for each column. For each predicate, the rows of its rarest condition, and for
        each of these the others up to one that fails.

        Args:
            tables: Rows.
            number: The column that numbers rows or persons. If it is absent, all rows differ.
            released: Whether they are released rows, else original ones.

        Returns:
            float64[predicates * 3 + 1]: of each predicate the rows, and the least and the greatest
            of their numbers; then all rows. The rows of a predicate that holds for different
            released rows are not all counted.
        """
        return self._count(tables, number, None, released=released)[0]

    def count_apart(
        self, tables: Iterable[pa.Table], number: str, flag: str
    ) -> tuple[Floats, Floats]:
        """Counts original rows as `count`: those whose flag is false, then those whose flag is
        true."""
        return self._count(tables, number, flag, released=False)

    def _count(
        self, tables: Iterable[pa.Table], number: str, flag: str | None, *, released: bool
    ) -> tuple[Floats, Floats]:
        tally = np.zeros((2, len(self.place), 3))
        tally[:, :, 1], tally[:, :, 2] = np.inf, -np.inf
        n_rows = np.zeros(2)
        for table in join_tables(tables):
            flags = np.zeros(table.num_rows, np.bool_)
            if flag is not None:
                flags = table.column(flag).to_numpy()
            n_rows += np.bincount(flags, minlength=2)
            self._tally(table, _read_numbers(table, number), flags, tally, released=released)
        before, after = (np.append(its, n) for its, n in zip(tally, n_rows, strict=True))
        return before, after

    def _tally(
        self, table: pa.Table, numbers: Floats, flags: Bools, tally: Floats, *, released: bool
    ) -> None:
        """Adds the rows of a table to `tally`. See `tally_rows`."""
        from anonlib.measure.risk._predicates_core import arrange_rows, tally_rows

        indexes, at = self._index(table, released=released)
        if not indexes:
            return
        ranges = join_ranges([each.ranges for each in indexes])
        before = np.cumsum([0, *(each.ranges.n_conditions for each in indexes)])[:-1]
        condition = np.where(self.place[:, at] < 0, -1, self.place[:, at] + before)
        size = np.append(ranges.sizes, table.num_rows + 1)[condition]
        turn = np.argsort(size, axis=1, kind="stable")
        # Where most rows are looked up, those of one condition are near each other in memory.
        main = indexes[int(np.bincount(turn[:, 0], weights=size.min(axis=1)).argmax())]
        rows, _ = arrange_rows(main.code, main.start)
        orders = [arrange_rows(each.code[rows], each.start) for each in indexes]
        order, place = (np.stack(each) for each in zip(*orders, strict=True))
        numbers, flags = numbers[rows] if len(numbers) else numbers, flags[rows]
        # Of released rows, only whether they are one is asked: two that differ are enough.
        tally_rows(
            order,
            np.ascontiguousarray(place.T),
            *ranges,
            condition,
            turn,
            number=numbers,
            flag=flags,
            until_several=released,
            tally=tally,
        )

    def _index(self, table: pa.Table, *, released: bool) -> tuple[list[RegionIndex], list[int]]:
        """The indexes of the columns on which there are conditions, and the column of each."""
        indexes: list[RegionIndex] = []
        at: list[int] = []
        for i in np.flatnonzero((self.place >= 0).any(axis=0)).tolist():
            values = table.column(self.columns[i].id)
            regions = read_regions(self.columns[i], values, released=released)
            indexes += index_regions(regions, self.conditions[i])
            at += [i] * (len(indexes) - len(at))
        return indexes, at


def _read_numbers(table: pa.Table, name: str) -> Floats:
    """float64[n]; float64[0] if there are no numbers."""
    if name not in table.column_names:
        return np.empty(0)
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

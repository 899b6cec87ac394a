"""The values of a column brought together by cell: what every recoder starts from."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from anonlib.arrays import Bools, Ints
from anonlib.recode import Cells, Column
from anonlib.recode.arrow import Kind, kind


@dataclass(frozen=True)
class GroupedValues:
    """The g cells (of m) that get a value, which are those with at most half their rows missing.

    values: their present values side by side, in block order within a cell: no nulls, -0.0 made
    0.0, no dictionary. start, count: int64[g], where a cell begins there and how many values it
    has (never none). missing: int64[g], its other rows. released: bool[m], which cells they are.
    """

    values: Column
    start: Ints
    count: Ints
    missing: Ints
    released: Bools

    @cached_property
    def cell(self) -> Ints:
        """int64[len(values)]: the cell, 0..g-1, of every value."""
        return np.repeat(np.arange(len(self.count)), self.count)

    def spread(self, values: Column) -> Column:
        """The m released values, given those of the g cells: the other cells are null."""
        if self.released.all():
            return values
        index = np.cumsum(self.released) - 1
        return values.take(pa.array(index, mask=~self.released))


def group(values: Column, cells: Cells) -> GroupedValues:
    """The present values by cell. Cost O(n)."""
    values = normal(values)
    nulls: Column = pc.is_null(values, nan_is_null=True)
    is_missing: Bools = nulls.to_numpy(zero_copy_only=False)
    missing = np.bincount(cells.id[is_missing], minlength=cells.m)
    released = 2 * missing <= cells.count
    kept = released[cells.id] & ~is_missing
    rows = cells.order[kept[cells.order]]
    count = (cells.count - missing)[released]
    start = np.cumsum(count) - count
    return GroupedValues(values.take(pa.array(rows)), start, count, missing[released], released)


def ascending(grouped: GroupedValues, order: tuple[str, ...] | None) -> Ints:
    """Positions in `grouped.values`, sorted by value within each cell. Cost O(n log n)."""
    return _ascending(grouped, _keys(grouped.values, order))


@dataclass(frozen=True)
class Runs:
    """The distinct values of every cell, ascending, cells side by side.

    position: where in `grouped.values` one is. length: how often the cell has it. cell: 0..g-1.
    start, count: int64[g], where the distinct values of a cell begin and how many there are.
    """

    position: Ints
    length: Ints
    cell: Ints
    start: Ints
    count: Ints


def runs(grouped: GroupedValues, order: tuple[str, ...] | None) -> Runs:
    """The distinct values of every cell. Cost O(n log n)."""
    keys = _keys(grouped.values, order)
    position = _ascending(grouped, keys)
    # a run starts with each cell, and wherever the value changes
    new = np.zeros(len(position), np.bool_)
    new[grouped.start] = True
    keys = keys[position]
    new[1:] |= keys[1:] != keys[:-1]
    first = np.flatnonzero(new)
    length = np.diff(first, append=len(position))
    cell = grouped.cell[first]
    count = np.bincount(cell, minlength=len(grouped.count))
    return Runs(position[first], length, cell, np.cumsum(count) - count, count)


def numbers(values: Column) -> npt.NDArray[Any]:
    """The numbers behind values that are neither decimals nor text, none null: dates count days
    and timestamps their unit since 1970, false is 0."""
    match kind(values.type):
        case Kind.BOOLEAN:
            values = values.cast(pa.uint8())
        case Kind.DATE:
            values = values.view(pa.int32())
        case Kind.TIMESTAMP:
            values = values.view(pa.int64())
    result: npt.NDArray[Any] = values.to_numpy()
    return result


def normal(values: Column) -> Column:
    """The values without a dictionary, -0.0 made 0.0."""
    if isinstance(values, pa.DictionaryArray):
        values = values.dictionary_decode()
    if kind(values.type) is Kind.FLOAT:
        # the audit groups by value, so one zero only
        return pc.add(values, pa.scalar(0.0, values.type))
    return values


def _ascending(grouped: GroupedValues, keys: npt.NDArray[Any]) -> Ints:
    # Sorting values, then (cell, place) as one integer is faster by far than a lexsort.
    by_value = np.argsort(keys)
    n = len(keys)
    pair = grouped.cell[by_value] * n + np.arange(n)
    pair.sort()
    return by_value[pair % n] if n else by_value


def _keys(values: Column, order: tuple[str, ...] | None) -> npt.NDArray[Any]:
    """Numbers that compare as the values do (text by code point, or by its place in `order`)."""
    if kind(values.type) not in (Kind.DECIMAL, Kind.TEXT):
        return numbers(values)
    encoded = values.dictionary_encode()
    places: Ints = encoded.indices.to_numpy()
    return _ranks(encoded.dictionary, order)[places]


def _ranks(distinct: Column, order: tuple[str, ...] | None) -> npt.NDArray[Any]:
    if order is not None:
        # a value that isn't in `order` becomes a null, which to_numpy() refuses
        places: Column = pc.index_in(distinct, value_set=pa.array(order, distinct.type))
        ranks: npt.NDArray[Any] = places.to_numpy()
        return ranks
    ranks = np.empty(len(distinct), np.int64)
    ranks[pc.sort_indices(distinct).to_numpy()] = np.arange(len(distinct))
    return ranks

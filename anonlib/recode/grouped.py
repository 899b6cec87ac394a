"""The values of a column, grouped by cell, for recoders."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from anonlib.arrays import Bools, Ints
from anonlib.recode import Cells, Column
from anonlib.recode.arrow import Kind, find_type_kind


@dataclass(frozen=True)
class GroupedValues:
    """The present values of the cells that are released: g of m cells.

    A cell is released if at most half of its values are missing.

    Attributes:
        values: The present values, cell after cell, in block order within a cell. There are no
            nulls, no dictionary, and 0.0 for -0.0.
        start: int64[g]. Where each cell begins in `values`.
        count: int64[g]. The values of each cell, at least one.
        missing: int64[g]. The missing values of each cell.
        released: bool[m]. Whether each cell is released.
        block: int64[g], ascending. The block of each cell.
    """

    values: Column
    start: Ints
    count: Ints
    missing: Ints
    released: Bools
    block: Ints

    @cached_property
    def cell(self) -> Ints:
        """int64[len(values)]. The cell of each value, 0..g-1."""
        return np.repeat(np.arange(len(self.count)), self.count)

    def spread(self, values: Column) -> Column:
        """Spreads the values of the g released cells over all m cells. Other cells are null."""
        if self.released.all():
            return values
        index = np.cumsum(self.released) - 1
        return values.take(pa.array(index, mask=~self.released))


def group(values: Column, cells: Cells) -> GroupedValues:
    """Groups the present values by cell. Cost O(n)."""
    values = drop_dictionary(values)
    nulls: Column = pc.is_null(values, nan_is_null=True)
    is_missing: Bools = nulls.to_numpy(zero_copy_only=False)
    missing = np.bincount(cells.id[is_missing], minlength=cells.m)
    released = 2 * missing <= cells.count
    kept = released[cells.id] & ~is_missing
    rows = cells.order[kept[cells.order]]
    count = (cells.count - missing)[released]
    start = np.cumsum(count) - count
    block = np.zeros(cells.m, np.int64) if cells.block is None else cells.block
    present = values.take(pa.array(rows))
    return GroupedValues(present, start, count, missing[released], released, block[released])


def order_ascending(groups: GroupedValues, order: tuple[str, ...] | None) -> Ints:
    """int64[]. Positions in `groups.values`, sorted by value within a cell. Cost O(n log n)."""
    return _ascending(groups, _keys(groups.values, order))


@dataclass(frozen=True)
class Runs:
    """The r distinct values of all cells, cell after cell, ascending within a cell.

    Attributes:
        position: int64[r]. A position of each distinct value in `GroupedValues.values`.
        length: int64[r]. How often the cell has the value.
        cell: int64[r]. The cell, 0..g-1.
        start: int64[g]. Where the distinct values of each cell begin.
        count: int64[g]. The distinct values of each cell.
    """

    position: Ints
    length: Ints
    cell: Ints
    start: Ints
    count: Ints


def find_runs(groups: GroupedValues, order: tuple[str, ...] | None) -> Runs:
    """Finds the distinct values of every cell. Cost O(n log n)."""
    keys = _keys(groups.values, order)
    position = _ascending(groups, keys)
    # A run starts with each cell, and wherever the value changes.
    new = np.zeros(len(position), np.bool_)
    new[groups.start] = True
    keys = keys[position]
    new[1:] |= keys[1:] != keys[:-1]
    first = np.flatnonzero(new)
    length = np.diff(first, append=len(position))
    cell = groups.cell[first]
    count = np.bincount(cell, minlength=len(groups.count))
    return Runs(position[first], length, cell, np.cumsum(count) - count, count)


def read_numbers(values: Column) -> npt.NDArray[Any]:
    """Values as numbers. They must not be null, decimal or text.

    Dates are days since 1970, timestamps their units since 1970, false is 0 and true is 1.
    """
    match find_type_kind(values.type):
        case Kind.BOOLEAN:
            values = values.cast(pa.uint8())
        case Kind.DATE:
            values = values.view(pa.int32())
        case Kind.TIMESTAMP:
            values = values.view(pa.int64())
    result: npt.NDArray[Any] = values.to_numpy()
    return result


def drop_dictionary(values: Column) -> Column:
    """The values without a dictionary, and with 0.0 for -0.0."""
    if isinstance(values, pa.DictionaryArray):
        values = values.dictionary_decode()
    if find_type_kind(values.type) is Kind.FLOAT:
        # The audit groups by value, so there must be only one zero.
        return pc.add(values, pa.scalar(0.0, values.type))
    return values


def _ascending(groups: GroupedValues, keys: npt.NDArray[Any]) -> Ints:
    n = len(keys)
    if n and keys.dtype.kind == "i":
        low = int(keys.min())
        size = int(keys.max()) - low + 1
        if size * len(groups.count) < 2**63:
            # Values lie cell after cell: a stable sort of such keys takes a sixth of the time.
            pair = groups.cell * size + (keys.astype(np.int64) - low)
            return np.argsort(pair, kind="stable")
    # Sorting values, then (cell, place) as one integer, is much faster than a lexsort.
    by_value = np.argsort(keys)
    pair = groups.cell[by_value] * n + np.arange(n)
    pair.sort()
    return by_value[pair % n] if n else by_value


def _keys(values: Column, order: tuple[str, ...] | None) -> npt.NDArray[Any]:
    """Sort keys: numbers in the order of the values (text by `order`, else by code point)."""
    if find_type_kind(values.type) not in (Kind.DECIMAL, Kind.TEXT):
        return read_numbers(values)
    encoded = values.dictionary_encode()
    places: Ints = encoded.indices.to_numpy()
    return _ranks(encoded.dictionary, order)[places]


def _ranks(distinct: Column, order: tuple[str, ...] | None) -> npt.NDArray[Any]:
    if order is not None:
        # A value that is not in `order` becomes null, which to_numpy() refuses.
        places: Column = pc.index_in(distinct, value_set=pa.array(order, distinct.type))
        ranks: npt.NDArray[Any] = places.to_numpy()
        return ranks
    ranks = np.empty(len(distinct), np.int64)
    ranks[pc.sort_indices(distinct).to_numpy()] = np.arange(len(distinct))
    return ranks

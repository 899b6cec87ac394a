"""Values of a column as regions, and conditions that hold for regions.

An original value is a point. A released value is what it stands for: a point, a range of numbers or
ranks, or a set of categories. A condition is a region, too: it holds for what lies in it. So it can
be built from a released value and asked of original rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonlib.arrays import Floats, Ints
from anonlib.encode import about
from anonlib.encode.texts import sets, text_ends, texts
from anonlib.errors import InputError
from anonlib.measure.features import as_one_array, encode_distinct
from anonlib.recode.interval import Interval
from anonlib.recode.value_leaves import ROOT, find_leaves
from anonlib.table.encoding import to_float
from anonlib.table.schema import Column, Scale, may_be_continuous

#: An Arrow array of any type.
Values: TypeAlias = Any


class Range(NamedTuple):
    """A region of a column on a line: numbers, dates, or ranks of an order.

    Attributes:
        low: The lower end; NaN for missing values.
        high: The upper end.
    """

    low: float
    high: float


#: The region of a missing value. It is one object, since NaN is not equal to itself.
ABSENT = Range(np.nan, np.nan)
#: A region of another column: the texts of its values; None for missing ones.
Members: TypeAlias = frozenset[str | None]
Region: TypeAlias = Range | Members
#: The region of a value that says nothing. No condition is built from it.
EVERYTHING: Members = frozenset()


@dataclass(frozen=True, eq=False)
class LineRegions:
    """n regions of a column on a line.

    Attributes:
        low: float64[n]. The lower ends; NaN for none.
        high: float64[n]. The upper ends.
        null: The region of what has no ends: a missing value, or EVERYTHING.
    """

    low: Floats
    high: Floats
    null: Region = ABSENT

    def regions(self, rows: Ints | slice = slice(None)) -> list[Region]:
        """The regions of rows: by default of all."""
        ends = zip(self.low[rows].tolist(), self.high[rows].tolist(), strict=True)
        return [self.null if low != low else Range(low, high) for low, high in ends]

    def list_distinct(self) -> list[Region]:
        """Every region once, by its first row."""
        ends = np.column_stack([self.low, self.high])
        _, first = np.unique(ends, axis=0, return_index=True)
        return list(dict.fromkeys(self.regions(np.sort(first))))


@dataclass(frozen=True, eq=False)
class Sets:
    """n regions of another column.

    Attributes:
        distinct: The regions that occur.
        index: int64[n]. The region of each row.
    """

    distinct: tuple[Members, ...]
    index: Ints

    def regions(self, rows: Ints | slice = slice(None)) -> list[Region]:
        """The regions of rows: by default of all."""
        return [self.distinct[i] for i in self.index[rows].tolist()]

    def list_distinct(self) -> list[Region]:
        """Every region once, by its first row."""
        _, first = np.unique(self.index, return_index=True)
        return list(dict.fromkeys(self.regions(np.sort(first))))


def read_regions(
    column: Column, values: Values, *, released: bool, raw_ends: bool = False
) -> LineRegions | Sets:
    """The regions of a column's values. Cost: O(n log n), and a step in Python for each distinct
    value of columns that are not on a line.

    A null interval or set says that most values of its class are missing: others may be anything.

    Args:
        column: The column.
        values: n values.
        released: Whether they are released values, else original ones.
        raw_ends: Whether an end at the recoder's `bottom` or `top` is only that number, not all
            that is less or more.

    Raises:
        InputError: Values can't be read. The text names the column and no value.
    """
    with about(column.name):
        values = as_one_array(values)
        form = column.recoder.releases if column.recoder else "value"
        try:
            if is_on_line(column, form):
                if not released or form == "value":
                    at = _to_numbers(column, values)
                    return LineRegions(at, at)
                low, high = _read_ends(column, values)
                if isinstance(column.recoder, Interval) and not raw_ends:
                    low, high = column.recoder.open_ends(low, high, column.type)
                return LineRegions(low, high, EVERYTHING)
            if not released or form == "value":
                return _read_points(column, values)
            return _SETS[form](column, values)
        except (pa.ArrowException, ValueError, KeyError):  # their texts may hold values
            raise InputError(f"has the type {values.type}, which is not read here") from None


def is_on_line(column: Column, form: str) -> bool:
    """Whether a column's regions are LineRegions. form: What its recoder releases."""
    if form not in ("value", "interval"):
        return False
    if column.scale is None:
        return may_be_continuous(column.type)
    return column.scale is not Scale.NOMINAL


def _read_ends(column: Column, values: Values) -> tuple[Floats, Floats]:
    """float64[n] each. The lower and upper ends of released intervals; NaN for null."""
    if pa.types.is_struct(values.type):
        absent = values.is_null().to_numpy(zero_copy_only=False)
        ends = (_to_numbers(column, pc.struct_field(values, n)) for n in ("lower", "upper"))
        low, high = (np.where(absent, np.nan, each) for each in ends)
        return low, high
    encoded = values.dictionary_encode()
    if column.order is not None:
        pairs = sets(encoded.dictionary)  # such intervals are JSON arrays of two, like sets
        lower, upper = (_to_numbers(column, pc.list_element(pairs, i)) for i in range(2))
    else:
        lower, upper = text_ends(encoded.dictionary)
    index = encoded.indices.fill_null(len(lower)).to_numpy(zero_copy_only=False)
    return np.append(lower, np.nan)[index], np.append(upper, np.nan)[index]


def _to_numbers(column: Column, values: Values) -> Floats:
    """float64[n]. Numbers, or ranks of ordinal texts; NaN if missing."""
    if column.order is not None:
        ranks = pc.index_in(values, value_set=pa.array(column.order, values.type), skip_nulls=True)
        if ranks.null_count != values.null_count:
            raise InputError("has texts that are not in its `order`")
        values = ranks
    elif not may_be_continuous(values.type):
        raise InputError(f"has the type {values.type}, not numbers")
    return to_float(values)


def _read_points(column: Column, values: Values) -> Sets:
    if column.hierarchy is not None and column.recoder and column.recoder.names_nodes:
        leaf, hierarchy = find_leaves(values, column.hierarchy)
        place, index = np.unique(leaf, return_inverse=True)
        names = [None if i < 0 else hierarchy.names[i] for i in place.tolist()]
        return Sets(tuple(frozenset([name]) for name in names), index)
    encoded = texts(values).dictionary_encode(null_encoding="encode")
    found = tuple(frozenset([text]) for text in encoded.dictionary.to_pylist())
    return Sets(found, encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64))


def _read_sets(_: Column, values: Values) -> Sets:
    distinct, index = encode_distinct(values)
    return _number([EVERYTHING if m is None else frozenset(m) for m in _lists(distinct)], index)


def _lists(values: Values) -> list[list[str | None] | None]:
    found: list[list[str | None] | None] = sets(values).to_pylist()
    return found


def _read_nodes(column: Column, values: Values) -> Sets:
    hierarchy = column.hierarchy
    encoded = values.dictionary_encode(null_encoding="encode")
    found: list[Members] = []
    place = {} if hierarchy is None else {name: i for i, name in enumerate(hierarchy.names)}
    for name in encoded.dictionary.to_pylist():
        if name is None or hierarchy is None:  # without a hierarchy, the root says nothing
            found.append(EVERYTHING if name == ROOT else frozenset([name]))
            continue
        low, high = (int(a[place[name]]) for a in (hierarchy.tree.low, hierarchy.tree.high))
        root = place[name] == len(hierarchy.names) - 1
        found.append(EVERYTHING if root else frozenset(hierarchy.names[low:high]))
    return Sets(tuple(found), encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64))


def _read_shares(column: Column, values: Values) -> Sets:
    names = (*column.hierarchy.names, None) if column.hierarchy else (None,)
    distinct, index = encode_distinct(values)
    lists = distinct.to_pylist()
    return _number([frozenset(names[each["node"]] for each in shares) for shares in lists], index)


def _read_nothing(_: Column, values: Values) -> Sets:
    return Sets((EVERYTHING,), np.zeros(len(values), np.int64))


def _number(regions: Sequence[Members], index: Ints) -> Sets:
    """The regions of rows. index: int64[n]. The place of each row's region among `regions`."""
    place = {each: i for i, each in enumerate(dict.fromkeys(regions))}
    return Sets(tuple(place), np.array([place[each] for each in regions], np.int64)[index])


_SETS = {
    "set": _read_sets,
    "node": _read_nodes,
    "shares": _read_shares,
    "nothing": _read_nothing,
}

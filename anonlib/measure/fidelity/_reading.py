"""Reads values as distributions.

A value of the source is a single point. A released value may stand for several values:

- An interval is uniform over the numbers in it, or over the categories of an ordinal column, both
  ends included. Rounded ends need not be categories: what is between them counts.
- A set is uniform over its members; missing may be one of them.
- A node of a hierarchy is uniform over the categories below it that the source has. The root of a
  nominal column includes missing values, if there are any.
- A suppressed value is the root: uniform over the range of a continuous column, or over all
  categories.
- Shares are the distribution itself.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonlib.arrays import Floats, Ints, Sparse
from anonlib.encode.texts import sets, text_ends
from anonlib.errors import InputError
from anonlib.measure.fidelity._axes import Axis
from anonlib.table.encoding import clear_nan, one_zero, to_float
from anonlib.table.schema import may_be_continuous

#: An Arrow array of any type.
Values: TypeAlias = Any


class Numbers(NamedTuple):
    """Values of n rows as random numbers. A missing value counts as 0.

    Attributes:
        present: float64[n]. The probability that the value is present.
        first: float64[n]. The expected standardized number.
        second: float64[n]. The expected square of that number.
    """

    present: Floats
    first: Floats
    second: Floats


@dataclass(frozen=True, eq=False)
class Spans:
    """n values of a continuous column. Each is uniform over a range. For plain numbers, both ends
    are the same array.

    Attributes:
        low: float64[n]. The lower ends, standardized; NaN if missing.
        high: float64[n]. The upper ends, standardized; NaN if missing.
    """

    low: Floats
    high: Floats

    def numbers(self) -> Numbers:
        present = ~np.isnan(self.low)
        middle = np.where(present, (self.low + self.high) / 2, 0.0)
        width = np.where(present, self.high - self.low, 0.0)
        return Numbers(present.astype(np.float64), middle, middle**2 + width**2 / 12)

    def within(self, low: float, high: float) -> Floats:
        """float64[n]. The share of each value that is in low..high; 0 if missing."""
        if self.low is self.high:
            return ((self.low >= low) & (self.low <= high)).astype(np.float64)
        width = self.high - self.low
        overlap = np.minimum(self.high, high) - np.maximum(self.low, low)
        point = np.where(overlap >= 0, 1.0, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.clip(overlap / width, 0.0, 1.0)
        return np.where(width > 0, share, point).astype(np.float64)


@dataclass(frozen=True, eq=False)
class CategoryShares:
    """n values of a column with categories. Each is one of v distributions over the categories.

    Attributes:
        index: int64[n]. The distribution of each value.
        size: The number of categories, including the missing one, which is the last.
        names: int64. The names of the values in the table, distinct: the code of a category, or
            `size` + the number of a node. The node after the root stands for missing.
        shares: csr_matrix[v, size]. The distributions; None if distribution j is category j alone.
    """

    index: Ints
    size: int
    names: Ints
    shares: Sparse | None = None

    def of(self, table: Floats) -> Floats:
        """float64[n]. The expectation of each value. table: float64[size], a number by category."""
        return (table if self.shares is None else self.shares @ table)[self.index]

    def sums(self, weight: Floats | None = None) -> Floats:
        """float64[size]. The number of values, or the sum of their weights, by category."""
        n = self.size if self.shares is None else self.shares.shape[0]
        counts = np.bincount(self.index, weight, n).astype(np.float64)
        return counts if self.shares is None else self.shares.T @ counts

    def numbers(self, positions: Floats) -> Numbers:
        """The values as numbers. positions: float64[size], the standardized ranks; 0 for
        missing."""
        there = np.append(np.ones(self.size - 1), 0.0)
        return Numbers(self.of(there), self.of(positions), self.of(positions**2))

    def merge(self, group: Ints) -> "CategoryShares":
        """Replaces categories by groups of categories. group: int64[size], the group of each
        category, ascending from 0 without gaps."""
        from scipy.sparse import csr_matrix

        size = int(group[-1]) + 1
        if self.shares is None:
            return CategoryShares(group[self.index], size, self.names)
        ones = csr_matrix((np.ones(self.size), (np.arange(self.size), group)), (self.size, size))
        return CategoryShares(self.index, size, self.names, self.shares @ ones)

    def joint(self, other: "CategoryShares") -> Floats:
        """Counts values by the categories of both columns. Columns count as independent within a
        row.

        Cost: O(n); times `other.size` if one of the two has distributions.

        Returns:
            float64[size, other.size].
        """
        if self.shares is None and other.shares is None:
            pair = self.index * other.size + other.index
            counts = np.bincount(pair, minlength=self.size * other.size)
            return counts.reshape(self.size, other.size).astype(np.float64)
        from scipy.sparse import csr_matrix, identity

        left = identity(self.size, format="csr") if self.shares is None else self.shares
        right = np.eye(other.size) if other.shares is None else other.shares.toarray()
        shape = left.shape[0], right.shape[0]
        pairs = csr_matrix((np.ones(len(self.index)), (self.index, other.index)), shape)
        found: Floats = left.T @ (pairs @ right)
        return found


def read_column(axis: Axis, values: Values, *, released: bool) -> Spans | CategoryShares:
    """Reads the values of one batch.

    Args:
        axis: The column.
        values: The values.
        released: Whether they are released values.

    Raises:
        InputError: Values are not in the source's column, or have another type. The text shows no
            value.
    """
    reader = _READERS.get(axis.form) if released else None
    if reader is not None:
        return reader(axis, values)
    if not (may_be_continuous(values.type) if axis.is_line else values.type.equals(axis.type)):
        raise InputError(f"column {axis.name}: its released type {values.type} can't be compared")
    if axis.is_line:
        at = _positions(axis, values)
        return Spans(at, at)
    codes = _codes(axis, values, axis.encoding.categories)
    size = axis.n_categories + 1
    return CategoryShares(codes, size, np.flatnonzero(np.bincount(codes, minlength=size)))


def _positions(axis: Axis, values: Values) -> Floats:
    numbers = to_float(values)
    numbers[~np.isfinite(numbers)] = np.nan
    return axis.position(numbers)


def _codes(axis: Axis, values: Values, categories: Values) -> Ints:
    """int64[n]. The code of each value: its place among the categories, or among their texts."""
    values = clear_nan(values)
    found = pc.index_in(one_zero(values), value_set=one_zero(categories), skip_nulls=True)
    if unknown := found.null_count - values.null_count:
        raise InputError(f"column {axis.name}: {unknown} values are not among the source's")
    codes: Ints = found.fill_null(len(categories)).to_numpy(zero_copy_only=False)
    return codes.astype(np.int64)


def _interval(axis: Axis, values: Values) -> Spans | CategoryShares:
    index = np.arange(len(values))
    if pa.types.is_string(values.type):
        values, index = _distinct(values)
    if axis.is_line:
        ends = _number_ends(values)
        return Spans(axis.position(ends[0])[index], axis.position(ends[1])[index])
    low, high, names = _category_ends(axis, values)
    size = axis.n_categories + 1
    pair, place = np.unique(low * size + high, return_inverse=True)
    low, high = np.divmod(pair, size)
    return CategoryShares(place[index], size, names, _even(low, high + 1, size))


def _number_ends(values: Values) -> tuple[Floats, Floats]:
    """float64[n] each. Lower and upper ends of intervals of numbers; NaN if missing."""
    if not pa.types.is_string(values.type):
        low, high = (to_float(pc.struct_field(values, name)) for name in ("lower", "upper"))
        absent = values.is_null().to_numpy(zero_copy_only=False)
        return np.where(absent, np.nan, low), np.where(absent, np.nan, high)
    ends = np.full((2, len(values)), np.nan)
    there = values.is_valid().to_numpy(zero_copy_only=False)
    ends[:, there] = text_ends(values.drop_null())
    return ends[0], ends[1]


def _category_ends(axis: Axis, values: Values) -> tuple[Ints, Ints, Ints]:
    """int64[n] twice: the codes of the first and the last category of intervals. Then the codes of
    the categories that are ends."""
    if may_be_continuous(axis.type):
        return _categories_within(axis, *_number_ends(values))
    if not pa.types.is_string(values.type):
        absent, categories = values.is_null(), axis.encoding.categories
        ends = [pc.struct_field(values, name) for name in ("lower", "upper")]
        low, high = (_codes(axis, pc.if_else(absent, None, each), categories) for each in ends)
    else:
        lists = sets(values)  # such intervals are JSON arrays of two, like sets
        low, high = (_codes(axis, pc.list_element(lists, i), axis.texts) for i in range(2))
    return low, high, np.union1d(low, high)


def _categories_within(axis: Axis, lower: Floats, upper: Floats) -> tuple[Ints, Ints, Ints]:
    """`_category_ends` of numbers."""
    n, at = axis.n_categories, np.append(to_float(axis.encoding.categories), np.nan)
    ranks = axis.encoding.within(lower, upper)
    low, high = (np.where(np.isnan(each), n, each).astype(np.int64) for each in ranks)
    named = low[(at[low] == lower) | (low == n)], high[at[high] == upper]
    return low, high, np.union1d(*named)


def _set(axis: Axis, values: Values) -> CategoryShares:
    index, size = np.arange(len(values)), axis.n_categories + 1
    categories = axis.encoding.categories
    if pa.types.is_string(values.type):
        values, index = _distinct(values)
        values, categories = sets(values), axis.texts
    code, row = _codes(axis, values.flatten(), categories), _rows(values)
    absent = np.flatnonzero(values.is_null().to_numpy(zero_copy_only=False))
    row, code = np.append(row, absent), np.append(code, np.full(len(absent), size - 1))
    share = 1.0 / np.bincount(row)[row]
    return CategoryShares(
        index, size, np.unique(code), _matrix(share, row, code, len(values), size)
    )


def _nodes(axis: Axis, values: Values) -> Spans | CategoryShares:
    """Reads what `lca` and `suppress` release."""
    if axis.is_line:
        low, high = axis.ends
        return Spans(np.full(len(values), low), np.full(len(values), high))
    distinct, index = _distinct(values)
    size, nodes = axis.n_categories + 1, axis.nodes
    node = _codes(axis, distinct, nodes.names)
    # The node after the root stands for missing.
    low = np.append(nodes.low, size - 1)[node]
    high = np.append(nodes.high, size)[node]
    if (high <= low).any():
        raise InputError(f"column {axis.name}: nodes have no value of the source under them")
    return CategoryShares(index, size, size + node, _even(low, high, size))


def _proportional(axis: Axis, values: Values) -> CategoryShares:
    assert axis.hierarchy is not None
    size = axis.n_categories + 1
    elements = values.flatten()
    node = elements.field("node").to_numpy(zero_copy_only=False).astype(np.int64)
    share = elements.field("share").to_numpy(zero_copy_only=False)
    code_of = np.full(len(axis.hierarchy.names) + 1, -1)
    code_of[axis.leaves], code_of[-1] = np.arange(size - 1), size - 1
    code = code_of[node]
    if unknown := int((code < 0).sum()):
        raise InputError(f"column {axis.name}: {unknown} shares are of no value of the source")
    shares = _matrix(share, _rows(values), code, len(values), size)
    return CategoryShares(np.arange(len(values)), size, np.unique(code), shares)


def _rows(lists: Values) -> Ints:
    """int64[number of elements]. The list of each element."""
    n_elements = lists.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    return np.repeat(np.arange(len(lists)), n_elements)


def _distinct(values: Values) -> tuple[Values, Ints]:
    """The distinct values, including null; and int64[n], the place of each value among them."""
    encoded = values.dictionary_encode(null_encoding="encode")
    index: Ints = encoded.indices.to_numpy(zero_copy_only=False)
    return encoded.dictionary, index.astype(np.int64)


def _even(low: Ints, high: Ints, size: int) -> Sparse:
    """csr_matrix[v, size]. Row i is uniform over low[i] .. high[i] - 1."""
    width = high - low
    row = np.repeat(np.arange(len(low)), width)
    code = np.arange(len(row)) - np.repeat(np.cumsum(width) - width, width) + low[row]
    return _matrix(1.0 / width[row], row, code, len(low), size)


def _matrix(share: Floats, row: Ints, code: Ints, n: int, size: int) -> Sparse:
    from scipy.sparse import csr_matrix

    return csr_matrix((share, (row, code)), (n, size))


#: The readers, by form. In other forms, released values have the column's own type.
_READERS: dict[str, Callable[[Axis, Values], Spans | CategoryShares]] = {
    "interval": _interval,
    "set": _set,
    "node": _nodes,
    "nothing": _nodes,
    "shares": _proportional,
}

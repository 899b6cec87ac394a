"""Numbers the rows of a table in memory by their values."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonlib.arrays import MISSING, Codes, Ints

#: Combinations are numbered up to this without a sort in between: int64 holds them.
LARGEST_NUMBER = 2**62
#: With up to so many combinations per row, they are marked in an array; with more, rows are sorted.
DENSE = 4


def number_classes(columns: Sequence[Any]) -> Ints:
    """int64[n]. Rows with equal values in all columns get the same number. Takes nested types."""
    return _number_rows([column.combine_chunks() for column in columns])


def number_distinct(values: pa.Array) -> Ints:
    """int64[n]. Equal values of any type get the same number, and so do missing ones: for d
    different ones 0..d-1.

    Cost: O(n log n), without a step in Python for each value.
    """
    if pa.types.is_struct(values.type):
        is_null = values.is_null().to_numpy(zero_copy_only=False).astype(np.int64)
        return number_tuples([is_null, *map(number_distinct, values.flatten())], len(values))
    if pa.types.is_nested(values.type):
        values = _as_bytes(values)
    if pa.types.is_dictionary(values.type):  # it may have values that no row has
        values = values.dictionary_decode()
    encoded = values.dictionary_encode("encode").indices
    numbers: Ints = encoded.to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers


def number_tuples(columns: Sequence[Ints | Codes], n: int) -> Ints:
    """int64[n]: the place of each row among the distinct rows in order, from 0.

    Cost: O(n) for each column, and one sort where there are many more combinations than rows, or
    more than LARGEST_NUMBER.

    Args:
        columns: The numbers of the rows in each column; MISSING counts as one of them.
        n: The rows.
    """
    number, size = np.zeros(n, np.int64), 1
    for column in columns:
        n_values = int(column.max(initial=MISSING)) + 2
        if size * n_values > LARGEST_NUMBER:
            number = _rank(number, size)
            size = int(number.max(initial=0)) + 1
        number = number * n_values + column + 1
        size *= n_values
    return _rank(number, size)


def find_examples(number: Ints) -> Ints:
    """int64[d]. A row of each number, whichever it is. number: int64[n]. All of 0..d-1 occur."""
    rows = np.empty(int(number.max(initial=-1)) + 1, np.int64)
    rows[number] = np.arange(len(number))
    return rows


def _rank(number: Ints, size: int) -> Ints:
    """int64[n]. The place of each number among the distinct ones in order. size: One more than the
    largest may be."""
    if size > DENSE * max(len(number), 1):
        return np.unique(number, return_inverse=True)[1].astype(np.int64)
    found = np.zeros(size, np.int64)
    found[number] = 1
    return (np.cumsum(found) - 1)[number]


def _number_rows(columns: Sequence[pa.Array]) -> Ints:
    return number_tuples([*map(number_distinct, columns)], len(columns[0]))


def _as_bytes(lists: pa.Array) -> pa.Array:
    """Turns lists or maps into the bytes of the numbers of their elements. Null stays null."""
    is_map = pa.types.is_map(lists.type)
    inner = _number_rows([lists.keys, lists.items] if is_map else [lists.values])
    stops = lists.offsets.to_numpy().astype(np.int64) * inner.itemsize
    buffers = [None, pa.py_buffer(stops), pa.py_buffer(inner)]
    texts = pa.Array.from_buffers(pa.large_binary(), len(lists), buffers)
    return pc.if_else(lists.is_valid(), texts, None)

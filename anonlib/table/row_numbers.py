"""Numbers the rows of a table in memory by their values."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonlib.arrays import Ints


def number_classes(columns: Sequence[Any]) -> Ints:
    """int64[n]. Rows with equal values in all columns get the same number. Takes nested types."""
    return _equal([column.combine_chunks() for column in columns])


def _equal(arrays: Sequence[pa.Array]) -> Ints:
    """int64[n]. Rows with equal values get the same number. Missing values are equal."""
    code = np.zeros(len(arrays[0]), np.int64)
    for values in arrays:
        found = _codes(values)
        both = code * (int(found.max(initial=0)) + 1) + found
        code = np.unique(both, return_inverse=True)[1].astype(np.int64)
    return code


def _codes(values: pa.Array) -> Ints:
    if pa.types.is_struct(values.type):
        return _equal([values.is_null(), *values.flatten()])
    if pa.types.is_nested(values.type):
        values = _as_bytes(values)
    encoded = values.dictionary_encode("encode").indices
    codes: Ints = encoded.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes


def _as_bytes(lists: pa.Array) -> pa.Array:
    """Turns lists or maps into the bytes of the codes of their elements. Null stays null."""
    is_map = pa.types.is_map(lists.type)
    inner = _equal([lists.keys, lists.items] if is_map else [lists.values])
    stops = lists.offsets.to_numpy().astype(np.int64) * inner.itemsize
    buffers = [None, pa.py_buffer(stops), pa.py_buffer(inner)]
    texts = pa.Array.from_buffers(pa.large_binary(), len(lists), buffers)
    return pc.if_else(lists.is_valid(), texts, None)

"""Rows are numbered by their values: as Python's values are equal, of any type."""

from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from anonlib.arrays import MISSING
from anonlib.table.row_numbers import number_classes, number_distinct, number_tuples

TEXTS = st.none() | st.sampled_from(["", ",", "a", "a,"])
SPANS = st.none() | st.fixed_dictionaries(
    {"lower": st.none() | st.integers(0, 1), "upper": st.sampled_from([0.0, 1.5])}
)
TYPES: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.string(), TEXTS),
    (pa.list_(pa.string()), st.none() | st.lists(TEXTS, max_size=3)),
    (pa.struct([("lower", pa.int64()), ("upper", pa.float64())]), SPANS),
    (
        pa.list_(pa.struct([("lower", pa.int64()), ("upper", pa.float64())])),
        st.none() | st.lists(SPANS, max_size=2),
    ),
    (
        pa.map_(pa.string(), pa.int64()),
        st.none() | st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 1)), max_size=2),
    ),
]
NUMBERS = st.integers(MISSING, 3)


@given(st.data(), st.sampled_from(TYPES), st.integers(0, 3))
def test_equal_values_have_one_number(
    data: st.DataObject, kind: tuple[pa.DataType, st.SearchStrategy[Any]], start: int
) -> None:
    type, values = kind
    column = pa.array(data.draw(st.lists(values, max_size=20)), type)
    rows = (column if pa.types.is_map(type) else column.slice(start)).to_pylist()
    found = number_distinct(pa.array(rows, type) if pa.types.is_map(type) else column.slice(start))
    pairs = {(number, repr(row)) for number, row in zip(found.tolist(), rows, strict=True)}
    assert len(pairs) == len({*found.tolist()}) == len({*map(repr, rows)})


@given(st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), max_size=30))
def test_tuples_are_numbered_in_order(rows: list[tuple[int, int, int]]) -> None:
    columns = [np.array([row[i] for row in rows], np.int64) for i in range(3)]
    place = {row: i for i, row in enumerate(sorted({*rows}))}
    assert number_tuples(columns, len(rows)).tolist() == [place[row] for row in rows]
    codes = [column.astype(np.int32) for column in columns]
    assert number_tuples(codes, len(rows)).tolist() == [place[row] for row in rows]
    # Together more than int64 holds.
    far = [np.where(column > 0, column << 25, column) for column in columns]
    assert number_tuples(far, len(rows)).tolist() == [place[row] for row in rows]


def test_rows_without_columns_are_equal() -> None:
    assert number_tuples([], 3).tolist() == [0, 0, 0]


def test_missing_values_are_equal() -> None:
    a, b = pa.chunked_array([["x", None], [None]]), pa.chunked_array([[1, None, None]])
    assert number_classes([a, b]).tolist() == [0, 1, 1]

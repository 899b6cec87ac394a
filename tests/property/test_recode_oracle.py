"""Every recoder on every column type against a slow and obvious oracle, one cell at a time."""

import json
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonlib.recode import Cells, Domain
from anonlib.recode.centroid import Centroid, round_significant
from anonlib.recode.interval import Interval
from anonlib.recode.median import Median
from anonlib.recode.mode import Mode
from anonlib.recode.set import Set

EPOCH = datetime.fromisoformat("1970-01-01")
FIRST, LAST = map(datetime.fromisoformat, ["0001-01-01", "9999-12-31T23:59:59.999999"])
DIGITS = Context(prec=60)
QUICK = settings(max_examples=25, deadline=None)


def integers(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    largest = 10**precision - 1
    return st.integers(-largest, largest).map(lambda n: Decimal(n).scaleb(-scale, DIGITS))


def floats(width: Any) -> st.SearchStrategy[float]:
    return st.floats(allow_nan=False, allow_infinity=False, width=width)


#: every supported type, with values that reach both ends of its range
TYPES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int8(): integers(8),
    pa.int16(): integers(16),
    pa.int32(): integers(32),
    pa.int64(): integers(64),
    pa.float32(): floats(32),
    pa.float64(): floats(64),
    pa.decimal128(5, 2): decimals(5, 2),
    pa.decimal128(20, 0): decimals(20, 0),
    pa.decimal128(38, 10): decimals(38, 10),
    pa.decimal128(38, 38): decimals(38, 38),
    pa.bool_(): st.booleans(),
    pa.date32(): st.dates() | st.sampled_from([date.min, date.max]),
    pa.timestamp("us"): st.datetimes() | st.sampled_from([FIRST, LAST]),
    pa.timestamp("us", "UTC"): st.datetimes(timezones=st.just(UTC))
    | st.sampled_from([each.replace(tzinfo=UTC) for each in (FIRST, LAST)]),
    pa.string(): st.text(),
    pa.large_string(): st.text(st.sampled_from('a,"\\{}[] \n\x01é😀')),
    pa.dictionary(pa.int32(), pa.string()): st.text(max_size=2),
}
NO_MEAN = {pa.bool_(), pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())}
MEANS = [each for each in TYPES if each not in NO_MEAN]
FLOATS = [pa.float32(), pa.float64()]
EXACT = [each for each in MEANS if each not in FLOATS]


@dataclass
class Example:
    """A column, its cells, and the same as lists of values, one per cell."""

    values: Any
    cells: Cells
    lists: list[list[Any]]


@st.composite
def examples(draw: st.DrawFn, column: pa.DataType) -> Example:
    pool = draw(st.lists(TYPES[column], min_size=1, max_size=4))
    value = st.none() | st.sampled_from(pool) | TYPES[column]
    rows = draw(st.lists(st.tuples(st.integers(0, 4), value), max_size=25))
    labels = np.array([label for label, _ in rows], np.int64)
    ids = np.unique(labels, return_inverse=True)[1].astype(np.int64)
    m = len(set(labels.tolist()))
    lists: list[list[Any]] = [[] for _ in range(m)]
    for cell, (_, each) in zip(ids, rows, strict=True):
        lists[cell].append(each)
    # a slice, since arrays may begin anywhere in their buffers
    array = pa.array([pool[0], None, *(each for _, each in rows)], column)[2:]
    return Example(array, Cells(ids, m), lists)


def expected(lists: list[list[Any]], reduce: Callable[[list[Any]], Any]) -> list[Any]:
    present = [[each for each in values if each is not None] for values in lists]
    return [
        None if 2 * len(some) < len(values) else reduce(some)
        for some, values in zip(present, lists, strict=True)
    ]


def released(recoder: Any, example: Example, order: tuple[str, ...] | None = None) -> list[Any]:
    result = recoder.recode(example.values, example.cells, Domain(order))
    result.validate(full=True)
    assert result.type == recoder.output(example.values.type)
    assert len(result) == example.cells.m
    rows: list[Any] = result.to_pylist()
    return rows


def exact(value: Any, column: Any) -> Fraction:
    """The number behind a value, in units of the last place that its type has."""
    if isinstance(value, datetime):
        return Fraction((value.replace(tzinfo=None) - EPOCH) // timedelta(microseconds=1))
    if isinstance(value, date):
        return Fraction(value.toordinal() - EPOCH.toordinal())
    if isinstance(value, Decimal):
        return Fraction(value) * Fraction(10**column.scale)
    return Fraction(value)


def back(number: int, column: Any) -> Any:
    if pa.types.is_timestamp(column):
        value = EPOCH + timedelta(microseconds=number)
        return value if column.tz is None else value.replace(tzinfo=UTC)
    if pa.types.is_date32(column):
        return date.fromordinal(number + EPOCH.toordinal())
    if pa.types.is_decimal128(column):
        return Decimal(number).scaleb(-column.scale, DIGITS)
    return number


def mean(values: list[Any], column: pa.DataType) -> Fraction:
    return sum((exact(each, column) for each in values), Fraction(0)) / len(values)


@pytest.mark.parametrize("column", EXACT, ids=str)
@QUICK
@given(data=st.data())
def test_centroid_is_the_exact_mean_rounded_half_to_even(
    column: pa.DataType, data: st.DataObject
) -> None:
    example = data.draw(examples(column))
    # round() of a Fraction is half to even
    right = expected(example.lists, lambda some: back(round(mean(some, column)), column))
    assert released(Centroid(), example) == right


@pytest.mark.parametrize("column", EXACT, ids=str)
@QUICK
@given(data=st.data())
def test_centroid_of_another_type_is_the_nearest_float(
    column: pa.DataType, data: st.DataObject
) -> None:
    example = data.draw(examples(column))
    recoder = Centroid(keep_type=False)
    if pa.types.is_temporal(column):
        assert released(recoder, example) == released(Centroid(), example)
        return
    scale = 10 ** getattr(column, "scale", 0)
    right = expected(example.lists, lambda some: float(mean(some, column) / scale))
    assert released(recoder, example) == right


@pytest.mark.parametrize("column", FLOATS, ids=str)
@QUICK
@given(data=st.data())
def test_centroid_of_floats_keeps_the_sum_and_the_range(
    column: pa.DataType, data: st.DataObject
) -> None:
    example = data.draw(examples(column))
    means = released(Centroid(), example)
    right = expected(example.lists, lambda some: some)
    tolerance, smallest = (1e-9, 2**-1074) if column == pa.float64() else (1e-7, 2**-149)
    for got, some in zip(means, right, strict=True):
        assert (got is None) == (some is None)
        if got is None:
            continue
        assert min(some) <= got <= max(some)
        assert got != 0 or math.copysign(1, got) == 1
        size = sum(abs(Fraction(each)) for each in some) / len(some)
        assert abs(Fraction(got) - mean(some, column)) <= tolerance * size + smallest


@given(st.floats(1e-8, 1e37, exclude_max=True), st.booleans())
def test_means_have_15_digits(value: float, negative: bool) -> None:
    value = -value if negative else value
    (short,) = round_significant(np.array([value])).tolist()
    assert float(f"{short:.15g}") == short
    digit = Fraction(10) ** (math.floor(math.log10(abs(value))) - 14)
    assert abs(Fraction(short) - Fraction(value)) <= digit * Fraction(6, 10)


def test_means_of_decimal_fractions_show_no_binary_noise() -> None:
    prices = pa.array([10.0, 10.1, 10.5, 0.1 + 0.2, 0.1 + 0.2])
    cells = Cells(np.array([0, 0, 0, 1, 1]), 2)
    assert (10.0 + 10.1 + 10.5) / 3 == 10.200000000000001
    assert Centroid().recode(prices, cells, Domain()).to_pylist() == [10.2, 0.1 + 0.2]


@pytest.mark.parametrize("column", [pa.float64(), pa.int64()], ids=str)
@given(
    lists=st.lists(st.lists(st.integers(-50, 50), min_size=1, max_size=6), min_size=1, max_size=6)
)
def test_restored_variance_is_that_of_the_values(
    column: pa.DataType, lists: list[list[int]]
) -> None:
    ids = np.repeat(np.arange(len(lists)), [len(rows) for rows in lists])
    values = [each for rows in lists for each in rows]
    recoder = Centroid(restore_variance=True, keep_type=False)
    got = recoder.recode(pa.array(values, column), Cells(ids, len(lists)), Domain()).to_numpy()
    means = [sum(rows) / len(rows) for rows in lists]
    if np.ptp(means) < 1e-12:
        assert got == pytest.approx(means)
    else:
        assert got[ids].mean() == pytest.approx(np.mean(values), abs=1e-9)
        assert got[ids].var() == pytest.approx(np.var(values))
        assert (np.diff(got[np.argsort(means, kind="stable")]) >= -1e-9).all()


@pytest.mark.parametrize("column", TYPES, ids=str)
@QUICK
@given(data=st.data())
def test_median_is_the_lower_median(column: pa.DataType, data: st.DataObject) -> None:
    example = data.draw(examples(column))
    right = expected(example.lists, lambda some: sorted(some)[(len(some) - 1) // 2])
    assert released(Median(), example) == right


def plurality(values: list[Any], rank: Callable[[Any], Any] = lambda value: value) -> Any:
    count = Counter(values)
    best = max(count.values())
    present = [each for each in count if each is not None and count[each] == best]
    return min(present, key=rank, default=None)


@pytest.mark.parametrize("column", TYPES, ids=str)
@QUICK
@given(data=st.data())
def test_mode_is_the_plurality_with_missing_as_a_category(
    column: pa.DataType, data: st.DataObject
) -> None:
    example = data.draw(examples(column))
    assert released(Mode(), example) == [plurality(values) for values in example.lists]


@pytest.mark.parametrize("column", TYPES, ids=str)
@QUICK
@given(data=st.data())
def test_interval_is_the_least_and_the_greatest(column: pa.DataType, data: st.DataObject) -> None:
    example = data.draw(examples(column))
    right = expected(example.lists, lambda some: {"lower": min(some), "upper": max(some)})
    assert released(Interval(), example) == right


def distinct(values: list[Any]) -> list[Any] | None:
    present = [each for each in values if each is not None]
    if 2 * len(present) < len(values):
        return None
    return sorted(set(present)) + [None] * (len(present) < len(values))


@pytest.mark.parametrize("column", TYPES, ids=str)
@QUICK
@given(data=st.data())
def test_set_is_the_sorted_distinct_values(column: pa.DataType, data: st.DataObject) -> None:
    example = data.draw(examples(column))
    assert released(Set(), example) == [distinct(values) for values in example.lists]


def reader(column: pa.DataType) -> Callable[[Any], Any]:
    """What turns a parsed JSON value, or the text of a bound, into a value of the column."""
    if pa.types.is_timestamp(column):
        return datetime.fromisoformat
    if pa.types.is_date32(column):
        return date.fromisoformat
    if pa.types.is_float32(column):
        return lambda number: float(np.float32(number))
    if pa.types.is_decimal(column):
        return Decimal
    return lambda value: value


@pytest.mark.parametrize("column", TYPES, ids=str)
@QUICK
@given(data=st.data())
def test_set_text_is_json_that_reads_back(column: pa.DataType, data: st.DataObject) -> None:
    example = data.draw(examples(column))
    read = reader(column)
    for text, values in zip(
        released(Set(form="text"), example), map(distinct, example.lists), strict=True
    ):
        if values is None:
            assert text is None
            continue
        parsed = json.loads(text, parse_float=Decimal if pa.types.is_decimal(column) else None)
        assert [None if each is None else read(each) for each in parsed] == values


@pytest.mark.parametrize("column", TYPES, ids=str)
@QUICK
@given(data=st.data())
def test_interval_text_reads_back(column: pa.DataType, data: st.DataObject) -> None:
    example = data.draw(examples(column))
    read = reader(column)
    right = expected(example.lists, lambda some: [min(some), max(some)])
    for text, bounds in zip(released(Interval(form="text"), example), right, strict=True):
        if bounds is None:
            assert text is None
        elif pa.types.is_temporal(column):
            assert [read(each) for each in text[1:-1].split(", ")] == bounds
        else:
            parsed = json.loads(text, parse_float=Decimal if pa.types.is_decimal(column) else None)
            assert [read(each) for each in parsed] == bounds


ORDER = ("low", "a middle", "higher", "a top")


@QUICK
@given(
    st.lists(st.lists(st.sampled_from(ORDER) | st.none(), min_size=1), max_size=6),
    st.sampled_from([pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())]),
)
def test_ordinal_text_compares_by_rank(lists: list[list[Any]], column: pa.DataType) -> None:
    ids = np.repeat(np.arange(len(lists)), [len(values) for values in lists])
    array = pa.array([each for values in lists for each in values], column)
    example = Example(array, Cells(ids, len(lists)), lists)

    def ranked(some: list[Any]) -> list[Any]:
        return sorted(some, key=ORDER.index)

    medians = expected(lists, lambda some: ranked(some)[(len(some) - 1) // 2])
    assert released(Median(), example, ORDER) == medians
    bounds = expected(lists, lambda some: {"lower": ranked(some)[0], "upper": ranked(some)[-1]})
    assert released(Interval(), example, ORDER) == bounds
    assert released(Mode(), example, ORDER) == [plurality(each, ORDER.index) for each in lists]

    def ranked_set(values: list[Any]) -> list[Any] | None:
        found = distinct([None if each is None else ORDER.index(each) for each in values])
        return found and [each if each is None else ORDER[each] for each in found]

    assert released(Set(), example, ORDER) == [ranked_set(values) for values in lists]

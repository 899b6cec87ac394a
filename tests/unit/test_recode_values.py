"""Recoders on small examples that show what the rules mean."""

from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from anonlib.errors import InputError
from anonlib.recode import Cells, Domain
from anonlib.recode.centroid import Centroid
from anonlib.recode.interval import Interval
from anonlib.recode.median import Median
from anonlib.recode.mode import Mode
from anonlib.recode.set import Set


def recode(recoder: Any, *cells: list[Any], type: Any = None) -> list[Any]:
    """The released values, given the rows of each cell."""
    ids = np.repeat(np.arange(len(cells)), [len(rows) for rows in cells])
    values = pa.array([each for rows in cells for each in rows], type)
    result: list[Any] = recoder.recode(values, Cells(ids, len(cells)), Domain()).to_pylist()
    return result


@pytest.mark.parametrize("type", [pa.int8(), pa.int32(), pa.int64(), pa.float64()])
def test_values_of_all_widths_are_in_order_within_cells(type: Any) -> None:
    """Narrow ones share a number with their cell; the widest do not fit."""
    if pa.types.is_floating(type):
        ends = [-1e300, -0.5, 0.5, 1e300]
    else:
        bounds = np.iinfo(type.to_pandas_dtype())
        ends = [int(bounds.min), 3, 4, int(bounds.max)]
    cells = [ends[i] for i in (3, 0, 2, 0)], [ends[1]] * 2, [ends[i] for i in (2, 3, 1)]
    assert recode(Set(), *cells, type=type) == [sorted({*each}) for each in cells]
    lowest = [max(sorted({*each}), key=each.count) for each in cells]
    assert recode(Mode(), *cells, type=type) == lowest


@pytest.mark.parametrize("recoder", [Centroid(), Median(), Mode()])
def test_half_missing_keeps_the_value_and_more_than_half_is_null(recoder: Any) -> None:
    cells = [7, None], [7, None, None], [None], [7, 7, None]
    assert recode(recoder, *cells, type=pa.int64()) == [7, None, None, 7]


def test_intervals_and_sets_are_null_where_most_are_missing() -> None:
    cells = [1, 2, None, None], [1, 2, None, None, None]
    assert recode(Interval(), *cells) == [{"lower": 1, "upper": 2}, None]
    assert recode(Interval(form="text"), *cells) == ["[1, 2]", None]
    assert recode(Set(), *cells) == [[1, 2, None], None]
    assert recode(Set(form="text"), *cells) == ["[1, 2, null]", None]


def ends(recoder: Interval, *cells: list[Any], type: Any = None) -> list[Any]:
    return [None if e is None else (*e.values(),) for e in recode(recoder, *cells, type=type)]


@pytest.mark.parametrize("column", [pa.int8(), pa.int64(), pa.float32(), pa.decimal128(9, 2)])
def test_ends_of_intervals_are_rounded_outwards_and_coded(column: pa.DataType) -> None:
    cells = [17, 23, 24], [30, 30], [-7, -3], [91, 99], [None]
    said = partial(ends, type=column)
    assert said(Interval(round_to=10), *cells) == [(10, 30), (30, 30), (-10, 0), (90, 100), None]
    coded = said(Interval(bottom=0, top=90), *cells)
    assert coded == [(17, 24), (30, 30), (0, 0), (90, 90), None]
    both = said(Interval(round_to=10, bottom=20, top=95), *cells)
    assert both == [(20, 30), (30, 30), (20, 20), (90, 95), None]


def test_ends_of_times_go_to_the_beginning_of_a_unit() -> None:
    days = [date(1985, 3, 7), date(1986, 12, 31)], [date(2000, 1, 1)]
    (first, _), alone = (
        ends(Interval(round_to="month"), *days),
        ends(Interval(round_to="year"), *days)[1],
    )
    assert first == (date(1985, 3, 1), date(1987, 1, 1))
    assert alone == (date(2000, 1, 1), date(2000, 1, 1))
    for zone in (None, "Europe/Paris"):
        times = pa.timestamp("us", zone)
        text = recode(Interval(form="text", round_to="day"), [-1, 1], type=times)[0]
        z = "" if zone is None else "Z"
        assert text == f"[1969-12-31T00:00:00.000000{z}, 1970-01-02T00:00:00.000000{z}]"


DAY, MICROSECOND = timedelta(1), timedelta(microseconds=1)
LAST = datetime.fromisoformat("9999-12-31T23:59:59.999999")


@pytest.mark.parametrize("form", ["struct", "text"])
@pytest.mark.parametrize(
    ("round_to", "values", "column", "found"),
    [
        (10, [-125, 125], pa.int8(), (-128, 127)),
        (1000, [2**63 - 1], pa.int64(), (2**63 - 1 - 807, 2**63 - 1)),
        (100, [Decimal("999.5")], pa.decimal128(4, 1), (Decimal("900.0"), Decimal("999.9"))),
        (1e308, [1.7e308], pa.float64(), (1e308, float(np.finfo(np.float64).max))),
        ("year", [date(9999, 12, 31)], pa.date32(), (date(9999, 1, 1), date(9999, 12, 31))),
        ("month", [date(9999, 12, 1)], pa.date32(), (date(9999, 12, 1), date(9999, 12, 1))),
        ("day", [LAST], pa.timestamp("us"), (LAST - DAY + MICROSECOND, LAST)),
        ("year", [LAST - 9 * DAY], pa.timestamp("us"), (LAST - 365 * DAY + MICROSECOND, LAST)),
    ],
)
def test_rounded_ends_that_no_type_has_are_its_last_values(
    round_to: Any, values: list[Any], column: Any, found: tuple[Any, Any], form: Any
) -> None:
    """9999-12-31 is the usual open end of what is valid for ever."""
    rounded = recode(Interval(round_to=round_to, form=form), values, type=column)[0]
    if form == "struct":
        assert (*rounded.values(),) == found
    else:
        assert rounded == recode(Interval(form="text"), [*found], type=column)[0]


def test_dates_that_no_reader_knows_are_rounded_as_others() -> None:
    """Of nanoseconds, those before the first value would go on with the last ones."""
    days = pa.array([3_000_000, None], pa.int32()).cast(pa.date32())
    found = Interval(round_to="year").recode(days, Cells(np.array([0, 1]), 2), Domain())
    ends = [found.field(i).cast(pa.int32())[0].as_py() for i in range(2)]
    assert ends[0] <= 3_000_000 <= ends[1] < ends[0] + 367
    most = 2**63 - 1
    times = pa.array([most - 5, 5 - most], pa.int64()).cast(pa.timestamp("ns"))
    for unit in ("day", "month", "year"):
        found = Interval(round_to=unit).recode(times, Cells(np.array([0, 1]), 2), Domain())
        lower, upper = (found.field(i).cast(pa.int64()).to_pylist() for i in range(2))
        assert (upper[0], lower[1]) == (most, -most)
        assert lower[0] <= most - 5
        assert 5 - most <= upper[1]


@pytest.mark.parametrize(
    ("recoder", "column"),
    [
        (Interval(round_to=10), pa.string()),
        (Interval(round_to=2.5), pa.int32()),
        (Interval(round_to=10), pa.date32()),
        (Interval(round_to="year"), pa.int32()),
        (Interval(bottom=3), pa.date32()),
        (Interval(top=300), pa.int8()),
        (Interval(top=3), pa.string()),
        (Interval(bottom=0.001), pa.decimal128(9, 2)),
    ],
)
def test_ends_that_can_not_be_coded(recoder: Any, column: pa.DataType) -> None:
    with pytest.raises(InputError, match=r"round_to|bottom|top"):
        recoder.output(column)


def test_a_range_of_ends_that_is_none() -> None:
    with pytest.raises(ValueError, match="below top"):
        Interval(bottom=5, top=5)


def test_intervals_say_whose_values_their_ends_are() -> None:
    assert "values of single persons" in Interval().shows
    assert Interval(top=2).shows.endswith(
        "set round_to of recoder interval, or bottom and top for the rarest"
    )
    assert Interval(bottom=1, top=2).shows.endswith("persons; set round_to of recoder interval")
    assert not Interval(round_to=5).shows
    assert not Median().shows


def test_missing_competes_as_a_category_of_the_mode() -> None:
    cells = ["a", "b", None, None], ["a", "a", None, None], ["b", "a", None]
    assert recode(Mode(), *cells) == [None, "a", "a"]


def test_means_of_64_bit_extremes_are_exact() -> None:
    low, high = -(2**63), 2**63 - 1
    cells = [high] * 5, [low] * 7, [low, high], [high, high - 1], [2**53 + 1]
    # the last digits are rounded half to even
    assert recode(Centroid(), *cells) == [high, low, 0, high - 1, 2**53 + 1]
    assert recode(Centroid(keep_type=False), [low, high], [1, 2]) == [-0.5, 1.5]


def test_means_round_half_to_even() -> None:
    assert recode(Centroid(), [0, 1], [1, 2], [-1, 0], [-2, -1], [1, 1, 2]) == [0, 2, 0, -2, 1]
    cells = [Decimal("0.01"), Decimal("0.02")], [Decimal("-0.01"), Decimal("-0.02")]
    assert recode(Centroid(), *cells) == [Decimal("0.02"), Decimal("-0.02")]
    days = [date(2000, 1, 1), date(2000, 1, 2), date(2000, 1, 2)]
    assert recode(Centroid(), days, [date.min], [date.max]) == [days[1], date.min, date.max]


def test_means_of_floats_neither_overflow_nor_vanish() -> None:
    huge, tiny, largest = 1e308, 5e-324, float(np.finfo(np.float64).max)
    cells = [huge] * 9, [huge, -huge], [largest] * 3, [tiny] * 3, [tiny, 3 * tiny]
    assert recode(Centroid(), *cells) == [huge, 0.0, largest, tiny, 2 * tiny]
    largest = float(np.finfo(np.float32).max)
    assert recode(Centroid(), [largest] * 3, type=pa.float32()) == [largest]


def test_a_constant_cell_keeps_its_value() -> None:
    assert recode(Centroid(), [0.1] * 10, [0.7] * 3, [1 / 3] * 7) == [0.1, 0.7, 1 / 3]


def test_infinities_have_means_too() -> None:
    infinity = float("inf")
    cells = [infinity, 1.0], [-infinity, 1e308, 1e308], [-infinity, infinity]
    assert recode(Centroid(), *cells) == [infinity, -infinity, None]


RESTORING = Centroid(restore_variance=True)


def test_restored_variance() -> None:
    # Sums of squares about the mean, 4: of all 40, of the two means 4 * 9.
    factor = (40 / 36) ** 0.5
    cells = [0.0, 2.0], [6.0, 8.0]
    assert recode(RESTORING, *cells) == pytest.approx([4 - 3 * factor, 4 + 3 * factor])
    # A cell with more than half missing takes no part, a missing value of another none either.
    cells = [0.0, 2.0, None], [8.0, 6.0], [100.0, None, None]
    assert recode(RESTORING, *cells) == [*recode(RESTORING, *cells[:2]), None]
    assert recode(RESTORING, *cells)[0] == pytest.approx(4 - 3 * factor)


def test_restored_variance_where_there_is_none_to_restore() -> None:
    largest, infinity = 2**63 - 1, float("inf")
    for cells in (
        ([1, 5, 9],),
        ([1, 3], [0, 4]),
        ([largest] * 3, [1] * 2),
        ([0, 0, 1], [0, 0, 0, 0, 1, 1], [1, 0, 0, 0, 0, 0, 0, 1, 1]),
        ([infinity, 1.0], [2.0, 3.0]),
        ([infinity, -infinity], [2.0, 3.0]),
    ):
        assert recode(RESTORING, *cells) == recode(Centroid(), *cells)


@pytest.mark.parametrize(
    ("column", "low", "high"),
    [
        (pa.int8(), -128, 127),
        (pa.int64(), -(2**63), 2**63 - 1),
        (pa.decimal128(38, 2), Decimal("-" + "9" * 36 + ".99"), Decimal("9" * 36 + ".99")),
        (pa.date32(), date.min, date.max),
    ],
    ids=str,
)
def test_restored_variance_stays_within_the_type(column: pa.DataType, low: Any, high: Any) -> None:
    cells = [low, low, high], [low, high], [high, high, low]
    moved = recode(RESTORING, *cells, type=column)
    assert (moved[0], moved[2]) == (low, high)


def test_restored_variance_of_huge_and_tiny_floats() -> None:
    largest = float(np.finfo(np.float64).max)
    cells = [-largest, -largest, largest], [-largest, largest], [largest, largest, -largest]
    assert recode(RESTORING, *cells) == [-largest, 0.0, largest]
    for scale in (1e300, 1e-300):
        moved = recode(RESTORING, [0.0, 2.0 * scale], [6.0 * scale, 8.0 * scale])
        assert moved[1] - moved[0] == pytest.approx(6 * (40 / 36) ** 0.5 * scale)


def test_restored_variance_keeps_or_leaves_the_type() -> None:
    cells = [Decimal("0.0"), Decimal("0.2")], [Decimal("0.6"), Decimal("0.8")]
    factor = (40 / 36) ** 0.5
    assert recode(RESTORING, *cells) == [Decimal("0.1"), Decimal("0.7")]
    loose = Centroid(restore_variance=True, keep_type=False)
    assert recode(loose, *cells) == pytest.approx([0.4 - 0.3 * factor, 0.4 + 0.3 * factor])
    days = [date(2000, 1, 1 + 10 * i) for i in (0, 2)], [date(2000, 3, 1 + 10 * i) for i in (0, 2)]
    assert recode(RESTORING, *days) == [date(2000, 1, 9), date(2000, 3, 13)]


@pytest.mark.parametrize("column", [pa.float32(), pa.float64()], ids=str)
@pytest.mark.parametrize("recoder", [Centroid(), Median(), Mode(), Interval(), Set()])
def test_zero_has_one_form(recoder: Any, column: pa.DataType) -> None:
    assert "-0.0" not in str(recode(recoder, [-0.0], [0.0, -0.0], [-0.0, -0.0], type=column))
    assert "-0" not in recode(Interval(form="text"), [-0.0], type=column)[0]


@pytest.mark.parametrize("recoder", [Centroid(), Median(), Mode(), Interval(), Set()])
def test_nan_is_missing(recoder: Any) -> None:
    nan = pa.array([1.0, float("nan"), None, float("nan")])
    null = pa.array([1.0, None, None, None])
    cells = Cells(np.array([0, 0, 1, 1]), 2)
    assert recoder.recode(nan, cells, Domain()).equals(recoder.recode(null, cells, Domain()))


def test_texts_are_unambiguous() -> None:
    strings = ['a, "b"', "c]", "back\\slash", "tab\t", "é😀"]
    text = r'["a, \"b\"", "back\\slash", "c]", "tab\u0009", "é😀"]'
    assert recode(Set(form="text"), strings) == [text]
    assert recode(Set(form="text"), ["null", None]) == ['["null", null]']
    assert recode(Interval(form="text"), strings) == ['["a, \\"b\\"", "é😀"]']
    assert recode(Set(form="text"), [True, False], type=pa.bool_()) == ["[false, true]"]
    assert recode(Set(form="text"), [float("inf"), 0.1]) == ['[0.1, "inf"]']


def test_texts_of_dates_and_numbers() -> None:
    def text(values: list[Any], column: pa.DataType) -> Any:
        return recode(Interval(form="text"), values, type=column)[0]

    assert text([date.min, date.max], pa.date32()) == "[0001-01-01, 9999-12-31]"
    first, last = "1969-12-31T23:59:59.999999", "1970-01-01T00:00:00.000000"
    assert text([0, -1], pa.timestamp("us")) == f"[{first}, {last}]"
    # a zone's name doesn't change the text, which is in UTC
    assert text([0, -1], pa.timestamp("us", "Europe/Paris")) == f"[{first}Z, {last}Z]"
    small = [Decimal("1E-10"), Decimal(0)]
    assert text(small, pa.decimal128(38, 10)) == "[0.0000000000, 0.0000000001]"
    assert text([1e300, 0.1], pa.float64()) == "[0.1, 1e+300]"


@pytest.mark.parametrize(
    "column", [pa.string(), pa.bool_(), pa.dictionary(pa.int8(), pa.string())], ids=str
)
def test_a_centroid_needs_numbers(column: pa.DataType) -> None:
    with pytest.raises(InputError) as error:
        Centroid().output(column)
    text = str(error.value)
    assert "centroid" in text
    assert str(column) in text
    assert "signed integers, float32 and float64, decimal128, date32, timestamps" in text


@pytest.mark.parametrize("recoder", [Centroid(), Median(), Mode(), Interval(), Set()])
@pytest.mark.parametrize("column", [pa.list_(pa.int8()), pa.binary(), pa.uint8(), pa.null()])
def test_other_types_are_refused(recoder: Any, column: pa.DataType) -> None:
    with pytest.raises(InputError, match=f"recoder {recoder.type} can't take a column of type"):
        recoder.output(column)


def test_a_value_outside_the_order_is_an_error_without_the_value() -> None:
    values = pa.array(["low", "secret"])
    with pytest.raises(pa.ArrowInvalid) as error:
        Median().recode(values, Cells(np.zeros(2, np.int64), 1), Domain(("low", "high")))
    assert "secret" not in str(error.value)

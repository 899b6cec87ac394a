"""Ends of intervals at multiples, against exact fractions."""

from decimal import Decimal
from fractions import Fraction
from math import ceil, floor
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from anonlib.recode import Cells, Domain
from anonlib.recode.interval import Interval

#: Of all sizes, with as many digits as floats have, and with their least and largest exponents.
STEPS = [0.1, 0.01, 0.3, 5.0, 2.5, 123.456, 1e-7, 1.5e-6, 1e6, 1e22, 1e15 / 3, 1e-30, 3e30]
EXTREME = [1e-300, 5e-324, 3e300]
N = 300


def draw(step: float, dtype: Any) -> Any:
    """Multiples of a step and of tenths, values near them and far from them, and the last ones."""
    random = np.random.default_rng(7)
    parts = [
        [
            as_float(int(n) * Fraction(repr(step)), np.float64)
            for n in random.integers(-(10**4), 10**4, N)
        ],
        random.normal(size=N) * step,
        random.normal(size=N) * 10.0 ** random.integers(-12, 12, N),
        random.integers(-100, 100, N) / 10,
        [0.0, -0.0, 1e38, -3.4e38, 1e-38, 2.0**60, 1.7e308, -1.7e308, np.inf, -np.inf],
    ]
    with np.errstate(all="ignore"):
        values = np.concatenate(parts).astype(dtype)
        exact = values[np.abs(values) < np.inf]
        return np.concatenate([values, np.nextafter(exact, exact.dtype.type(np.inf))])


def released(recoder: Interval, values: Any) -> tuple[Any, Any]:
    """The ends of cells of one value."""
    found = recoder.recode(values, Cells(np.arange(len(values)), len(values)), Domain())
    return found.field(0), found.field(1)


def as_float(number: Fraction, dtype: Any) -> Any:
    """The nearest float; the last one for numbers beyond."""
    most = np.finfo(dtype).max
    if abs(number) >= Fraction(float(most)):
        return most if number > 0 else -most
    return dtype(float(number))


def round_out(value: Any, step: Fraction, sign: int, dtype: Any) -> Any:
    """The first float on this side of a value that is nearest to a multiple."""
    times = Fraction(float(value)) / step
    n = ceil(times) if sign > 0 else floor(times)
    before = as_float((n - sign) * step, dtype)
    return before if before == value else as_float(n * step, dtype)


#: float32 has no number near the extreme steps.
FLOATS = [*((step, np.float32) for step in STEPS), *((s, np.float64) for s in STEPS + EXTREME)]


@pytest.mark.parametrize(("step", "dtype"), FLOATS)
def test_floats(step: float, dtype: Any) -> None:
    values = draw(step, dtype)
    ends = released(Interval(round_to=step), pa.array(values))
    for end, sign in zip(ends, (-1, 1), strict=True):
        assert end.type == pa.array(values).type
        for value, found in zip(values, end.to_numpy(), strict=True):
            assert found >= value if sign > 0 else found <= value
            if np.isfinite(value):
                assert found == round_out(value, Fraction(repr(step)), sign, dtype)
            else:
                assert found == value


@pytest.mark.parametrize("form", ["struct", "text"])
def test_multiples_stay(form: Any) -> None:
    tenths = np.random.default_rng(1).integers(-40, 40, 4000) / 10
    decimals = pa.array([Decimal(str(each)) for each in tenths], pa.decimal128(5, 3))
    for values in (pa.array(tenths), pa.array(tenths.astype(np.float32)), decimals):
        cells = Cells(np.arange(len(values)), len(values))
        rounded = Interval(round_to=0.1, form=form).recode(values, cells, Domain())
        assert rounded.equals(Interval(form=form).recode(values, cells, Domain()))


@pytest.mark.parametrize("column", [pa.int8(), pa.int16(), pa.int32(), pa.int64()])
@pytest.mark.parametrize("step", [1, 3, 10, 100])
def test_whole_numbers(column: pa.DataType, step: int) -> None:
    most = 2 ** (column.bit_width - 1) - 1
    numbers = [-most - 1, -most, -101, -100, -7, -1, 0, 1, 9, 10, 99, 100, 101, most - 1, most]
    lower, upper = released(Interval(round_to=step), pa.array(numbers, column))
    assert lower.to_pylist() == [max(n // step * step, -most - 1) for n in numbers]
    assert upper.to_pylist() == [min(-(-n // step) * step, most) for n in numbers]


@pytest.mark.parametrize(
    "column", [pa.decimal128(9, 7), pa.decimal128(38, 10), pa.decimal128(20, 7)]
)
@pytest.mark.parametrize("step", [1e-7, 1.5e-6, 0.1, 7.0])
def test_decimals(column: Any, step: float) -> None:
    """A step of seven digits after the point is as exact as one of six."""
    random, unit = np.random.default_rng(3), Fraction(10) ** -column.scale
    most = 10**column.precision - 1
    numbers = [*map(int, random.integers(-(10**9) + 1, 10**9, N)), most, -most, 0]
    values = pa.array([Decimal(f"{n}e-{column.scale}") for n in numbers], column)
    size = int(Fraction(repr(step)) / unit)
    lower, upper = released(Interval(round_to=step), values)
    for n, low, high in zip(numbers, lower.to_pylist(), upper.to_pylist(), strict=True):
        assert Fraction(low) == max(n // size * size, -most) * unit
        assert Fraction(high) == min(-(-n // size) * size, most) * unit


def test_limits_of_decimals_are_exact() -> None:
    values = pa.array([Decimal("0.0000001"), Decimal("0.5")], pa.decimal128(9, 7))
    lower, upper = released(Interval(bottom=1.5e-6, top=0.2500001), values)
    assert lower.to_pylist() == [Decimal("0.0000015"), Decimal("0.2500001")]
    assert upper.to_pylist() == [Decimal("0.0000015"), Decimal("0.2500001")]

"""Ends of intervals, moved outwards to coarser values of their type.

Where the type has no such value, the end is the first or the last one of the type. The last one of
dates and timestamps is that of the year 9999.
"""

from decimal import Context, Decimal
from fractions import Fraction
from math import floor
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from anonlib.recode import Column
from anonlib.recode.arrow import Kind, find_type_kind
from anonlib.table.schema import PER_SECOND

Way = Literal["down", "up"]
Numbers = npt.NDArray[np.float64]

#: The last day of the year 9999, and its end in seconds, both since 1970.
LAST_DAY, END = 2_932_896, 253_402_300_800
#: Floats have all whole numbers up to here, and quotients up to here are off by less than one.
_NEAR = 2**51


def make_scalar(value: float, column: pa.DataType) -> pa.Scalar:
    """A number of a column's type. For decimals, it is the number that its shortest text says.

    Raises pa.ArrowException if the type can't hold it.
    """
    text = f"{Decimal(repr(float(value))):f}" if find_type_kind(column) is Kind.DECIMAL else value
    return pa.scalar(text).cast(column)


def move_to_multiples(ends: Column, step: float, way: Way) -> Column:
    """Numbers at multiples of `step`, which is the number that its shortest text says: a tenth for
    0.1. In floats a multiple is the float that is nearest to it, so that 3.8 is one.

    ends: Signed integers, floats or decimals. NaN and infinite ones stay.
    """
    if find_type_kind(ends.type) is Kind.DECIMAL:
        distinct = ends.dictionary_encode()
        moved = _move_decimals(distinct.dictionary, make_scalar(step, ends.type).as_py(), way)
        return moved.take(distinct.indices)
    absent = ends.is_null().to_numpy(zero_copy_only=False)
    values = pc.fill_null(ends, 0).to_numpy()
    if find_type_kind(ends.type) is Kind.FLOAT:
        found = _move_floats(values, Fraction(repr(float(step))), way)
    else:
        found = _move_integers(values, make_scalar(step, ends.type).as_py(), way)
    return pa.array(found, ends.type, mask=absent)


def _move_decimals(values: pa.Array, step: Decimal, way: Way) -> pa.Array:
    """Decimals at multiples, in their own type."""
    scale, most = values.type.scale, 10**values.type.precision - 1
    wide = Context(prec=200)

    def unscale(value: Decimal) -> int:
        return int(value.scaleb(scale, wide))

    size, sign = unscale(step), 1 if way == "down" else -1
    moved = [sign * (sign * unscale(each) // size * size) for each in values.to_pylist()]
    ends = [Decimal(max(-most, min(most, each))).scaleb(-scale, wide) for each in moved]
    return pa.array(ends, values.type)


def _move_integers(values: Any, step: int, way: Way) -> Any:
    """Whole numbers at multiples, in their own type."""
    limits, wide = np.iinfo(values.dtype), values.astype(np.int64)
    beyond = wide % step
    if way == "down":
        moved = np.maximum(wide, limits.min + beyond) - beyond
    else:
        rest = (step - beyond) % step
        moved = np.minimum(wide, limits.max - rest) + rest
    return moved.astype(values.dtype)


def _move_floats(values: Any, step: Fraction, way: Way) -> Any:
    """Floats at multiples, in their own type.

    Multiples are ordered as their numbers are, so that the last one on the right side of a value is
    the value itself if it is a multiple. A whole number over a whole number is rounded once, if
    floats have both; other multiples are computed exactly.
    """
    sign = -1 if way == "down" else 1  # of the direction outwards
    found = np.full_like(values, np.nan)
    if max(step.numerator, step.denominator) < _NEAR:
        with np.errstate(all="ignore"):
            # In the direction: the multiple before the quotient, which may be off by one.
            first = np.floor(sign * values.astype(np.float64) / float(step)) - 1
            near = np.abs(first) < _NEAR / step.numerator
            for n in range(4):  # the first one that contains the value
                multiple = (first + n) * step.numerator / step.denominator
                fits = near & np.isnan(found) & (multiple.astype(values.dtype) >= sign * values)
                found[fits] = multiple[fits]
    for i in np.flatnonzero(np.isfinite(values) & ~np.isfinite(found)):
        found[i] = _move_float(sign * values[i], step)
    found = np.where(np.isfinite(values), sign * found, values)
    return found + values.dtype.type(0)  # no negative zero


def _move_float(value: Any, step: Fraction) -> Any:
    """The first multiple that is no smaller, or the last float."""
    times = floor(Fraction(float(value)) / step)
    for n in (times, times + 1):
        try:
            with np.errstate(over="ignore"):
                multiple = value.dtype.type(float(n * step))
        except OverflowError:
            continue
        if multiple >= value and np.isfinite(multiple):
            return multiple
    return np.finfo(value.dtype).max


def move_to_beginnings(ends: Column, unit: str, way: Way) -> Column:
    """Dates and timestamps at the beginning of a day, month or year, in UTC. Those that would go
    beyond the year 9999 are at its last value: hardly any reader knows later years."""
    is_time = pa.types.is_timestamp(ends.type)
    # Without its zone, since zones need a time zone database.
    plain = ends.view(pa.int64()).view(pa.timestamp(ends.type.unit)) if is_time else ends
    first, last, end = _find_limits(plain.type)
    if way == "down":
        found = pc.floor_temporal(plain, unit=unit)
        # What is before the first value goes on with the last ones.
        found = pc.if_else(pc.greater(found, plain), first, found)
    else:
        at_beginning = pc.equal(pc.floor_temporal(plain, unit=unit), plain)
        found = pc.if_else(at_beginning, plain, pc.ceil_temporal(plain, unit=unit))
        leaves = pc.and_(pc.greater(found, end), pc.less_equal(plain, end))
        found = pc.if_else(leaves, end, pc.if_else(pc.less(found, plain), last, found))
    return found.view(pa.int64()).view(ends.type) if is_time else found.cast(ends.type)


def _find_limits(column: pa.DataType) -> tuple[pa.Scalar, ...]:
    """The first and the last value of a type of dates, or of timestamps without a zone, and the
    last one of the year 9999."""
    if pa.types.is_date32(column):
        width, most, end = pa.int32(), 2**31 - 1, LAST_DAY
    else:
        width, most = pa.int64(), 2**63 - 1
        end = min(END * PER_SECOND[column.unit] - 1, most)
    return tuple(pa.scalar(each, width).cast(column) for each in (-most, most, end))

"""Means of integers without overflow or rounding, for whole columns at once.

A value is split into limbs of 32 bits, least significant first; the last limb is signed. The sum of
a limb over fewer than 2**31 rows fits in 63 bits, so sums and division are plain int64 arithmetic.
"""

from datetime import date

import numpy as np
import pyarrow as pa

from anonlib.arrays import Floats, Ints
from anonlib.recode import Column
from anonlib.recode.grouped import read_numbers
from anonlib.table.schema import PER_SECOND

_BITS = 32
_MASK = 2**_BITS - 1
_EPOCH = date(1970, 1, 1).toordinal()


def total_exactly(values: Column, start: Ints) -> list[Ints]:
    """The sum of each cell, as limbs.

    Args:
        values: Integers, decimals (as their unscaled integers), dates or timestamps. At least one,
            none null.
        start: int64[g]. Where each cell begins in `values`.

    Returns:
        int64[g] for each limb.
    """
    return _carry([np.add.reduceat(limb, start) for limb in _limbs(values)])


def round_mean(total: list[Ints], count: Ints, column: pa.DataType) -> Column:
    """total / count, rounded half to even, as an array of type `column`."""
    remainder = np.zeros_like(count)
    quotient: list[Ints] = []
    for limb in reversed(total):  # long division: remainder < count, so it fits in 63 bits
        part = (remainder << _BITS) + limb
        quotient.insert(0, part // count)
        remainder = part % count
    odd = quotient[0] & 1
    quotient[0] = quotient[0] + (2 * remainder + odd > count)
    return _array(_carry(quotient), column)


def average_exactly(total: list[Ints], count: Ints, scale: int = 0) -> Floats:
    """total / count / 10**scale, correctly rounded."""
    # Division of Python's integers rounds once. It runs per cell, not per row.
    numerator = sum(limb.astype(object) << (_BITS * i) for i, limb in enumerate(total))
    divisor = count.astype(object) * 10 ** max(scale, 0)
    mean: Floats = (numerator * 10 ** max(-scale, 0) / divisor).astype(np.float64)
    return mean


def to_floats(total: list[Ints]) -> Floats:
    """The numbers that limbs stand for, with 52 exact bits."""
    result = np.zeros(len(total[0]))
    for i in reversed(range(len(total))):  # the largest first: each adds at most one rounding
        result += np.ldexp(total[i].astype(np.float64), _BITS * i)
    return result


def round_half_even(values: Floats, column: pa.DataType) -> Column:
    """Rounds finite values half to even, and clips them to the range of type `column`."""
    low, high = _range(column)
    whole = [min(max(round(value), low), high) for value in values.tolist()]
    last = 3 if pa.types.is_decimal128(column) else 1
    limbs = [np.array([n >> (_BITS * i) & _MASK for n in whole], np.int64) for i in range(last)]
    return _array([*limbs, np.array([n >> (_BITS * last) for n in whole], np.int64)], column)


def _range(column: pa.DataType) -> tuple[int, int]:
    """The least and greatest integer of a type. Dates and timestamps: of the years 1 to 9999."""
    if pa.types.is_decimal128(column):
        return 1 - 10**column.precision, 10**column.precision - 1
    low, high = -(2 ** (column.bit_width - 1)), 2 ** (column.bit_width - 1) - 1
    if pa.types.is_integer(column):
        return low, high
    days = [each.toordinal() - _EPOCH for each in (date.min, date.max)]
    per_day = 1 if pa.types.is_date32(column) else 86_400 * PER_SECOND[column.unit]
    return max(low, days[0] * per_day), min(high, (days[1] + 1) * per_day - 1)


def _limbs(values: Column) -> list[Ints]:
    n = len(values)
    if isinstance(values, pa.Decimal128Array):
        low_high: Column = values.buffers()[1]
        data = np.frombuffer(low_high, np.int64)[2 * values.offset :][: 2 * n]
    else:
        data = read_numbers(values).astype(np.int64)
    words = data.view(np.uint32).reshape(n, -1)
    lower = [words[:, i].astype(np.int64) for i in range(words.shape[1] - 1)]
    return [*lower, words.view(np.int32)[:, -1].astype(np.int64)]


def _carry(limbs: list[Ints]) -> list[Ints]:
    """The same number with all limbs but the last in 0..2**32-1."""
    result = []
    carry = np.zeros_like(limbs[0])
    for limb in limbs[:-1]:
        limb = limb + carry
        result.append(limb & _MASK)
        carry = limb >> _BITS
    return [*result, limbs[-1] + carry]


def _array(limbs: list[Ints], column: pa.DataType) -> Column:
    """Carried limbs as an array of type `column`. The type must be able to hold them."""
    # The shift drops bits beyond 64. In two's complement the sum is right nevertheless.
    words = [low + (high << _BITS) for low, high in zip(limbs[::2], limbs[1::2], strict=True)]
    if len(words) == 2:
        low_high = pa.py_buffer(np.stack(words, axis=1).tobytes())
        return pa.Array.from_buffers(column, len(words[0]), [None, low_high])
    return pa.array(words[0].astype(f"i{column.bit_width // 8}")).view(column)

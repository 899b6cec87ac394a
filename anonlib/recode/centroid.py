"""The mean of a cell."""

from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from anonlib.arrays import Floats
from anonlib.recode import Cells, Column, Domain, Recoder
from anonlib.recode._exact import (
    average_exactly,
    round_half_even,
    round_mean,
    to_floats,
    total_exactly,
)
from anonlib.recode._variance import rescale_means
from anonlib.recode.arrow import Kind, accept_type, find_type_kind
from anonlib.recode.grouped import GroupedValues, group, read_numbers
from anonlib.table.schema import Scale

_KINDS = (Kind.INTEGER, Kind.FLOAT, Kind.DECIMAL, Kind.DATE, Kind.TIMESTAMP)


class Centroid(Recoder):
    """The arithmetic mean of the present values; null where more than half are missing.

    Integers, decimals, dates and timestamps are averaged exactly and then rounded half to even:
    to an integer, the decimal's last digit, a day or the timestamp's unit (counted since 1970).
    Without `keep_type`, integers and decimals give the float64 nearest to the exact mean.

    A mean of floats never overflows and lies within the cell's range. For c values its error is at
    most c * 2**-53 times their mean magnitude. The mean is then rounded to 15 significant digits:
    77.46, not 77.46000000000001. float32 is averaged in float64, then rounded. An infinite value
    makes the mean infinite; both infinities in one cell make it null.

    With `restore_variance` the means are then rescaled about their own mean, block by block. The
    released values of a block get the variance of the present values that they replace. If every
    block keeps its mean and variance, so does the table. All cells of a block share one factor, so
    the rows of a cell stay equal. But values can leave the original range, and by far if a block
    has few cells with nearly the same mean. The rescaling is computed in float64, then rounded and
    clipped to the type's range. A block with an infinite value is not rescaled.

    Cost O(n). Reference: MDAV-generic, section III.C.1; there the whole table is one block.
    """

    type: ClassVar[str] = "centroid"
    scales: ClassVar[frozenset[Scale]] = frozenset({Scale.CONTINUOUS})
    blends: ClassVar[bool] = True
    public_parameters: ClassVar[frozenset[str]] = frozenset({"restore_variance"})
    keep_type: bool = Field(
        default=True,
        description="integers and decimals stay what they are, rounded; otherwise float64",
    )
    restore_variance: bool = Field(
        default=False,
        description="move the means of a block apart, until it has its variance again",
    )

    def explain(self) -> str:
        if not self.restore_variance:
            return ""
        return (
            "The arithmetic mean of the present values, moved away from the mean of many cells, so "
            "that the column has its variance again: it may be beyond all values of its cell. Null "
            "where more than half are missing."
        )

    def output(self, column: pa.DataType) -> pa.DataType:
        result = accept_type(self.type, column, _KINDS)
        if not self.keep_type and find_type_kind(result) in (Kind.INTEGER, Kind.DECIMAL):
            return pa.float64()
        return result

    def recode(self, values: Column, cells: Cells, domain: Domain) -> Column:
        output = self.output(values.type)
        groups = group(values, cells)
        present = groups.values
        if len(present) == 0:
            return pa.array([None] * cells.m, output)
        if find_type_kind(present.type) is Kind.FLOAT:
            return groups.spread(_of_floats(groups, self.restore_variance))
        total = total_exactly(present, groups.start)
        scale = present.type.scale if isinstance(present.type, pa.Decimal128Type) else 0
        moved = np.full(len(groups.count), np.nan)
        if self.restore_variance:
            each = to_floats(total_exactly(present, np.arange(len(present))))
            moved = rescale_means(groups, each, to_floats(total) / groups.count)
        stays = np.isnan(moved)
        if present.type != output:
            mean = average_exactly(total, groups.count, scale)
            return groups.spread(pa.array(np.where(stays, mean, moved / 10.0**scale)))
        means = round_mean(total, groups.count, output)
        if not stays.all():
            restored = round_half_even(np.where(stays, 0.0, moved), output)
            means = pc.if_else(pa.array(stays), means, restored)
        return groups.spread(means)


def _of_floats(groups: GroupedValues, restore_variance: bool) -> Column:
    values = read_numbers(groups.values)
    x: Floats = values.astype(np.float64, copy=False)
    mean = _float_means(groups, x)
    if restore_variance:
        moved = rescale_means(groups, x, mean)
        largest = float(np.finfo(values.dtype).max)
        mean = np.where(np.isnan(moved), mean, np.clip(moved, -largest, largest))
    mean = mean.astype(values.dtype) + values.dtype.type(0.0)  # no -0.0
    return pa.array(mean, mask=np.isnan(mean))


def _float_means(groups: GroupedValues, x: Floats) -> Floats:
    low = np.minimum.reduceat(x, groups.start)
    high = np.maximum.reduceat(x, groups.start)
    # Scaled by a power of two to at most 1, which is exact. So no sum overflows, and sums of values
    # near the smallest number lose no digits. The peak is finite even if a value is not.
    peak = np.minimum(np.maximum(-low, high), np.finfo(np.float64).max)
    exponent = np.frexp(peak)[1]
    with np.errstate(invalid="ignore"):  # inf - inf
        total = np.add.reduceat(np.ldexp(x, -exponent[groups.cell]), groups.start)
    # Rounding can move a mean out of its cell's range. Clipped, a constant cell keeps its value.
    mean = np.clip(total / groups.count, np.ldexp(low, -exponent), np.ldexp(high, -exponent))
    result: Floats = np.ldexp(mean, exponent)
    short = round_significant(result)
    return np.where((low <= short) & (short <= high), short, result)


def round_significant(values: Floats) -> Floats:
    """The numbers rounded to 15 significant digits: as many as a double always keeps. Numbers below
    1e-8, above 1e37 or infinite stay as they are."""
    usual = (np.abs(values) >= 1e-8) & (np.abs(values) < 1e37)
    x = np.where(usual, values, 1.0)
    digits = 14 - np.floor(np.log10(np.abs(x)))
    unit = 10.0 ** np.abs(digits)  # exact up to 10**22
    short = np.where(digits >= 0, np.rint(x * unit) / unit, np.rint(x / unit) * unit)
    return np.where(usual, short, values)

"""The mean of a cell."""

from typing import ClassVar

import numpy as np
import pyarrow as pa
from pydantic import Field

from anonlib.block import Floats
from anonlib.recode import Cells, Column, Recoder
from anonlib.recode._exact import float_mean, rounded_mean, totals
from anonlib.recode._grouped import Grouped, group, numbers
from anonlib.recode._types import Kind, accepted, kind
from anonlib.schema import Scale

_KINDS = (Kind.INTEGER, Kind.FLOAT, Kind.DECIMAL, Kind.DATE, Kind.TIMESTAMP)


class Centroid(Recoder):
    """The arithmetic mean of the present values; null where more than half are missing.

    Integers, decimals, dates and timestamps are averaged exactly and then rounded half to even:
    to an integer, the decimal's last digit, a day or the timestamp's unit (counted since 1970).
    Without `keep_type`, integers and decimals give the float64 nearest to the exact mean. A mean
    of floats never overflows, lies within the cell's range and is at most c * 2**-53 of the c
    values' mean magnitude off; float32 is averaged in float64, then rounded. An infinite value
    makes the mean infinite, and null where a cell has both infinities.

    Cost O(n). Reference: MDAV-generic, section III.C.1.
    """

    type: ClassVar[str] = "centroid"
    scales: ClassVar[frozenset[Scale]] = frozenset({Scale.CONTINUOUS})
    keep_type: bool = Field(
        default=True,
        description="integers and decimals stay what they are, rounded; otherwise float64",
    )

    def output(self, column: pa.DataType) -> pa.DataType:
        result = accepted(self.type, column, _KINDS)
        if not self.keep_type and kind(result) in (Kind.INTEGER, Kind.DECIMAL):
            return pa.float64()
        return result

    def recode(self, values: Column, cells: Cells, order: tuple[str, ...] | None) -> Column:
        output = self.output(values.type)
        grouped = group(values, cells)
        present = grouped.values
        if len(present) == 0:
            return pa.array([None] * cells.m, output)
        if kind(present.type) is Kind.FLOAT:
            return grouped.spread(_float_means(grouped))
        total = totals(present, grouped.start)
        if present.type == output:
            return grouped.spread(rounded_mean(total, grouped.count, output))
        scale = present.type.scale if isinstance(present.type, pa.Decimal128Type) else 0
        return grouped.spread(pa.array(float_mean(total, grouped.count, scale)))


def _float_means(grouped: Grouped) -> Column:
    values = numbers(grouped.values)
    x: Floats = values.astype(np.float64, copy=False)
    low = np.minimum.reduceat(x, grouped.start)
    high = np.maximum.reduceat(x, grouped.start)
    # Scaled by a power of two to at most 1, exactly, so that no sum overflows (and none of
    # values near the smallest number loses digits). An infinite peak must not stop that.
    peak = np.minimum(np.maximum(-low, high), np.finfo(np.float64).max)
    exponent = np.frexp(peak)[1]
    with np.errstate(invalid="ignore"):  # inf - inf
        total = np.add.reduceat(np.ldexp(x, -exponent[grouped.cell]), grouped.start)
    # Rounding may carry a mean out of its cell's range: a constant cell keeps its value
    mean = np.clip(total / grouped.count, np.ldexp(low, -exponent), np.ldexp(high, -exponent))
    mean = np.ldexp(mean, exponent).astype(values.dtype) + values.dtype.type(0.0)  # no -0.0
    return pa.array(mean, mask=np.isnan(mean))

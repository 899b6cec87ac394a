"""The median of a cell."""

from typing import ClassVar

import pyarrow as pa

from anonlib.recode import Cells, Column, Domain, Recoder
from anonlib.recode.arrow import accept_type
from anonlib.recode.grouped import group, order_ascending
from anonlib.table.schema import Scale


class Median(Recoder):
    """The lower median of the present values; null where more than half are missing.

    Of c values in ascending order it is number (c + 1) // 2. So it is a value that occurs, in the
    column's own type. False is below true. Text compares by the column's `order`, else by code
    point.

    Cost O(n log n). Reference: MDAV-generic, section III.C.2. The paper's other operator, the
    convex median, is not offered: it can give a value that no row has, and needs arithmetic on
    categories.
    """

    type: ClassVar[str] = "median"
    scales: ClassVar[frozenset[Scale]] = frozenset({Scale.CONTINUOUS, Scale.ORDINAL})

    def output(self, column: pa.DataType) -> pa.DataType:
        return accept_type(self.type, column)

    def recode(self, values: Column, cells: Cells, domain: Domain) -> Column:
        self.output(values.type)
        grouped = group(values, cells)
        middle = grouped.start + (grouped.count - 1) // 2
        positions = order_ascending(grouped, domain.order)[middle]
        return grouped.spread(grouped.values.take(pa.array(positions)))

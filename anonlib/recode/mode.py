"""The most frequent value of a cell."""

from typing import ClassVar

import numpy as np
import pyarrow as pa

from anonlib.recode import Cells, Column, Domain, Recoder
from anonlib.recode.arrow import accept_type
from anonlib.recode.grouped import find_runs, group
from anonlib.table.schema import Scale


class Mode(Recoder):
    """The most frequent value (plurality rule); of equally frequent ones the smallest; null where
    more rows are missing than have any one value.

    Missing is a category of its own: a cell is always null if more than half are missing, but
    [a, b, null, null] is null too. A present value wins a tie with missing. The released value is
    the one that the fewest rows of the cell differ from. The smallest value is the first in the
    column's `order`, else by value (text by code point).

    Cost O(n log n). Reference: MDAV-generic, section III.C.3.
    """

    type: ClassVar[str] = "mode"
    scales: ClassVar[frozenset[Scale]] = frozenset({Scale.NOMINAL, Scale.ORDINAL})

    def output(self, column: pa.DataType) -> pa.DataType:
        return accept_type(self.type, column)

    def recode(self, values: Column, cells: Cells, domain: Domain) -> Column:
        self.output(values.type)
        groups = group(values, cells)
        distinct = find_runs(groups, domain.order)
        highest = np.maximum.reduceat(distinct.length, distinct.start)
        frequent = np.flatnonzero(distinct.length == highest[distinct.cell])
        # The first of each cell is its smallest: cells and values are ascending.
        first = np.searchsorted(distinct.cell[frequent], np.arange(len(highest)))
        positions = distinct.position[frequent[first]]
        is_null = groups.missing > highest
        return groups.spread(groups.values.take(pa.array(positions, mask=is_null)))

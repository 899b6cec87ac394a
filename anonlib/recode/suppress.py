"""One value for all cells: nothing of the column is released."""

from typing import ClassVar

import pyarrow as pa

from anonlib.recode import Cells, Column, Domain, Form, Recoder
from anonlib.recode.arrow import accept_type
from anonlib.recode.value_leaves import ROOT
from anonlib.table.schema import Scale


class Suppress(Recoder):
    """The name of the root of the column's hierarchy, for all rows, also with missing values; `*`
    without a hierarchy.

    Cost O(m) for m cells.
    """

    type: ClassVar[str] = "suppress"
    scales: ClassVar[frozenset[Scale]] = frozenset(Scale)
    blends: ClassVar[bool] = True
    releases: ClassVar[Form] = "nothing"
    takes_weights: ClassVar[bool] = True

    def output(self, column: pa.DataType) -> pa.DataType:
        accept_type(self.type, column)
        return pa.string()

    def recode(self, values: Column, cells: Cells, domain: Domain) -> Column:
        output = self.output(values.type)
        root = ROOT if domain.hierarchy is None else domain.hierarchy.names[-1]
        return pa.repeat(pa.scalar(root, output), cells.m)

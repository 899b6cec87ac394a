"""A recoder that releases intervals of its own making, and a risk, as another package has them."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa
from pydantic import Field

from anonlib.measure import Figure, Findings, Measure
from anonlib.recode import Cells, Column, Domain, Form, Recoder
from anonlib.recode.grouped import group, order_ascending
from anonlib.table.schema import Scale

if TYPE_CHECKING:
    from anonlib.measure.case import Case


class Widened(Recoder):
    """The range of a cell, its ends moved outward to multiples of `step`.

    Cost O(n log n). Reference: an example.
    """

    type: ClassVar[str] = "widened"
    scales: ClassVar[frozenset[Scale]] = frozenset({Scale.CONTINUOUS})
    releases: ClassVar[Form] = "interval"
    step: float = Field(10.0, gt=0, description="what ends are multiples of")

    def output(self, column: pa.DataType) -> pa.DataType:
        return pa.struct([("lower", pa.float64()), ("upper", pa.float64())])

    def recode(self, values: Column, cells: Cells, domain: Domain) -> Column:
        grouped = group(values, cells)
        places = order_ascending(grouped, domain.order)
        ends = [places[grouped.start], places[grouped.start + grouped.count - 1]]
        low, high = (grouped.values.take(pa.array(each)).to_numpy() / self.step for each in ends)
        parts = [pa.array(np.floor(low) * self.step), pa.array(np.ceil(high) * self.step)]
        return grouped.spread(pa.StructArray.from_arrays(parts, ["lower", "upper"]))


class Smallest(Measure):
    """The persons of the smallest class.

    Cost: one aggregate of the release. Reference: an example.
    """

    type: ClassVar[str] = "smallest"
    is_risk: ClassVar[bool] = True
    names: ClassVar[Mapping[str, str]] = {
        "persons": "persons of the smallest class; 0 or more, more is safer"
    }

    def measure(self, case: "Case") -> Findings:
        return Findings((Figure("persons", float(case.sizes.smallest)),))

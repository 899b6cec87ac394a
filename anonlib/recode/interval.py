"""The range of a cell."""

from typing import ClassVar, Literal

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from anonlib.recode import Cells, Column, Domain, Form, Recoder
from anonlib.recode.arrow import Kind, accept_type, bracket, iso, json, kind
from anonlib.recode.grouped import ascending, group
from anonlib.table.schema import Scale


class Interval(Recoder):
    """The least and the greatest present value, both included; null where more than half are
    missing.

    It is a `struct<lower, upper>` of the column's own type, or text "[lower, upper]". In text,
    dates and timestamps are ISO 8601 (in UTC, with a `Z`, if the column has a time zone). Strings
    are JSON strings, so that commas in them are unambiguous. Strings compare by the column's
    `order`, else by code point.

    Cost O(n log n).
    """

    type: ClassVar[str] = "interval"
    scales: ClassVar[frozenset[Scale]] = frozenset({Scale.CONTINUOUS, Scale.ORDINAL})
    releases: ClassVar[Form] = "interval"
    form: Literal["struct", "text"] = Field(
        default="struct", description="struct<lower, upper>, or text [lower, upper]"
    )

    def output(self, column: pa.DataType) -> pa.DataType:
        bound = accept_type(self.type, column)
        if self.form == "text":
            return pa.string()
        return pa.struct([("lower", bound), ("upper", bound)])

    def recode(self, values: Column, cells: Cells, domain: Domain) -> Column:
        self.output(values.type)
        groups = group(values, cells)
        places = ascending(groups, domain.order)
        lower = groups.values.take(pa.array(places[groups.start]))
        upper = groups.values.take(pa.array(places[groups.start + groups.count - 1]))
        if self.form == "text":
            return groups.spread(_text(lower, upper))
        return groups.spread(pa.StructArray.from_arrays([lower, upper], ["lower", "upper"]))


def _text(lower: Column, upper: Column) -> Column:
    write = json if kind(lower.type) is Kind.TEXT else iso
    return bracket(pc.binary_join_element_wise(write(lower), write(upper), ", "))

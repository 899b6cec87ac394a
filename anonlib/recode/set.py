"""The set of a cell's values."""

from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from anonlib.recode import Cells, Column, Domain, Form, Recoder
from anonlib.recode.arrow import accept_type, add_brackets, dump_json
from anonlib.recode.grouped import find_runs, group
from anonlib.table.schema import Scale


class Set(Recoder):
    """The distinct values of a cell, ascending; the whole is null where more than half are missing.

    Missing is a category of its own: if some values are missing, but at most half, the last element
    is null. Values are sorted by the column's `order`, else by value (text by code point).

    The text form is a JSON array (RFC 8259), `["a, b", "c", null]`, so values may contain commas,
    quotes and brackets. Numbers and booleans are bare. Strings, dates and timestamps (ISO 8601; in
    UTC, with a `Z`, if the column has a time zone) and infinities are quoted.

    Cost O(n log n).
    """

    type: ClassVar[str] = "set"
    scales: ClassVar[frozenset[Scale]] = frozenset({Scale.NOMINAL, Scale.ORDINAL})
    releases: ClassVar[Form] = "set"
    form: Literal["array", "text"] = Field(
        default="array", description="an array of the column's type, or a JSON array as text"
    )

    def output(self, column: pa.DataType) -> pa.DataType:
        element = accept_type(self.type, column)
        return pa.string() if self.form == "text" else pa.list_(element)

    def recode(self, values: Column, cells: Cells, domain: Domain) -> Column:
        self.output(values.type)
        groups = group(values, cells)
        distinct = find_runs(groups, domain.order)
        with_null = groups.missing > 0
        ends = np.cumsum(distinct.count + with_null)
        is_null = np.zeros(int(ends[-1]) if len(ends) else 0, np.bool_)
        is_null[ends[with_null] - 1] = True
        positions = np.zeros(len(is_null), np.int64)
        positions[~is_null] = distinct.position
        elements = groups.values.take(pa.array(positions, mask=is_null))
        offsets: Column = pa.array(np.concatenate([[0], ends]).astype(np.int32))
        if self.form == "array":
            return groups.spread(pa.ListArray.from_arrays(offsets, elements))
        texts = pa.ListArray.from_arrays(offsets, pc.fill_null(dump_json(elements), "null"))
        return groups.spread(add_brackets(pc.binary_join(texts, ", ")))

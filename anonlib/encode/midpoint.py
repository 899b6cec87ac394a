"""The middle of an interval."""

from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonlib.arrays import Floats, Sparse
from anonlib.encode import Column, Encoder, EncoderDomain
from anonlib.encode.texts import text_ends
from anonlib.errors import InputError
from anonlib.table.encoding import to_float
from anonlib.table.schema import may_be_continuous


class Midpoint(Encoder):
    """The middle of each interval, as one feature with the name of the column.

    Intervals are struct<lower, upper>, or text "[lower, upper]". Numbers stay as they are. Dates
    are days since 1970, timestamps are microseconds since 1970. A missing value becomes 0. Since 0
    may be a value too, a column with missing values needs `missing: true`.

    Cost O(n), plus one parse per distinct text.
    """

    type: ClassVar[str] = "midpoint"

    def _names(self, column: str, domain: EncoderDomain) -> tuple[str, ...]:
        return (column,)

    def _matrix(self, values: Column, domain: EncoderDomain) -> Sparse:
        from scipy.sparse import csr_matrix

        middle = _middle(values)
        absent = np.isnan(middle)
        if absent.any() and not self.missing:
            raise InputError(
                f"has {int(absent.sum())} missing values; give encoding midpoint `missing: true`"
            )
        return csr_matrix(np.column_stack([np.where(absent, 0.0, middle), absent]))


def _middle(values: Column) -> Floats:
    """float64[n]. The middle of each value; NaN for a missing one."""
    if pa.types.is_string(values.type):
        encoded = values.dictionary_encode()
        lower, upper = text_ends(encoded.dictionary)
        middle = np.append(lower / 2 + upper / 2, np.nan)
        index = encoded.indices.fill_null(len(encoded.dictionary))
        result: Floats = middle[index.to_numpy(zero_copy_only=False)]
        return result
    if may_be_continuous(values.type):
        return to_float(values)
    type = values.type
    if not pa.types.is_struct(type) or {f.name for f in type} != {"lower", "upper"}:
        raise InputError(f"has the type {type}, neither intervals nor numbers")
    lower, upper = (pc.struct_field(values, name) for name in ("lower", "upper"))
    if not may_be_continuous(lower.type):
        raise InputError(f"has intervals of type {lower.type}, which have no middle")
    return to_float(lower) / 2 + to_float(upper) / 2

"""The ends of intervals of numbers that are released as text."""

import pyarrow as pa
import pyarrow.compute as pc

from anonlib.block import Floats
from anonlib.encode import Column
from anonlib.encoding import to_float
from anonlib.errors import InputError

_INTERVAL = r"^\[[^,]+, [^,]+\]$"
_READ_AS = (pa.float64(), pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC"))


def text_ends(distinct: Column) -> tuple[Floats, Floats]:
    """float64[n] each, the lower and the upper ends of texts "[lower, upper]", none of them null:
    numbers, dates in days, timestamps in microseconds since 1970."""
    if not pc.all(pc.match_substring_regex(distinct, _INTERVAL), min_count=0).as_py():
        raise InputError('has texts that are no intervals, "[lower, upper]"')
    ends = pc.split_pattern(pc.utf8_slice_codeunits(distinct, 1, -1), ", ")
    for type in _READ_AS:
        try:
            bounds = to_float(ends.flatten().cast(type))
        except pa.ArrowException:
            continue
        return bounds[::2], bounds[1::2]
    raise InputError("has intervals that are neither of numbers nor of dates")

"""Released values as texts: categories, sets of categories, and ends of intervals."""

import json
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonlib.arrays import Floats, Ints
from anonlib.encode import Column, EncoderDomain
from anonlib.errors import InputError
from anonlib.recode.arrow import find_type_kind, write_iso
from anonlib.table.encoding import clear_nan, one_zero, to_float

#: What a value outside the categories becomes: an error, or a row without features.
Unknown: TypeAlias = Literal["error", "none"]


def texts(values: Column) -> Column:
    """string[n]. The texts of released values; null for missing ones."""
    if find_type_kind(values.type) is None:
        raise InputError(f"has the type {values.type}, which is not of categories")
    return write_iso(one_zero(clear_nan(values))).cast(pa.string())


def require_categories(domain: EncoderDomain) -> tuple[str, ...]:
    """The categories of a domain. Raises InputError if it has none."""
    if domain.categories is None:
        raise InputError("needs the categories of the column")
    return domain.categories


def find_categories(values: Column, categories: tuple[str, ...], unknown: Unknown) -> Ints:
    """Finds the place of each text among c categories.

    Returns:
        int64[n]. The place, 0..c-1; c for null; -1 for a text that is not a category.

    Raises:
        InputError: A text is not a category, and `unknown` is "error".
    """
    at = pc.index_in(values, value_set=pa.array(categories, pa.string()), skip_nulls=True)
    if (n := at.null_count - values.null_count) and unknown == "error":
        raise InputError(f"{n} values are not among its {len(categories)} categories")
    at = pc.if_else(values.is_null(), len(categories), at.fill_null(-1))
    result: Ints = at.to_numpy(zero_copy_only=False).astype(np.int64)
    return result


def sets(values: Column) -> Column:
    """list<string>[n]. The sets of recoder `set` (arrays or JSON text) as lists of texts."""
    if pa.types.is_string(values.type):
        encoded = values.dictionary_encode()
        parsed = [_parse_texts(text) for text in encoded.dictionary.to_pylist()]
        return pa.array(parsed, pa.list_(pa.string())).take(encoded.indices)
    if not pa.types.is_list(values.type):
        raise InputError(f"has the type {values.type}, not sets: an array, or JSON text")
    elements = texts(values.flatten())
    sizes = values.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    offsets = pa.array(np.append(0, np.cumsum(sizes)).astype(np.int32))
    return pa.ListArray.from_arrays(offsets, elements, mask=values.is_null())


def _parse_texts(text: str) -> list[str | None]:
    """The elements of a JSON array, each as the text of its value."""
    try:
        found = json.loads(text, parse_int=str, parse_float=str)
    except ValueError:  # its text may hold the value
        found = None
    if not isinstance(found, list):
        raise InputError("has texts that are no JSON arrays, so no sets")
    return [_text(each) for each in found]


def _text(element: Any) -> str | None:
    if isinstance(element, bool):
        return str(element).lower()
    if element is None or isinstance(element, str):
        return element
    raise InputError("has sets of something else than values")


_INTERVAL = r"^\[[^,]+, [^,]+\]$"

_READ_AS = (pa.float64(), pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC"))


def text_ends(distinct: Column) -> tuple[Floats, Floats]:
    """The lower and the upper ends of texts "[lower, upper]", none null: float64[n] each.

    Ends are numbers, dates in days since 1970, or timestamps in microseconds since 1970.

    Raises:
        InputError: A text is not an interval of numbers, dates or timestamps.
    """
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

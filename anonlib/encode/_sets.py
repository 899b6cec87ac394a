"""Sets of categories by their texts."""

import json
from typing import Any

import numpy as np
import pyarrow as pa

from anonlib.encode import Column
from anonlib.encode._texts import texts
from anonlib.errors import InputError


def sets(values: Column) -> Column:
    """list<string>[n]: what recoder `set` releases, arrays or JSON text, as lists of texts."""
    if pa.types.is_string(values.type):
        encoded = values.dictionary_encode()
        parsed = [_parsed(text) for text in encoded.dictionary.to_pylist()]
        return pa.array(parsed, pa.list_(pa.string())).take(encoded.indices)
    if not pa.types.is_list(values.type):
        raise InputError(f"has the type {values.type}, not sets: an array, or JSON text")
    elements = texts(values.flatten())
    sizes = values.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    offsets = pa.array(np.append(0, np.cumsum(sizes)).astype(np.int32))
    return pa.ListArray.from_arrays(offsets, elements, mask=values.is_null())


def _parsed(text: str) -> list[str | None]:
    """The elements of a JSON array as the texts that they would be released as."""
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

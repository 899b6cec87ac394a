"""A feature for each category that a set can have."""

import json
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from pydantic import Field

from anonlib.encode import Column, Domain, Encoder, Sparse
from anonlib.encode._texts import Unknown, known, places, texts
from anonlib.errors import InputError


class MultiHot(Encoder):
    """Of a column recoded by `set`, as arrays or as JSON text: 1 for each category in the set, by
    its text. A null in the set, and a null for the set, is a missing value.

    Cost O(size of the sets), and a parse for each distinct text.
    """

    type: ClassVar[str] = "multi_hot"
    needs_categories: ClassVar[bool] = True
    unknown: Unknown = Field(
        default="error", description="a value that is none of the categories: an error, or all 0"
    )

    def found(self, values: Column) -> set[str]:
        return set(_sets(values).flatten().unique().drop_null().to_pylist())

    def _names(self, column: str, domain: Domain) -> tuple[str, ...]:
        return tuple(f"{column}={name}" for name in known(domain))

    def _matrix(self, values: Column, domain: Domain) -> Sparse:
        from scipy.sparse import csr_matrix

        sets = _sets(values)
        missing = np.flatnonzero(sets.is_null().to_numpy(zero_copy_only=False))
        sizes = sets.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
        rows = np.append(np.repeat(np.arange(len(sets)), sizes), missing)
        column = places(sets.flatten(), known(domain), self.unknown)
        column = np.append(column, np.full(len(missing), len(known(domain))))
        rows, column = rows[column >= 0], column[column >= 0]
        shape = (len(sets), len(known(domain)) + 1)
        return csr_matrix((np.ones(len(rows)), (rows, column)), shape)


def _sets(values: Column) -> Column:
    """Lists of texts."""
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

"""Categories by their texts."""

from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonlib.block import Ints
from anonlib.encode import Column, Domain
from anonlib.errors import InputError
from anonlib.recode._text import iso
from anonlib.recode._types import kind

#: What becomes of a value that is none of the categories: an error, or a row without features.
Unknown: TypeAlias = Literal["error", "none"]


def texts(values: Column) -> Column:
    """The texts of values of a type that recoders release; null where missing."""
    if kind(values.type) is None:
        raise InputError(f"has the type {values.type}, which is not of categories")
    if pa.types.is_floating(values.type):
        values = pc.if_else(pc.is_nan(values), None, pc.add(values, pa.scalar(0.0, values.type)))
    return iso(values).cast(pa.string())


def known(domain: Domain) -> tuple[str, ...]:
    """The categories of a domain, which encoders by category have."""
    if domain.categories is None:
        raise InputError("needs the categories of the column")
    return domain.categories


def places(found: Column, categories: tuple[str, ...], unknown: Unknown) -> Ints:
    """int64[n]: the place of every text among the categories, their number where it is null, -1
    where it is none of them, if that is no error."""
    at = pc.index_in(found, value_set=pa.array(categories, pa.string()), skip_nulls=True)
    if (n := at.null_count - found.null_count) and unknown == "error":
        raise InputError(f"{n} values are none of its {len(categories)} categories")
    at = pc.if_else(found.is_null(), len(categories), at.fill_null(-1))
    result: Ints = at.to_numpy(zero_copy_only=False).astype(np.int64)
    return result

"""Categories by their texts."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonlib.block import Ints
from anonlib.encode import Column, Domain
from anonlib.errors import InputError
from anonlib.recode._text import iso
from anonlib.recode._types import kind


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


def places(found: Column, categories: tuple[str, ...]) -> Ints:
    """int64[n]: the place of every text among the categories, their number where it is null."""
    at = pc.index_in(found, value_set=pa.array(categories, pa.string()), skip_nulls=True)
    if unknown := at.null_count - found.null_count:
        raise InputError(f"{unknown} values are none of its {len(categories)} categories")
    result: Ints = at.fill_null(len(categories)).to_numpy(zero_copy_only=False)
    return result.astype(np.int64)

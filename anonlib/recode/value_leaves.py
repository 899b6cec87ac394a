"""The values of a column as leaves of a tree."""

from typing import NamedTuple

import numpy as np
import pyarrow.compute as pc

from anonlib.arrays import Ints
from anonlib.errors import BlockError
from anonlib.hierarchy import Hierarchy
from anonlib.hierarchy.tree import Tree
from anonlib.recode import Column
from anonlib.recode.arrow import iso
from anonlib.recode.grouped import normal

#: The root of a column without a hierarchy, as ARX writes it.
ROOT = "*"


class ValueLeaves(NamedTuple):
    """leaf: int64[n], which leaf of the hierarchy each value is, -1 where it is missing."""

    leaf: Ints
    hierarchy: Hierarchy


def find_leaves(values: Column, hierarchy: Hierarchy | None) -> ValueLeaves:
    """The leaves that values are, by their text; without a hierarchy, in one whose root ROOT stands
    right over the values there are. Cost O(n), a text for each distinct value.

    Raises BlockError where values are no leaves.
    """
    values = normal(values)
    absent: Column = pc.is_null(values, nan_is_null=True)
    encoded = values.dictionary_encode()
    distinct = encoded.dictionary
    if hierarchy is None:
        places = np.arange(len(distinct))
        hierarchy = Hierarchy((*iso(distinct).to_pylist(), ROOT), Tree.flat(len(distinct)))
    else:
        places = hierarchy.places(distinct)
    index = encoded.indices.fill_null(0).to_numpy(zero_copy_only=False)
    is_absent = absent.to_numpy(zero_copy_only=False)
    leaf = np.full(len(values), -1, np.int64)
    leaf[~is_absent] = places[index[~is_absent]]
    if unknown := int((leaf < 0).sum() - is_absent.sum()):
        raise BlockError(f"{unknown} rows have a value that the column's hierarchy lacks")
    return ValueLeaves(leaf, hierarchy)

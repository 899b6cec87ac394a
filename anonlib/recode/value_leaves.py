"""The values of a column as leaves of a tree."""

from typing import NamedTuple

import numpy as np
import pyarrow.compute as pc

from anonlib.arrays import Ints
from anonlib.errors import BlockError
from anonlib.hierarchy import Hierarchy
from anonlib.hierarchy.tree import Tree
from anonlib.recode import Column
from anonlib.recode.arrow import write_iso
from anonlib.recode.grouped import drop_dictionary

#: The root of a column without a hierarchy, as ARX writes it.
ROOT = "*"


class ValueLeaves(NamedTuple):
    """The leaves of n values.

    Attributes:
        leaf: int64[n]. The leaf of each value in the hierarchy; -1 for a missing value.
        hierarchy: The hierarchy.
    """

    leaf: Ints
    hierarchy: Hierarchy


def find_leaves(values: Column, hierarchy: Hierarchy | None) -> ValueLeaves:
    """Finds the leaf of each value by its text. Cost O(n), plus a text per distinct value.

    Args:
        values: [n]. The values.
        hierarchy: The hierarchy. None makes one: the root ROOT, right above the distinct values.

    Raises:
        BlockError: A value is not a leaf of the hierarchy.
    """
    values = drop_dictionary(values)
    absent: Column = pc.is_null(values, nan_is_null=True)
    encoded = values.dictionary_encode()
    distinct = encoded.dictionary
    if hierarchy is None:
        places = np.arange(len(distinct))
        hierarchy = Hierarchy((*write_iso(distinct).to_pylist(), ROOT), Tree.flat(len(distinct)))
    else:
        places = hierarchy.places(distinct)
    index = encoded.indices.fill_null(0).to_numpy(zero_copy_only=False)
    is_absent = absent.to_numpy(zero_copy_only=False)
    leaf = np.full(len(values), -1, np.int64)
    leaf[~is_absent] = places[index[~is_absent]]
    if unknown := int((leaf < 0).sum() - is_absent.sum()):
        raise BlockError(f"{unknown} rows have a value that the column's hierarchy lacks")
    return ValueLeaves(leaf, hierarchy)

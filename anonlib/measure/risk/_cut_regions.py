"""Regions cut in two: one step of less generalization, as a kernel could have released it."""

from typing import NamedTuple

import numpy as np

from anonlib.encode.texts import texts
from anonlib.hierarchy import Hierarchy
from anonlib.measure.risk._regions import EVERYTHING, Members, Range, Region
from anonlib.table.encoding import Encoding
from anonlib.table.schema import Column


class CutRegion(NamedTuple):
    """A region cut in two.

    Attributes:
        own: The part with a person's value.
        rest: All else of the region.
    """

    own: Region
    rest: Region


def cut_region(column: Column, encoding: Encoding, region: Region, own: Region) -> CutRegion | None:
    """Cuts a region of a column around a value in it; None if it can't be cut.

    - An interval is cut in the middle.
    - Of a set, and of shares, the value is one part.
    - A node of a hierarchy is cut into the child with the value, and its siblings. A child below
      the `level` of the recoder is no part, since it is never released.
    - Without a hierarchy, the root is cut like a set of all categories.

    Args:
        column: The column.
        encoding: Its encoding.
        region: The region.
        own: The value, as a region.
    """
    if isinstance(own, Range):
        return _cut_range(region, own) if isinstance(region, Range) else None
    if isinstance(region, Range):
        return None
    if column.recoder.releases == "node":
        if column.hierarchy is not None:
            return _cut_node(column.hierarchy, column.recoder.least_level, region, own)
        if region == EVERYTHING and not column.recoder.least_level:
            region = frozenset([None, *texts(encoding.categories).to_pylist()])
    return CutRegion(own, region - own) if region - own and own <= region else None


def _cut_range(region: Range, own: Range) -> CutRegion | None:
    middle = (region.low + region.high) / 2
    if not np.isfinite(middle) or not region.low <= middle < region.high:
        return None
    above = float(np.nextafter(middle, np.inf))
    parts = Range(region.low, middle), Range(above, region.high)
    return CutRegion(*parts) if own.low <= middle else CutRegion(*parts[::-1])


def _cut_node(
    hierarchy: Hierarchy, least_level: int, region: Members, own: Members
) -> CutRegion | None:
    tree, (text,) = hierarchy.tree, own
    leaves = hierarchy.names[: int(tree.high[-1])]
    if region == EVERYTHING:
        region = frozenset([*leaves, None])  # missing is a child of the root
    if not own <= region or least_level >= tree.heights[-1]:
        return None
    if text is not None:
        size, node = len(region - {None}), leaves.index(text)
        while tree.high[above := int(tree.parent[node])] - tree.low[above] < size:
            node = above
        if tree.raised(np.array([node]), least_level)[0] != node:
            return None
        own = frozenset(leaves[int(tree.low[node]) : int(tree.high[node])])
    return CutRegion(own, region - own) if region - own else None

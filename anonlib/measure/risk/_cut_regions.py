"""Regions cut in two: one step of less generalization, as a kernel could have released it."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from anonlib.arrays import MISSING
from anonlib.encode.texts import texts
from anonlib.hierarchy import Hierarchy
from anonlib.measure.risk._regions import EVERYTHING, Members, Range, Region
from anonlib.table.encoding import Encoding
from anonlib.table.schema import Column

#: The most categories of a column without a hierarchy whose root is cut.
MOST_CATEGORIES = 1000


class CutRegion(NamedTuple):
    """A region cut in two.

    Attributes:
        own: The part with a person's value.
        rest: All else of the region.
    """

    own: Region
    rest: Region


@dataclass(frozen=True, eq=False)
class Cutter:
    """Cuts regions of a column around values in them.

    - An interval is cut in the middle.
    - Of a set, and of shares, the value is one part.
    - A node of a hierarchy is cut into the child with the value, and its siblings. A child below
      the `level` of the recoder is no part, since it is never released.
    - Without a hierarchy, the root is cut like a set of all categories; but not if these are more
      than MOST_CATEGORIES.

    Attributes:
        column: The column.
        encoding: Its encoding.
    """

    column: Column
    encoding: Encoding
    _of_nodes: dict[tuple[Region, int], CutRegion | None] = field(default_factory=dict)

    def cut(self, region: Region, own: Region) -> CutRegion | None:
        """Cuts a region around a value; None if it can't be cut. own: The value, as a region."""
        if isinstance(own, Range):
            return _cut_range(region, own) if isinstance(region, Range) else None
        if isinstance(region, Range):
            return None
        if self.column.recoder.releases == "node":
            if self.column.hierarchy is not None:
                return self._cut_node(self.column.hierarchy, region, own)
            if region == EVERYTHING and not self.column.recoder.least_level:
                region = self._categories
        return CutRegion(own, region - own) if region - own and own <= region else None

    @cached_property
    def _categories(self) -> Members:
        """All values that the root stands for; none if they are too many."""
        if self.encoding.n_categories > MOST_CATEGORIES:
            return EVERYTHING
        return frozenset([None, *texts(self.encoding.categories).to_pylist()])

    @cached_property
    def _leaf(self) -> dict[str | None, int]:
        """The leaves by name; a missing value is none of them."""
        names = self.column.hierarchy.names if self.column.hierarchy else ()
        return {name: i for i, name in enumerate(names)} | {None: MISSING}

    def _cut_node(self, hierarchy: Hierarchy, region: Members, own: Members) -> CutRegion | None:
        tree, (text,), n_leaves = hierarchy.tree, own, int(hierarchy.tree.high[-1])
        root, level = region == EVERYTHING, self.column.recoder.least_level
        if not (root or own <= region) or level >= tree.heights[-1]:
            return None
        node, size = self._leaf[text], n_leaves if root else len(region)
        if node != MISSING:
            while tree.high[above := int(tree.parent[node])] - tree.low[above] < size:
                node = above
            if tree.raised(np.array([node]), level)[0] != node:
                return None
        if (region, node) not in self._of_nodes:  # many values have the same child
            leaves = hierarchy.names[:n_leaves]
            whole = frozenset([*leaves, None]) if root else region  # missing is a child of the root
            if node != MISSING:
                own = frozenset(leaves[int(tree.low[node]) : int(tree.high[node])])
            parts = CutRegion(own, whole - own) if whole - own else None
            self._of_nodes[region, node] = parts
        return self._of_nodes[region, node]


def _cut_range(region: Range, own: Range) -> CutRegion | None:
    middle = (region.low + region.high) / 2
    if not np.isfinite(middle) or not region.low <= middle < region.high:
        return None
    above = float(np.nextafter(middle, np.inf))
    parts = Range(region.low, middle), Range(above, region.high)
    return CutRegion(*parts) if own.low <= middle else CutRegion(*parts[::-1])

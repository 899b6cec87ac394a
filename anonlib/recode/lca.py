"""The lowest common ancestor of a cell."""

from typing import ClassVar

import numpy as np
import pyarrow as pa
from pydantic import Field

from anonlib.recode import Cells, Column, Domain, Form, Recoder
from anonlib.recode.arrow import accept_type
from anonlib.recode.value_leaves import find_leaves
from anonlib.table.schema import Scale


class Lca(Recoder):
    """The name of the lowest node of the column's hierarchy that is above all values of the cell.
    Without a hierarchy: the text of the value if all rows have the same, else `*`.

    Missing counts as a value right under the root: a cell with only missing values is null, a cell
    with some is the root. With `level`, values are first generalized to nodes of that height
    (`Hierarchy.levels`). A released node is lower only if no node above it has that height. From
    the height of the root on, everything is the root, missing values too.

    Cost O(n + m h) for m cells and a tree of height h, plus a text per distinct value. Reference:
    proportional representation, section II.A.
    """

    type: ClassVar[str] = "lca"
    scales: ClassVar[frozenset[Scale]] = frozenset({Scale.NOMINAL})
    blends: ClassVar[bool] = True
    releases: ClassVar[Form] = "node"
    takes_weights: ClassVar[bool] = True
    public_parameters: ClassVar[frozenset[str]] = frozenset({"level"})
    level: int = Field(
        default=0, ge=0, description="the height that values are generalized to at least; 0: none"
    )

    @property
    def least_level(self) -> int:
        return self.level

    def explain(self) -> str:
        if not self.level:
            return ""
        return (
            "The name of the lowest node of the column's hierarchy that is above all values of the "
            f"cell and has height {self.level} or more (values have height 0), also where all rows "
            "have the same value; a lower node only if none above it has that height. Missing "
            "counts as a value right under the root."
        )

    def output(self, column: pa.DataType) -> pa.DataType:
        accept_type(self.type, column)
        return pa.string()

    def recode(self, values: Column, cells: Cells, domain: Domain) -> Column:
        output = self.output(values.type)
        if cells.m == 0:
            return pa.array([], output)
        found, hierarchy = find_leaves(values, domain.hierarchy)
        tree, root = hierarchy.tree, len(hierarchy.names) - 1
        leaf = found[cells.order]
        last = np.maximum.reduceat(leaf, cells.start)
        first = np.minimum.reduceat(np.where(leaf < 0, root, leaf), cells.start)
        complete = ~np.logical_or.reduceat(leaf < 0, cells.start)
        is_null = last < 0
        node = np.full(cells.m, root)
        node[complete] = tree.common(first[complete], last[complete])
        if self.level:
            node = tree.raised(node, self.level)
            is_null &= self.level < tree.heights[root]
        return pa.array(hierarchy.names, output).take(pa.array(node, mask=is_null))

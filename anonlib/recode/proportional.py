"""The shares of the values of a cell."""

from typing import ClassVar

import numpy as np
import pyarrow as pa
from pydantic import Field

from anonlib.arrays import Ints
from anonlib.errors import InputError
from anonlib.recode import Cells, Column, Domain, Form, Recoder
from anonlib.recode.arrow import accept_type
from anonlib.recode.value_leaves import find_leaves
from anonlib.table.schema import Scale

#: The released type: the leaves of a cell, ascending, with their positive shares.
SHARES: pa.DataType = pa.list_(pa.struct([("node", pa.int32()), ("share", pa.float64())]))


class Proportional(Recoder):
    """The share of the cell's rows in each leaf of the column's hierarchy, as an array of
    (node, share), ascending by node. Shares of 0 are left out, and the shares add up to 1.

    Nodes have the numbers of the hierarchy (`Hierarchy.names`), which say nothing about the data.
    Missing has the number after the last node. The share of an inner node is the sum of its leaves:
    the encoding `proportional` computes it. A share is the quotient of two counts, so equal cells
    have equal bits.

    With `steps`, shares are multiples of 1 / steps. They are rounded down, and the rest goes to the
    largest remainders (of equal remainders to the lower node), so they still add up to 1.

    All rows of a cell get the same shares, so the release is as anonymous as without them. But
    somebody who counts the rows of a cell can see that a value occurs in it just once. The audit
    counts such rows.

    Cost O(n log n). Reference: proportional representation, section III.A, formula (1), where all
    nodes are written out.
    """

    type: ClassVar[str] = "proportional"
    scales: ClassVar[frozenset[Scale]] = frozenset({Scale.NOMINAL})
    releases: ClassVar[Form] = "shares"
    needs_hierarchy: ClassVar[bool] = True
    takes_weights: ClassVar[bool] = True
    public_parameters: ClassVar[frozenset[str]] = frozenset({"steps"})
    steps: int | None = Field(
        default=None,
        ge=1,
        le=1_000_000,
        description="shares are rounded to multiples of 1/steps; null: exact",
    )

    def explain(self) -> str:
        if self.steps is None:
            return ""
        return (
            "The share of the cell's rows in each leaf of the column's hierarchy, as an array of "
            f"(node, share), ascending by node. Shares are rounded to multiples of 1/{self.steps}, "
            "and add up to 1; those of 0 are left out."
        )

    def output(self, column: pa.DataType) -> pa.DataType:
        accept_type(self.type, column)
        return SHARES

    def recode(self, values: Column, cells: Cells, domain: Domain) -> Column:
        self.output(values.type)
        if domain.hierarchy is None:
            raise InputError(f"recoder {self.type} needs a hierarchy of the column")
        leaf, hierarchy = find_leaves(values, domain.hierarchy)
        n_nodes = len(hierarchy.names) + 1
        node = np.where(leaf < 0, n_nodes - 1, leaf)
        pair, place = np.unique(cells.id * n_nodes + node, return_inverse=True)
        count = cells.rows(place, len(pair))
        cell, node = np.divmod(pair, n_nodes)
        share = count / cells.count[cell]
        if self.steps is not None:
            count = _apportion(cell, node, count, cells.count[cell], self.steps)
            cell, node, share = cell[count > 0], node[count > 0], count[count > 0] / self.steps
        offsets = np.searchsorted(cell, np.arange(cells.m + 1)).astype(np.int32)
        fields = [pa.array(node.astype(np.int32)), pa.array(share)]
        elements = pa.StructArray.from_arrays(fields, ["node", "share"])
        return pa.ListArray.from_arrays(pa.array(offsets), elements)


def _apportion(cell: Ints, node: Ints, count: Ints, size: Ints, steps: int) -> Ints:
    """Rounds count / size to multiples of 1 / steps, by largest remainders within each cell.

    Args:
        cell: int64[e], ascending. The cell of each entry.
        node: int64[e]. Its node.
        count: int64[e]. Its rows.
        size: int64[e]. The rows of its cell.
        steps: The denominator.

    Returns:
        int64[e]. The numerators. In each cell they add up to `steps`.
    """
    whole, rest = np.divmod(count * steps, size)
    given = np.zeros(int(cell[-1]) + 1 if len(cell) else 0, np.int64)
    np.add.at(given, cell, whole)
    order = np.lexsort((node, -rest, cell))
    place = np.arange(len(cell)) - np.searchsorted(cell, cell)
    whole[order] += place < (steps - given)[cell]
    return whole

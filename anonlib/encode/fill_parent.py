"""A node with all nodes above it."""

from typing import ClassVar

from anonlib.arrays import Sparse
from anonlib.encode._nodes import NodeEncoder


class FillParent(NodeEncoder):
    """A released node has its own feature and those of all nodes above it. For raw values, this
    equals `proportional` with cells of one row.

    Cost O(n h) for a tree of height h. Reference: proportional representation, section II.C and
    Table IIb.
    """

    type: ClassVar[str] = "fill_parent"

    def _exhibit(self, lineage: Sparse) -> Sparse:
        return lineage

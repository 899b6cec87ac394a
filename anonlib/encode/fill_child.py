"""A node with all nodes below it."""

from typing import ClassVar

from anonlib.arrays import Sparse
from anonlib.encode._nodes import NodeEncoder


class FillChild(NodeEncoder):
    """A released node has its own feature and those of all nodes below it. Missing is a node below
    the root.

    Cost O(n), plus the nodes below the released ones. Reference: proportional representation,
    section II.C and Table IIc.
    """

    type: ClassVar[str] = "fill_child"

    def _exhibit(self, lineage: Sparse) -> Sparse:
        return lineage.T.tocsr()

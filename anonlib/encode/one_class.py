"""A node by itself."""

from typing import ClassVar

from anonlib.arrays import Sparse
from anonlib.encode._nodes import NodeEncoder


class OneClass(NodeEncoder):
    """A released node has its own feature: generalizations are independent categories.

    Cost O(n). Reference: proportional representation, section II.C and Table IIa.
    """

    type: ClassVar[str] = "one_class"

    def _exhibit(self, lineage: Sparse) -> Sparse:
        from scipy.sparse import identity

        return identity(lineage.shape[0], format="csr")

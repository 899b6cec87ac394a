"""Features of a hierarchy: one per node, and one for missing, which is the node after the last."""

from abc import abstractmethod
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonlib.arrays import Ints, Sparse
from anonlib.encode import Column, Encoder, EncoderDomain
from anonlib.errors import InputError
from anonlib.hierarchy import Hierarchy


class NodeEncoder(Encoder):
    """Features `column=node`, in the order of `Hierarchy.names`.

    The values are texts of nodes: a column recoded by `lca` or `suppress`, or original values.
    Missing is a node under the root.
    """

    needs_hierarchy: ClassVar[bool] = True

    def _names(self, column: str, domain: EncoderDomain) -> tuple[str, ...]:
        return tuple(f"{column}={name}" for name in build_node_tree(domain).names)

    def _matrix(self, values: Column, domain: EncoderDomain) -> Sparse:
        hierarchy = build_node_tree(domain)
        return self._exhibit(list_lineage(hierarchy))[_nodes(values, hierarchy)]

    @abstractmethod
    def _exhibit(self, lineage: Sparse) -> Sparse:
        """csr_matrix[nodes, nodes]. The features of every node, given `lineage`."""


def build_node_tree(domain: EncoderDomain) -> Hierarchy:
    """The hierarchy of a domain. Raises InputError if it has none."""
    if domain.hierarchy is None:
        raise InputError("needs a hierarchy")
    return domain.hierarchy


def list_lineage(hierarchy: Hierarchy) -> Sparse:
    """csr_matrix[nodes, nodes]. 1 if node j is node i or above it. Missing is the last node."""
    from scipy.sparse import csr_matrix

    parent = np.append(hierarchy.tree.parent, len(hierarchy.names) - 1)
    n = len(parent)
    below = above = np.arange(n)
    pairs = [(below, above)]
    while len(below := below[parent[above] != above]):
        above = parent[above[parent[above] != above]]
        pairs.append((below, above))
    rows, columns = (np.concatenate(each) for each in zip(*pairs, strict=True))
    return csr_matrix((np.ones(len(rows)), (rows, columns)), (n, n))


def _nodes(values: Column, hierarchy: Hierarchy) -> Ints:
    """int64[n]. The node of each value; missing is the node after the last."""
    if pa.types.is_nested(values.type):
        raise InputError(
            f"has the type {values.type}, not the nodes of a hierarchy by name; encoding "
            "proportional takes columns recoded by proportional, multi_hot sets"
        )
    encoded = values.dictionary_encode()
    names = pa.array(hierarchy.names, pa.string())
    places = pc.index_in(encoded.dictionary.cast(pa.string()), value_set=names)
    nodes = places.take(encoded.indices).fill_null(-1).to_numpy(zero_copy_only=False)
    absent = values.is_null(nan_is_null=True).to_numpy(zero_copy_only=False)
    if unknown := int(((nodes < 0) & ~absent).sum()):
        raise InputError(f"{unknown} rows have a value that is no node of the hierarchy")
    return np.where(absent, len(hierarchy.names), nodes).astype(np.int64)

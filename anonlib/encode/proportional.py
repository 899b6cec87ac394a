"""The share of a cell's rows at or under each node."""

from typing import ClassVar

import numpy as np
import pyarrow as pa

from anonlib.arrays import Sparse
from anonlib.encode import Column, Encoder, EncoderDomain
from anonlib.encode._nodes import build_node_tree, list_lineage
from anonlib.errors import InputError


class ProportionalEncoder(Encoder):
    """The share of the cell's rows at or under each node, in the order of `Hierarchy.names`.

    For columns recoded by `proportional`. Null counts as a cell of missing values. Shares are added
    up in the order of the leaves. The only error is rounding.

    Cost O(c h) for c shares and a tree of height h. Reference: proportional representation,
    section III.A, formula (1), and Table III.
    """

    type: ClassVar[str] = "proportional"
    needs_hierarchy: ClassVar[bool] = True

    def _names(self, column: str, domain: EncoderDomain) -> tuple[str, ...]:
        return tuple(f"{column}={name}" for name in build_node_tree(domain).names)

    def _matrix(self, values: Column, domain: EncoderDomain) -> Sparse:
        from scipy.sparse import csr_matrix

        hierarchy = build_node_tree(domain)
        missing, n_leaves = len(hierarchy.names), hierarchy.tree.high[-1]
        _require_shares(values.type)
        is_null = values.is_null().to_numpy(zero_copy_only=False)
        n_shares = values.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
        elements = values.flatten()
        node = elements.field("node").to_numpy(zero_copy_only=False).astype(np.int64)
        share = elements.field("share").to_numpy(zero_copy_only=False).astype(np.float64)
        if ((node < 0) | ((node >= n_leaves) & (node != missing))).any():
            raise InputError("has shares of nodes that are not leaves of the hierarchy")
        rows = np.append(np.repeat(np.arange(len(values)), n_shares), np.flatnonzero(is_null))
        node = np.append(node, np.full(is_null.sum(), missing))
        share = np.append(share, np.ones(is_null.sum()))
        leaves = csr_matrix((share, (rows, node)), (len(values), missing + 1))
        return leaves @ list_lineage(hierarchy)


def _require_shares(type: pa.DataType) -> None:
    element = type.value_type if pa.types.is_list(type) else None
    fields = {f.name for f in element} if element and pa.types.is_struct(element) else set()
    if fields != {"node", "share"}:
        raise InputError(
            f"has the type {type}, not the shares of recoder proportional, array<struct<node, "
            "share>>; nodes by name take one of: one_class, fill_parent, fill_child"
        )

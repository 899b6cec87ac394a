"""Precision: how low in their hierarchies values are released."""

from typing import ClassVar

import numpy as np

from anonlib.arrays import Floats
from anonlib.loss import Metric, ReleasedBlock


class Precision(Metric):
    """Prec: 1 minus the mean over rows and nominal columns of the released node's height over the
    height of its hierarchy; 1 is the original table, 0 all roots.

    Reference: L. Sweeney, Achieving k-anonymity privacy protection using generalization and
    suppression, IJUFKS 10(5), 2002. Heights are those of `Tree.heights`: branches may have
    different ones. Nodes and columns are those of `nllm`. State: rows times columns, the sum of
    heights.
    """

    type: ClassVar[str] = "precision"
    undefined: ClassVar[str] = "no nominal quasi-identifier varies"

    def update(self, released: ReleasedBlock) -> Floats:
        height, total = 0.0, 0
        sizes = released.block.n_categories
        for tree, node, size in zip(released.trees, released.nodes, sizes, strict=True):
            if size > 1:
                share = tree.heights[node] / tree.heights[-1]
                height += float(share @ released.rows) + released.n_suppressed
                total += released.n
        return np.array([total, height], np.float64)

    def value(self, state: Floats) -> float | None:
        return float(1 - state[1] / state[0]) if state[0] else None

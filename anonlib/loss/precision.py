"""Precision: how low in their hierarchies values are released."""

from typing import ClassVar

import numpy as np

from anonlib.arrays import Floats
from anonlib.loss import Metric, ReleasedBlock, Subject


class Precision(Metric):
    """Prec: 1 minus the height of the released node / the height of its hierarchy, averaged over
    rows and nominal columns; 1 is the original table, 0 all roots.

    Heights are those of `Tree.heights`; branches may have different heights. Released nodes,
    columns and suppressed rows are those of `nllm`.

    Reference: L. Sweeney, Achieving k-anonymity privacy protection using generalization and
    suppression, IJUFKS 10(5), 2002.

    State: n, n times the columns that vary, the sum of relative heights.
    """

    type: ClassVar[str] = "precision"
    subject: ClassVar[Subject] = "categories"
    meaning: ClassVar[str] = (
        "how near released categories are to the bottom of their hierarchies; 0 to 1, less is worse"
    )
    undefined: ClassVar[str] = "no nominal quasi-identifier varies"

    def update(self, released: ReleasedBlock) -> Floats:
        height, total = 0.0, 0
        sizes = released.block.n_categories
        for tree, node, size in zip(released.trees, released.nodes, sizes, strict=True):
            if size > 1:
                share = tree.heights[node] / tree.heights[-1]
                height += float(share @ released.rows) + released.n_suppressed
                total += released.n
        return np.array([released.n, total, height], np.float64)

    def add_lost(self, state: Floats, n_rows: int) -> Floats:
        n, total, height = state
        more = total / n * n_rows
        return np.array([n + n_rows, total + more, height + more], np.float64)

    def value(self, state: Floats) -> float | None:
        return float(1 - state[2] / state[1]) if state[1] else None

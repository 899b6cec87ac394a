"""Normalized Lost Leaves Metric."""

from typing import ClassVar

import numpy as np

from anonlib.arrays import Floats
from anonlib.loss import Metric, ReleasedBlock


class Nllm(Metric):
    """Mean over rows and nominal columns of the leaves lost: those under the released node minus 1,
    over all leaves minus 1 (`Tree.loss`).

    The node is the lowest one over the cell's values, or that of the release's level. A column
    without a hierarchy has a flat one: all is lost where two values meet. So it differs from `ncp`,
    which counts the values of such a column. Columns of one category in the whole table don't
    count; suppressed rows have lost all. State: rows times columns, the sum of losses.
    """

    type: ClassVar[str] = "nllm"
    undefined: ClassVar[str] = "no nominal quasi-identifier varies"

    def update(self, released: ReleasedBlock) -> Floats:
        lost, total = 0.0, 0
        sizes = released.block.n_categories
        for tree, node, size in zip(released.trees, released.nodes, sizes, strict=True):
            if size > 1:
                lost += float(tree.loss[node] @ released.rows) + released.n_suppressed
                total += released.n
        return np.array([total, lost], np.float64)

    def value(self, state: Floats) -> float | None:
        return float(state[1] / state[0]) if state[0] else None

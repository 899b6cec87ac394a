"""Normalized Lost Leaves Metric."""

from typing import ClassVar

import numpy as np

from anonlib.arrays import Floats
from anonlib.loss import Metric, ReleasedBlock, Subject


class Nllm(Metric):
    """(Leaves under the released node - 1) / (all leaves - 1), averaged over rows and nominal
    columns (`Tree.loss`).

    The released node is the lowest common ancestor of the cell's values, or the node above it at
    the release's level. A column without a hierarchy gets a flat one, so a cell with two values
    has lost all. `ncp` differs in this: it counts the values of such a column. Missing is no leaf:
    a cell with some missing values has lost all. Columns with one category in the whole table don't
    count. Suppressed rows have lost all.

    State: n, n times the columns that vary, the sum of losses.
    """

    type: ClassVar[str] = "nllm"
    subject: ClassVar[Subject] = "categories"
    meaning: ClassVar[str] = (
        "share of a hierarchy's leaves that a released node covers, less its own; without a "
        "hierarchy 1 wherever a cell has two categories; 0 to 1, more is worse"
    )
    undefined: ClassVar[str] = "no nominal quasi-identifier varies"

    def update(self, released: ReleasedBlock) -> Floats:
        lost, total = 0.0, 0
        sizes = released.block.n_categories
        for tree, node, size in zip(released.trees, released.nodes, sizes, strict=True):
            if size > 1:
                lost += float(tree.loss[node] @ released.rows) + released.n_suppressed
                total += released.n
        return np.array([released.n, total, lost], np.float64)

    def add_lost(self, state: Floats, n_rows: int) -> Floats:
        n, total, lost = state
        more = total / n * n_rows
        return np.array([n + n_rows, total + more, lost + more], np.float64)

    def value(self, state: Floats) -> float | None:
        return float(state[2] / state[1]) if state[1] else None

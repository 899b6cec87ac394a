"""Within-cell sum of squares over total sum of squares."""

from typing import ClassVar

import numpy as np

from anonlib.block import Block, Floats, Ints
from anonlib.utility import Metric


class Sse(Metric):
    """SSE / SST over the standardized continuous and ordinal columns (0 nothing lost, 1 all).

    The usual measure of microaggregation: Domingo-Ferrer and Mateo-Sanz, IEEE TKDE 14(1), 2002.
    State: n, SSE, then the sums and the sums of squares of each numeric column.
    Cost O(n p).
    """

    type: ClassVar[str] = "sse"
    undefined: ClassVar[str] = "no continuous or ordinal column varies"

    def update(self, block: Block, cell_id: Ints, n_cells: int) -> Floats:
        x = block.numeric
        count = np.bincount(cell_id, minlength=n_cells)
        squares = np.zeros(x.shape[1])
        within = 0.0
        for j in range(x.shape[1]):
            column = x[:, j]
            mean = np.bincount(cell_id, column, minlength=n_cells) / count
            within += float(np.sum((column - mean[cell_id]) ** 2))
            squares[j] = np.sum(column**2)
        return np.concatenate([[len(x), within], x.sum(axis=0), squares])

    def value(self, state: Floats) -> float | None:
        n, within = state[:2]
        sums, squares = np.split(state[2:], 2)
        total = float(np.sum(squares - sums**2 / n)) if n else 0.0
        return float(within) / total if total > 0 else None

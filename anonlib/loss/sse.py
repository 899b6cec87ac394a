"""Within-cell sum of squares over total sum of squares."""

from typing import ClassVar

import numpy as np

from anonlib.arrays import Floats
from anonlib.loss import Metric, ReleasedBlock, Subject
from anonlib.loss.mse import squares_within


class Sse(Metric):
    """SSE / SST over the standardized continuous and ordinal columns: 0 nothing lost, 1 all.

    This is the usual measure of microaggregation: Domingo-Ferrer and Mateo-Sanz, IEEE TKDE 14(1),
    2002. It is of cells, however they are released: also of columns that are not (see `ncp`).
    Suppressed rows don't count. Cost O(n p).

    State: n without suppressed rows, SSE, the sum of each numeric column, then the sum of squares
    of each.
    """

    type: ClassVar[str] = "sse"
    subject: ClassVar[Subject] = "numbers"
    meaning: ClassVar[str] = (
        "share of the spread of numbers and ranks that lies within cells; 0 to 1, more is worse"
    )
    undefined: ClassVar[str] = "no continuous or ordinal column varies"

    def update(self, released: ReleasedBlock) -> Floats:
        kept = np.flatnonzero(released.id >= 0)
        x, weight = released.block.numeric[kept], released.weight[kept]
        squares, sums = np.zeros(x.shape[1]), np.zeros(x.shape[1])
        for j in range(x.shape[1]):
            sums[j], squares[j] = np.sum(x[:, j] * weight), np.sum(x[:, j] ** 2 * weight)
        within = squares_within(released).sum()
        return np.concatenate([[released.rows.sum(), within], sums, squares])

    def value(self, state: Floats) -> float | None:
        n, within = state[:2]
        sums, squares = np.split(state[2:], 2)
        total = float(np.sum(squares - sums**2 / n)) if n else 0.0
        return float(within) / total if total > 0 else None

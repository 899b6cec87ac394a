"""Within-cell sum of squares over total sum of squares."""

from typing import ClassVar

import numpy as np

from anonlib.arrays import Floats
from anonlib.loss import Metric, ReleasedBlock, Subject


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
        weight, p = released.weight_of(kept), len(released.columns)
        squares, sums = np.zeros(p), np.zeros(p)
        for j, values in enumerate(released.columns):
            column = values[kept]
            sums[j], squares[j] = np.sum(column * weight), np.sum(column**2 * weight)
        within = released.squares_within.sum()
        return np.concatenate([[released.rows.sum(), within], sums, squares])

    def value(self, state: Floats) -> float | None:
        n, within = state[:2]
        sums, squares = np.split(state[2:], 2)
        total = float(np.sum(squares - sums**2 / n)) if n else 0.0
        return float(within) / total if total > 0 else None

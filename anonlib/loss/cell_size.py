"""Average number of rows of a cell."""

from typing import ClassVar

import numpy as np

from anonlib.arrays import Floats
from anonlib.loss import Metric, ReleasedBlock, Subject


class CellSize(Metric):
    """Mean number of rows per cell; suppressed rows are in no cell.

    State: rows, cells.
    """

    type: ClassVar[str] = "cell_size"
    subject: ClassVar[Subject] = "classes"
    meaning: ClassVar[str] = "rows of a cell, on average; a number, more is worse"
    undefined: ClassVar[str] = "there is no cell"

    def update(self, released: ReleasedBlock) -> Floats:
        return np.array([released.rows.sum(), released.m], np.float64)

    def value(self, state: Floats) -> float | None:
        return float(state[0] / state[1]) if state[1] else None

"""Average number of rows of a cell."""

from typing import ClassVar

import numpy as np

from anonlib.block import Block, Floats, Ints
from anonlib.utility import Metric


class CellSize(Metric):
    """Rows per cell, on average. State: rows, cells."""

    type: ClassVar[str] = "cell_size"
    undefined: ClassVar[str] = "there is no row"

    def update(self, block: Block, cell_id: Ints, n_cells: int) -> Floats:
        return np.array([block.n, n_cells], np.float64)

    def value(self, state: Floats) -> float | None:
        return float(state[0] / state[1]) if state[1] else None

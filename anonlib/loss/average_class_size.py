"""Average size of a cell, in units of the smallest size that the models allow."""

from typing import ClassVar

import numpy as np

from anonlib.arrays import Floats
from anonlib.loss import Metric, ReleasedBlock


class AverageClassSize(Metric):
    """C_AVG: rows per cell over k, the persons that the models ask of a cell; 1 is the best.

    Reference: K. LeFevre, D. DeWitt, R. Ramakrishnan, Mondrian multidimensional k-anonymity, ICDE
    2006. Suppressed rows are in no cell. If k differs by controller, C_AVG is rows over the sum of
    the cells' k. State: rows, the sum of k over the cells.
    """

    type: ClassVar[str] = "average_class_size"
    undefined: ClassVar[str] = "there is no cell"

    def update(self, released: ReleasedBlock) -> Floats:
        k = max((model.min_persons for model in released.block.models), default=1)
        return np.array([released.rows.sum(), k * released.m], np.float64)

    def value(self, state: Floats) -> float | None:
        return float(state[0] / state[1]) if state[1] else None

"""Average size of a cell, relative to the smallest size that the models allow."""

from typing import ClassVar

import numpy as np

from anonlib.arrays import Floats
from anonlib.loss import Metric, ReleasedBlock, Subject


class AverageClassSize(Metric):
    """C_AVG: mean number of rows per cell / k, the fewest persons that the models allow; 1 is best.

    Suppressed rows are in no cell. If k differs by controller, C_AVG is the number of rows / the
    sum of k over the cells.

    Reference: K. LeFevre, D. DeWitt, R. Ramakrishnan, Mondrian multidimensional k-anonymity, ICDE
    2006.

    State: rows, the sum of k over the cells.
    """

    type: ClassVar[str] = "average_class_size"
    subject: ClassVar[Subject] = "classes"
    meaning: ClassVar[str] = (
        "rows of a cell, as a multiple of the fewest that the models allow; 1 is best, more is "
        "worse"
    )
    undefined: ClassVar[str] = "there is no cell"

    def update(self, released: ReleasedBlock) -> Floats:
        k = max((model.min_persons for model in released.block.models), default=1)
        return np.array([released.rows.sum(), k * released.m], np.float64)

    def value(self, state: Floats) -> float | None:
        return float(state[0] / state[1]) if state[1] else None

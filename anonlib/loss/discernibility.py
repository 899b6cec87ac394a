"""The number of rows that each row can't be distinguished from."""

from typing import ClassVar

import numpy as np

from anonlib.arrays import Floats
from anonlib.loss import Metric, ReleasedBlock, Subject


class Discernibility(Metric):
    """The sum of squared cell sizes; a suppressed row adds the number of all rows.

    Rows of the costliest cells, suppressed afterwards, count as rows of their cells.

    Reference: R. Bayardo, R. Agrawal, Data privacy through optimal k-anonymization, ICDE 2005.

    State: n, the sum of squares, suppressed rows.
    """

    type: ClassVar[str] = "discernibility"
    subject: ClassVar[Subject] = "classes"
    meaning: ClassVar[str] = (
        "how many rows are in the cell of each row, summed over all rows; a number, more is worse"
    )
    undefined: ClassVar[str] = "there is no row"

    def update(self, released: ReleasedBlock) -> Floats:
        squares = np.sum(released.rows.astype(np.float64) ** 2)
        return np.array([released.n, squares, released.n_suppressed], np.float64)

    def add_lost(self, state: Floats, n_rows: int) -> Floats:
        return state + np.array([n_rows, 0, n_rows], np.float64)

    def value(self, state: Floats) -> float | None:
        n, squares, suppressed = map(float, state)
        return squares + n * suppressed if n else None

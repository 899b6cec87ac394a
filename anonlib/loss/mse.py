"""Mean squared error of the cells."""

from typing import ClassVar

import numpy as np

from anonlib.arrays import Floats
from anonlib.loss import Metric, ReleasedBlock, Subject


class Mse(Metric):
    """Mean squared distance of continuous and ordinal values from the mean of their cell, in
    variances of the column: for each column, and on average.

    A column with missing values has a further 0/1 column, which flags them. Suppressed rows don't
    count. It is of cells, however they are released: also of columns that are not (see `ncp`).
    Cost O(n p).

    This is the distortion of the price of microaggregation, section 2.3, as far as the paper says
    how it is scaled. The paper measures released values; with recoder `centroid` these are the
    means of cells.

    State: n without suppressed rows, then the sum of squares within the cells for each numeric
    column.
    """

    type: ClassVar[str] = "mse"
    subject: ClassVar[Subject] = "numbers"
    meaning: ClassVar[str] = (
        "how far numbers are from the mean of their cell, squared, in variances of the column; "
        "0 is best, more is worse"
    )
    undefined: ClassVar[str] = "there is no continuous or ordinal column"

    def update(self, released: ReleasedBlock) -> Floats:
        return np.append(np.float64(released.rows.sum()), released.squares_within)

    def value(self, state: Floats) -> float | None:
        found = self.by_column(state)
        return None if found is None else float(found.mean())

    def by_column(self, state: Floats) -> Floats | None:
        return state[1:] / state[0] if len(state) > 1 and state[0] else None

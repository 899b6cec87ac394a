"""Mean squared error of the cells."""

from typing import ClassVar

import numpy as np

from anonlib.arrays import Floats
from anonlib.loss import Metric, ReleasedBlock, Subject


class Mse(Metric):
    """Mean squared distance of continuous and ordinal values from the mean of their cell, in
    variances of the column: for each column, and on average over those that vary.

    A column with missing values has a further 0/1 column, which flags them. Suppressed rows don't
    count. It is of cells, however they are released: also of columns that are not (see `ncp`).
    Cost O(n p).

    This is the distortion of the price of microaggregation, section 2.3, as far as the paper says
    how it is scaled. The paper measures released values; with recoder `centroid` these are the
    means of cells.

    State: n without suppressed rows; then for each numeric column the sum of squares within the
    cells; then, for each, n where it varies in the whole table, else 0.
    """

    type: ClassVar[str] = "mse"
    subject: ClassVar[Subject] = "numbers"
    meaning: ClassVar[str] = (
        "how far numbers are from the mean of their cell, squared, in variances of the column; "
        "0 is best, more is worse"
    )
    undefined: ClassVar[str] = "no continuous or ordinal column varies"

    def update(self, released: ReleasedBlock) -> Floats:
        n = np.float64(released.rows.sum())
        varying = n * (released.block.widths > 0)
        return np.concatenate([[n], released.squares_within, varying])

    def value(self, state: Floats) -> float | None:
        found, varies = self.by_column(state), state[1 + len(state) // 2 :] > 0
        return None if found is None or not varies.any() else float(found[varies].mean())

    def by_column(self, state: Floats) -> Floats | None:
        p = len(state) // 2
        return state[1 : 1 + p] / state[0] if p and state[0] else None

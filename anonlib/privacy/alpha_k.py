"""(alpha, k)-anonymity: no sensitive value is frequent in any cell."""

from math import floor
from typing import ClassVar

import numpy as np
from pydantic import Field

from anonlib.privacy import Bools, CellCounts, LooksAt, PrivacyModel
from anonlib.privacy.shares import count_known


class AlphaK(PrivacyModel):
    """No value of `attribute` has more than the share `alpha` of the persons of a cell.

    Only persons with a present value count, and every cell has at least one of them. The model does
    not require k persons: `k_anonymity` does, which every config has. This is the paper's general
    form, for all values. If a config leaves `attribute` out, the model applies to every sensitive
    column.
    """

    type: ClassVar[str] = "alpha_k"
    monotone: ClassVar[bool] = True
    reference: ClassVar[str] = (
        "R. C.-W. Wong, J. Li, A. W.-C. Fu, K. Wang, (alpha, k)-anonymity, KDD 2006"
    )
    alpha: float = Field(gt=0, le=1, description="the largest share of a value in a cell")
    attribute: str | None = Field(None, description="the column; every sensitive one if left out")

    @property
    def looks_at(self) -> LooksAt:
        return "counts"

    @property
    def min_values(self) -> int:
        # The smallest whole m with 1 / m <= alpha, in floating point as in `holds`.
        m = max(1, floor(1 / self.alpha))
        return m if 1 / m <= self.alpha else m + 1

    def implies(self, other: PrivacyModel) -> bool:
        if not isinstance(other, AlphaK):
            return super().implies(other)
        return self.column == other.column and self.alpha <= other.alpha

    def holds(self, cells: CellCounts) -> Bools:
        counts, m = cells.sensitive[self.column or ""], len(cells.n_rows)
        largest = np.zeros(m, np.int64)
        np.maximum.at(largest, counts.cell, counts.count)
        known = count_known(counts, m)
        # One division, rounded as the audit's is: both say the same of a share that is just alpha.
        return (known > 0) & (largest / np.maximum(known, 1) <= self.alpha)

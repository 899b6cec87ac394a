"""delta-disclosure privacy: shares in a cell are close to those in the whole table."""

from typing import ClassVar

import numpy as np
from pydantic import Field

from anonlib.privacy import Bools, CellCounts, LooksAt, PrivacyModel
from anonlib.privacy.shares import compare_shares


class DeltaDisclosure(PrivacyModel):
    """For every value of `attribute` with share q in the whole table and p in a cell,
    |log(p / q)| < `delta` (natural logarithm).

    A cell that lacks a value of the table fails. Missing values are one category. If a config
    leaves `attribute` out, the model applies to every sensitive column.
    """

    type: ClassVar[str] = "delta_disclosure"
    monotone: ClassVar[bool] = True
    reference: ClassVar[str] = "J. Brickell, V. Shmatikov, The cost of privacy, KDD 2008"
    delta: float = Field(gt=0, description="the bound of |log(p / q)|, not reached")
    attribute: str | None = Field(None, description="the column; every sensitive one if left out")

    @property
    def relative(self) -> bool:
        return True

    @property
    def looks_at(self) -> LooksAt:
        return "counts"

    def implies(self, other: PrivacyModel) -> bool:
        if not isinstance(other, DeltaDisclosure) or self.column != other.column:
            return False
        return self.delta <= other.delta

    def holds(self, cells: CellCounts) -> Bools:
        counts, p, q = compare_shares(cells, self.column or "")
        m, needed = len(cells.n_rows), np.count_nonzero(q)
        near = np.abs(np.log(p / q[counts.value])) < self.delta
        holding: Bools = np.bincount(counts.cell[near], minlength=m) == needed
        return holding

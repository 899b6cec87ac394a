"""beta-likeness: no value is much likelier in a cell than in the whole table."""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from anonlib.privacy import Bools, CellCounts, LooksAt, PrivacyModel
from anonlib.privacy.shares import compare_shares


class BetaLikeness(PrivacyModel):
    """For every value of `attribute` with share q in the whole table and p > q in a cell, the gain
    (p - q) / q is at most `beta` (basic), or at most min(beta, -log q) (enhanced).

    Missing values are one category. If a config leaves `attribute` out, the model applies to every
    sensitive column.
    """

    type: ClassVar[str] = "beta_likeness"
    monotone: ClassVar[bool] = True
    reference: ClassVar[str] = (
        "J. Cao, P. Karras, Publishing microdata with a robust privacy guarantee, PVLDB 5(11), 2012"
    )
    beta: float = Field(gt=0, description="the largest relative gain")
    kind: Literal["basic", "enhanced"] = Field(
        "basic", description="whether frequent values are bounded by their own shares too"
    )
    attribute: str | None = Field(None, description="the column; every sensitive one if left out")

    @property
    def relative(self) -> bool:
        return True

    @property
    def looks_at(self) -> LooksAt:
        return "counts"

    def implies(self, other: PrivacyModel) -> bool:
        if not isinstance(other, BetaLikeness) or self.column != other.column:
            return False
        return other.kind in ("basic", self.kind) and self.beta <= other.beta

    def holds(self, cells: CellCounts) -> Bools:
        counts, p, q = compare_shares(cells, self.column or "")
        bound = np.full(len(q), self.beta)
        if self.kind == "enhanced":
            with np.errstate(divide="ignore"):  # log(0) of values that no cell has
                bound = np.minimum(bound, -np.log(q))
        whole = q[counts.value]
        above = p - whole > bound[counts.value] * whole
        holding: Bools = np.bincount(counts.cell[above], minlength=len(cells.n_rows)) == 0
        return holding

"""Distinct l-diversity: every cell shows at least l values of a sensitive column."""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from anonlib.privacy import Bools, CellCounts, PrivacyModel


class LDiversity(PrivacyModel):
    """Every cell has at least `l` distinct present values of `attribute`.

    Missing values never count towards l. A config that leaves `attribute` out asks it of every
    sensitive column. Reference: A. Machanavajjhala et al., l-diversity: privacy beyond
    k-anonymity, ACM TKDD 1(1), 2007 (the distinct form).
    """

    type: ClassVar[str] = "l_diversity"
    monotone: ClassVar[bool] = True
    l: int = Field(ge=2, description="the smallest number of distinct values in a cell")  # noqa: E741
    attribute: str | None = Field(None, description="the column; every sensitive one if left out")
    kind: Literal["distinct"] = Field("distinct", description="how diversity is counted")

    @property
    def min_values(self) -> int:
        return self.l

    def holds(self, cells: CellCounts) -> Bools:
        # An unbound model has no column: the KeyError is ours to fix, not the user's.
        counts = cells.sensitive[self.column or ""]
        return np.bincount(counts.cell, minlength=len(cells.n_rows)) >= self.l

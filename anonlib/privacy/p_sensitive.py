"""p-sensitive k-anonymity: at least p sensitive values in every cell."""

from typing import ClassVar

import numpy as np
from pydantic import Field

from anonlib.privacy import Bools, CellCounts, LooksAt, PrivacyModel


class PSensitive(PrivacyModel):
    """Every cell has at least `p` distinct present values of `attribute`.

    The model does not require k persons: `k_anonymity` does, which every config has. If a config
    leaves `attribute` out, the model applies to every sensitive column.
    """

    type: ClassVar[str] = "p_sensitive"
    monotone: ClassVar[bool] = True
    reference: ClassVar[str] = (
        "T. M. Truta, B. Vinay, Privacy protection: p-sensitive k-anonymity property, ICDE "
        "Workshops 2006"
    )
    p: int = Field(ge=2, description="the smallest number of distinct values in a cell")
    attribute: str | None = Field(None, description="the column; every sensitive one if left out")

    @property
    def looks_at(self) -> LooksAt:
        return "values"

    @property
    def min_values(self) -> int:
        return self.p

    @property
    def is_of_values(self) -> bool:
        return True

    def holds(self, cells: CellCounts) -> Bools:
        counts = cells.sensitive[self.column or ""]
        return np.bincount(counts.cell, minlength=len(cells.n_rows)) >= self.p

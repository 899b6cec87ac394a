"""k-anonymity: every cell has at least k persons."""

from typing import ClassVar

from pydantic import Field

from anonlib.privacy import Bools, CellCounts, PrivacyModel


class KAnonymity(PrivacyModel):
    """Every cell has at least `k` distinct persons."""

    type: ClassVar[str] = "k_anonymity"
    monotone: ClassVar[bool] = True
    reference: ClassVar[str] = (
        "L. Sweeney, k-anonymity: a model for protecting privacy, IJUFKS 10(5), 2002"
    )
    k: int = Field(ge=2, description="the smallest number of persons in a cell")

    @property
    def min_persons(self) -> int:
        return self.k

    def implies(self, other: PrivacyModel) -> bool:
        return isinstance(other, KAnonymity) and self.k >= other.k

    def holds(self, cells: CellCounts) -> Bools:
        return cells.n_persons >= self.k

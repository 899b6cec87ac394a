"""l-diversity: every cell is diverse in a sensitive column."""

from typing import ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from anonlib.privacy import Bools, CellCounts, Ints, LooksAt, PrivacyModel
from anonlib.privacy.shares import list_shares

#: By rounding, the entropy of l equally frequent values can be this much below log(l). The audit
#: allows 1e-9.
ROUNDING = 1e-12


class LDiversity(PrivacyModel):
    """Every cell is diverse in the present values of `attribute`.

    - distinct: it has at least `l` values.
    - entropy: the entropy of their distribution is at least log(l).
    - recursive: the most frequent of m values occurs less than `c` times as often as the l-th,
      (l+1)-th, ..., m-th most frequent together.

    Missing values never count. If a config leaves `attribute` out, the model applies to every
    sensitive column.
    """

    type: ClassVar[str] = "l_diversity"
    monotone: ClassVar[bool] = True
    reference: ClassVar[str] = (
        "A. Machanavajjhala et al., l-diversity: privacy beyond k-anonymity, ACM TKDD 1(1), 2007"
    )
    l: int = Field(ge=2, description="the smallest number of distinct values in a cell")  # noqa: E741
    attribute: str | None = Field(None, description="the column; every sensitive one if left out")
    kind: Literal["distinct", "entropy", "recursive"] = Field(
        "distinct",
        description="the number of values, e to the power of their entropy, or the most frequent "
        "against the rarer ones",
    )
    c: float | None = Field(None, gt=0, description="the factor of the recursive kind")

    @model_validator(mode="after")
    def _c_with_recursive(self) -> Self:
        if (self.c is None) == (self.kind == "recursive"):
            raise ValueError("c goes with `kind: recursive`, which needs it")
        return self

    @property
    def looks_at(self) -> LooksAt:
        return "values" if self.kind == "distinct" else "counts"

    @property
    def min_values(self) -> int:
        return self.l

    @property
    def is_of_values(self) -> bool:
        return self.kind == "distinct"

    def implies(self, other: PrivacyModel) -> bool:
        if not isinstance(other, LDiversity) or other.is_of_values:
            return super().implies(other)
        if self.column != other.column or self.l < other.l or self.kind != other.kind:
            return False
        return self.kind == "entropy" or (self.c or 0.0) <= (other.c or 0.0)

    def holds(self, cells: CellCounts) -> Bools:
        # An unbound model has no column. The KeyError is then a defect of anonlib, not the user's.
        counts, m = cells.sensitive[self.column or ""], len(cells.n_rows)
        diverse: Bools = np.bincount(counts.cell, minlength=m) >= self.l
        if self.kind == "entropy":
            p = list_shares(counts, m)
            entropy = -np.bincount(counts.cell, p * np.log(p), m)
            diverse &= entropy >= np.log(self.l) - ROUNDING
        elif self.kind == "recursive" and self.c is not None:
            largest, tail = self._frequencies(counts.cell, counts.count, m)
            diverse &= largest < self.c * tail
        return diverse

    def _frequencies(self, cell: Ints, count: Ints, m: int) -> tuple[Ints, Ints]:
        """int64[m] each: the largest count of a cell, and the sum of the l-th and lower ones."""
        order = np.lexsort((-count, cell))
        cell, count = cell[order], count[order]
        start = np.searchsorted(cell, np.arange(m))
        rank = np.arange(len(cell)) - start[cell]
        largest = np.bincount(cell[rank == 0], count[rank == 0], m)
        tail = np.bincount(cell[rank >= self.l - 1], count[rank >= self.l - 1], m)
        return largest.astype(np.int64), tail.astype(np.int64)

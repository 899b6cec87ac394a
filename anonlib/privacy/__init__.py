"""Privacy models: predicates on a cell, one file each. The check of a model on the release is in
`auditing/models/`, with code of its own."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from anonlib.registry import Plugin

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
LooksAt = Literal["persons", "values", "counts"]


@dataclass(frozen=True)
class SparseCounts:
    """How often each value of one sensitive column occurs in each cell, without missing values.
    One entry per (cell, value), sorted by both.

    Attributes:
        cell: int64[e]. The cell of each entry.
        value: int64[e]. Its value.
        count: int64[e]. Its rows.
    """

    cell: Ints
    value: Ints
    count: Ints


@dataclass(frozen=True)
class Reference:
    """The distribution of a protected column over all rows to be released; one for all blocks.

    Attributes:
        count: int64[v]. Rows with each value, in the order of the values.
        n_missing: Rows without a value.
        levels: int64[h, v] or None. With a hierarchy: what each value is generalized to, step by
            step, from the values to the children of the root. The root is left out.
    """

    count: Ints
    n_missing: int
    levels: Ints | None = None


@dataclass(frozen=True)
class CellCounts:
    """All that a privacy model may look at, for m cells at once.

    Attributes:
        n_rows: int64[m]. Rows of each cell.
        n_persons: int64[m]. Persons of each cell; differs from the rows only with a unit.
        sensitive: By protected column: its counts.
        references: By protected column that a model measures cells against: its distribution.
            Values have the same numbers as in `sensitive`.
        known: By protected column: the groups of rows that an attacker tells apart who knows the
            other protected columns.
    """

    n_rows: Ints
    n_persons: Ints
    sensitive: Mapping[str, SparseCounts]
    references: Mapping[str, Reference] = field(default_factory=dict)
    known: "Mapping[str, KnownGroups]" = field(default_factory=dict)


@dataclass(frozen=True)
class KnownGroups:
    """Groups of the rows of a cell that agree on all protected columns but one. Missing counts as
    a value.

    Attributes:
        cell: int64[g]. The cell of each group.
        counts: The counts of the groups, in place of cells.
    """

    cell: Ints
    counts: CellCounts


class PrivacyModel(Plugin):
    """A predicate on a cell, monotone under union for a fixed reference distribution. `reference`
    is for the listing: the source of its definition."""

    family: ClassVar[str] = "privacy model"
    monotone: ClassVar[bool]
    reference: ClassVar[str]

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        if not getattr(cls, "monotone", False):
            raise TypeError(f"{cls.__name__} is not monotone: blocks could not be worked on apart")

    @property
    def column(self) -> str | None:
        """The column that it protects; None where it looks at persons only, or is not bound yet."""
        return getattr(self, "attribute", None)

    @property
    def looks_at(self) -> LooksAt:
        """What it looks at besides persons: nothing, which values of its column a cell has, or how
        often each stands there (and in the reference)."""
        return "persons"

    @property
    def relative(self) -> bool:
        """Whether it measures cells against the reference, the whole table."""
        return False

    @property
    def by_hierarchy(self) -> bool:
        """Whether it needs the hierarchy of its column: the levels of the reference."""
        return False

    @property
    def min_persons(self) -> int:
        """The smallest number of persons that a cell holding the model can have."""
        return 1

    @property
    def min_values(self) -> int:
        """The smallest number of distinct present values of its column in such a cell."""
        return 0

    @property
    def min_rows(self) -> int:
        """The smallest number of rows of such a cell."""
        return max(self.min_persons, self.min_values)

    @abstractmethod
    def holds(self, cells: CellCounts) -> Bools:
        """bool[m]: which cells satisfy the model."""

    def holds_within(self, cells: CellCounts) -> Bools:
        """bool[m]: which cells satisfy the model, and so does each of their known groups. Monotone
        under union as the model is: groups of a union are unions of groups, or groups."""
        known = cells.known.get(self.column or "")
        if known is None:
            return self.holds(cells)
        failing = known.cell[~self.holds(known.counts)]
        holding: Bools = np.bincount(failing, minlength=len(cells.n_rows)) == 0
        return self.holds(cells) & holding

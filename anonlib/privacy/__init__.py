"""Privacy models: predicates on a cell. Each has its own file.

The audit checks a model on the release with independent code, in `auditing/models/`.
"""

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, cast

import numpy as np
import numpy.typing as npt

from anonlib.errors import ContractError
from anonlib.registry import Plugin, build, run_plugin

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
LooksAt = Literal["persons", "values", "counts"]


@dataclass(frozen=True)
class SparseCounts:
    """How many persons of each cell have each present value of one sensitive column.

    There is one entry per (cell, value), sorted by both. Missing values have none. Without a unit
    each row is a person. With a unit a person counts once for each of its values, and rows without
    a person count for nobody.

    Attributes:
        cell: int64[e]. The cell of each entry.
        value: int64[e]. The value of each entry.
        count: int64[e]. The persons of each entry.
        n_missing: int64[m] or None. The persons of each cell with a missing value. None means the
            rows of the cell that no entry counts.
        n_known: int64[m] or None. The persons of each cell with a present value. None means the sum
            of its entries.
    """

    cell: Ints
    value: Ints
    count: Ints
    n_missing: Ints | None = None
    n_known: Ints | None = None


@dataclass(frozen=True)
class Reference:
    """The distribution of a protected column over all rows to be released. All blocks share it.

    Attributes:
        count: int64[v]. Persons with each value, in the order of the values, counted as in cells.
        n_missing: Persons with a missing value.
        levels: int64[h, v]. With a hierarchy: the node of each value at each level, from the values
            up to the children of the root. None without a hierarchy.
    """

    count: Ints
    n_missing: int
    levels: Ints | None = None


@dataclass(frozen=True)
class CellCounts:
    """All that a privacy model may look at, for m cells at once.

    Attributes:
        n_rows: int64[m]. Rows of each cell.
        n_persons: int64[m]. Persons of each cell. Without a unit these are the rows.
        sensitive: By protected column: its counts.
        references: By protected column of a relative model: its distribution in the whole table.
            Values have the same numbers as in `sensitive`.
        known: By protected column: the groups of rows that an attacker who knows the other
            protected columns can distinguish.
    """

    n_rows: Ints
    n_persons: Ints
    sensitive: Mapping[str, SparseCounts]
    references: Mapping[str, Reference] = field(default_factory=dict)
    known: "Mapping[str, KnownGroups]" = field(default_factory=dict)


@dataclass(frozen=True)
class KnownGroups:
    """Groups of rows of a cell that agree on all protected columns but one.

    Missing counts as a value.

    Attributes:
        cell: int64[g]. The cell of each group.
        counts: The counts of the g groups, as if they were cells.
    """

    cell: Ints
    counts: CellCounts


class PrivacyModel(Plugin):
    """A predicate on a cell.

    It is monotone: if two cells hold the model, so does their union. This is for a fixed reference
    distribution and cells that share no person. If cells share persons, a model that looks at
    counts may hold in each of them and fail in their union. Code that merges such cells must judge
    the union.

    `reference` names the source of the definition, for listings.
    """

    family: ClassVar[str] = "privacy model"
    monotone: ClassVar[bool]
    reference: ClassVar[str]

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        if not getattr(cls, "monotone", False):
            raise TypeError(f"{cls.__name__} is not monotone: blocks could not be worked on apart")

    @property
    def column(self) -> str | None:
        """The column that the model protects; None if it looks at persons only, or is unbound."""
        return getattr(self, "attribute", None)

    @property
    def looks_at(self) -> LooksAt:
        """What the model looks at.

        persons: only the number of persons. values: also which values of its column a cell has.
        counts: also how many persons have each value in the cell, and in the reference.
        """
        return "persons"

    @property
    def relative(self) -> bool:
        """Whether the model compares cells with the reference, the whole table."""
        return False

    @property
    def by_hierarchy(self) -> bool:
        """Whether the model needs the hierarchy of its column, as the levels of the reference."""
        return False

    @property
    def by_order(self) -> bool:
        """Whether the model needs the order of the values of its column."""
        return False

    @property
    def min_persons(self) -> int:
        """The fewest persons that a cell that holds the model can have."""
        return 1

    @property
    def min_values(self) -> int:
        """The fewest distinct present values of its column in a cell that holds the model."""
        return 0

    @property
    def is_of_values(self) -> bool:
        """Whether every cell that has `min_values` such values holds the model."""
        return False

    @property
    def min_rows(self) -> int:
        """The fewest rows that a cell that holds the model can have."""
        return max(self.min_persons, self.min_values)

    def implies(self, other: "PrivacyModel") -> bool:
        """Whether every cell that holds this model holds the other one, too."""
        enough = other.is_of_values and self.min_values >= other.min_values
        return self == other or (enough and self.column == other.column)

    @abstractmethod
    def holds(self, cells: CellCounts) -> Bools:
        """bool[m]. Whether each cell holds the model."""

    def holds_within(self, cells: CellCounts) -> Bools:
        """bool[m]. Whether each cell, and each of its known groups, holds the model.

        This is as monotone as the model: each group of a union of cells is a group of one cell, or
        a union of groups of the cells.
        """
        known = cells.known.get(self.column or "")
        if known is None:
            return self._find_holding(cells)
        failing = known.cell[~self._find_holding(known.counts)]
        holding: Bools = np.bincount(failing, minlength=len(cells.n_rows)) == 0
        return self._find_holding(cells) & holding

    def _find_holding(self, cells: CellCounts) -> Bools:
        """`holds`, checked. Raises ContractError if it failed, or gave something else."""
        found: Any = run_plugin(self, lambda: self.holds(cells))
        is_bools = isinstance(found, np.ndarray) and found.dtype.kind == "b"
        if not is_bools or found.shape != cells.n_rows.shape:
            raise ContractError(
                f"privacy model {self.type}: `holds` must give an array of truth values, one for "
                "each cell"
            )
        return cast(Bools, found)


def build_models(specs: Iterable[Mapping[str, Any]]) -> tuple[PrivacyModel, ...]:
    """The models that specs of the registry name."""
    return tuple(build("privacy model", spec) for spec in specs)

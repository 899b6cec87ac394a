"""A block: the rows that one task anonymizes together, as the arrays that kernels work on."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from anonlib.privacy import CellCounts, PrivacyModel, Reference, SparseCounts

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int32]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

#: Numeric values are multiples of this, so that sums within 53 bits are exact in any order.
GRID = 2.0**-20
#: The code of a missing sensitive value.
MISSING = -1


def snap(values: Floats) -> Floats:
    """The nearest multiples of GRID, as a C-contiguous array; -0.0 becomes 0.0."""
    return np.ascontiguousarray(np.rint(values / GRID) * GRID + 0.0)


@dataclass(frozen=True)
class Tuples:
    """The distinct quasi-identifier tuples of a block: `first` is the row where each begins,
    `count` how many rows it has; row i belongs to tuple `id[i]`."""

    first: Ints
    count: Ints
    id: Ints


@dataclass(frozen=True)
class Block:
    """n rows with p numeric and q nominal quasi-identifiers and s protected columns.

    numeric: float64[n, p] on GRID: standardized continuous columns, ordinal ranks, missing flags.
    nominal: int32[n, q], codes 0..n_categories-1 (missing is a category).
    sensitive: int32[n, s], codes of protected columns, MISSING where missing; `protected` names
    them. unit: int32[n], codes of persons, or None where every row is a person of its own.
    widths: float64[p], the range of each numeric column over the whole table;
    n_categories: int64[q]. models: the privacy models that every cell must hold.
    Rows come in canonical order: equal tuples side by side, ties broken by the whole row.
    """

    numeric: Floats
    nominal: Codes
    sensitive: Codes
    unit: Codes | None
    widths: Floats
    n_categories: Ints
    models: tuple[PrivacyModel, ...]
    protected: tuple[str, ...] = ()
    references: Mapping[str, Reference] = field(default_factory=dict)

    @property
    def n(self) -> int:
        return len(self.numeric)

    @property
    def min_rows(self) -> int:
        """The smallest number of rows that a cell can have under the models."""
        return max((model.min_rows for model in self.models), default=1)

    @property
    def counts_rows_only(self) -> bool:
        """Whether min_rows rows are enough for a cell, whatever they are."""
        return self.unit is None and not self.protected

    @cached_property
    def tuples(self) -> Tuples:
        """The distinct tuples, in row order. Cost O(n (p + q))."""
        if self.n == 0:
            empty = np.zeros(0, np.int64)
            return Tuples(empty, empty, empty)
        new = np.ones(self.n, np.bool_)
        new[1:] = (self.numeric[1:] != self.numeric[:-1]).any(axis=1)
        new[1:] |= (self.nominal[1:] != self.nominal[:-1]).any(axis=1)
        first = np.flatnonzero(new)
        return Tuples(first, np.diff(first, append=self.n), np.cumsum(new) - 1)

    def counts(self, cell_id: Ints, n_cells: int, rows: Ints | None = None) -> CellCounts:
        """What the models see of the cells 0..n_cells-1.

        `cell_id` gives the cell of every row, or of the given `rows` only.
        """
        n_rows = np.bincount(cell_id, minlength=n_cells)
        if self.unit is None:
            n_persons = n_rows
        else:
            unit = self.unit if rows is None else self.unit[rows]
            n_persons = np.bincount(sparse(cell_id, unit).cell, minlength=n_cells)
        codes = self.sensitive if rows is None else self.sensitive[rows]
        found = {name: sparse(cell_id, codes[:, j]) for j, name in enumerate(self.protected)}
        return CellCounts(n_rows, n_persons, found, self.references)

    def holds(self, cell_id: Ints, n_cells: int, rows: Ints | None = None) -> Bools:
        """bool[n_cells]: which cells hold every model (arguments as for `counts`)."""
        counts = self.counts(cell_id, n_cells, rows)
        result = np.ones(n_cells, np.bool_)
        for model in self.models:
            result &= model.holds(counts)
        return result


def sparse(cell_id: Ints, codes: Codes) -> SparseCounts:
    """Counts of the (cell, code) pairs there are, MISSING codes left out."""
    present = codes != MISSING
    cell, code = cell_id[present], codes[present].astype(np.int64)
    if len(cell) == 0:
        empty = np.zeros(0, np.int64)
        return SparseCounts(empty, empty, empty)
    width = int(code.max()) + 1
    pair, count = np.unique(cell * width + code, return_counts=True)
    return SparseCounts(pair // width, pair % width, count)

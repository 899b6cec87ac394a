"""Whether means of cells tell the value of the largest contributor."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
from pydantic import Field

from anonlib.arrays import MISSING, Bools, Floats, Ints
from anonlib.measure import Figure, Findings, Subjects
from anonlib.measure.cell_sums import CellMeasure, CellParts, OriginalCells, name_of
from anonlib.table.encoding import to_float
from anonlib.table.schema import Column, Schema

if TYPE_CHECKING:
    from anonlib.measure.case import Case

PUBLISHED = "once a release is published, nothing links its cells to original values"
NONE = "no cell has a released value"
#: Sums that differ by less, relative to the total, count as equal: floats round them.
ROUNDING = 1e-12


class Dominance(CellMeasure):
    """How many cells have a mean that one or two large values make up.

    For each column of numbers that is released as the mean of its cell (recoder `centroid`). The
    mean and the size of a cell give its total. Two rules of official statistics ask whether a total
    tells too much of its contributors, who are persons with the sum of their values in the cell:

    - The (n,k) rule: the `n_largest` largest contributors have more than `share` of the total.
      Figures `nk_cells` and `nk_rows`.
    - The p% rule: the second largest contributor, who subtracts the own value from the total, would
      know the largest value to within `p` percent: what all others have together is less than `p`
      percent of the largest. Figures `p_cells` and `p_rows`.

    Values count by their size, without their sign. Cells whose mean is not released, because most
    values are missing, do not count; neither do suppressed ones. A cell counts on its own, even if
    the release has its values in another cell too. Rows without a person count as persons of their
    own. Dates and timestamps have no total, and are left out.
    Cost O(n log n) per column, by workers, while they make the cells; no pass over a table.
    """

    type: ClassVar[str] = "dominance"
    is_risk: ClassVar[bool] = True
    subjects: ClassVar[Subjects] = "columns"
    names: ClassVar[Mapping[str, str]] = {
        "nk_cells": "cells in which the `n_largest` largest contributors have more than `share` of "
        "the total; a number, less is safer",
        "nk_rows": "share of rows in cells in which the `n_largest` largest contributors have more "
        "than `share` of the total; 0 to 1, less is safer",
        "p_cells": "cells whose second largest contributor could tell the largest value to within "
        "`p` percent; a number, less is safer",
        "p_rows": "share of rows in cells whose second largest contributor could tell the largest "
        "value to within `p` percent; 0 to 1, less is safer",
    }
    reference: ClassVar[str] = (
        "A. Hundepool et al., Statistical Disclosure Control, Wiley, 2012, section 4.2.1 "
        "(dominance rule, p% rule)"
    )
    n_largest: int = Field(2, ge=1, description="n: the contributors that have most of a total")
    share: float = Field(
        0.85, gt=0, lt=1, description="k: the share of a total from which they dominate it"
    )
    p: float = Field(
        10.0, gt=0, le=100, description="percent of the largest value that others must hide it by"
    )

    def choose_columns(self, schema: Schema) -> tuple[Column, ...]:
        return tuple(
            column
            for column in schema.quasi_identifiers
            if column.recoder.type == "centroid" and not pa.types.is_temporal(column.type)
        )

    def count(self, cells: OriginalCells) -> dict[str, CellParts]:
        return {name_of(id): self._of(cells, to_float(cells.values[id])) for id in cells.values}

    def _of(self, cells: OriginalCells, values: Floats) -> CellParts:
        """The sums of a column: its cells and their rows, then cells and rows that each rule fails.

        values: float64[n]. The values; NaN where missing.
        """
        there = np.flatnonzero(~np.isnan(values))
        present = np.bincount(cells.id[there], cells.weight[there], cells.m)
        told = 2 * present >= cells.released_block.rows
        largest = find_largest(_contributions(cells, there, np.abs(values[there])), self.n_largest)
        error = ROUNDING * largest.total
        dominated = largest.top - self.share * largest.total > error
        seen_through = self.p / 100 * largest.one - (largest.total - largest.two) > error
        rows = cells.released_block.rows.astype(np.float64)
        kept = [told, told & dominated, told & seen_through]
        sums = [each * of for each in kept for of in (np.ones(cells.m), rows)]
        return CellParts(np.arange(cells.m), np.column_stack(sums))

    def measure(self, case: "Case") -> Findings:
        columns = self.choose_columns(case.schema)
        found = case.cell_sums(self.type)
        if found is None:
            return Findings(
                tuple(Figure(name, None, c.name, PUBLISHED) for c in columns for name in self.names)
            )
        figures: list[Figure] = []
        for column in columns:
            if name_of(column.id) not in found:
                continue
            n_cells, n_rows, *failing = found[name_of(column.id)].released.tolist()
            note = "" if n_cells else NONE
            for name, value in zip(self.names, failing, strict=True):
                share = value / n_rows if name.endswith("rows") and n_rows else value
                figures.append(Figure(name, share if n_cells else None, column.name, note))
        return Findings(tuple(figures))


class Contributions(NamedTuple):
    """What contributors have of the totals of m cells.

    Attributes:
        cell: int64[c]. The cell of each.
        size: float64[c]. What each has; 0 or more.
        n: int64[c]. How many contributors have this much each.
        m: The number of cells.
    """

    cell: Ints
    size: Floats
    n: Ints
    m: int


class Largest(NamedTuple):
    """The largest contributions to cells. All are float64[m].

    Attributes:
        one: The largest.
        two: The two largest together.
        top: The n largest together.
        total: All of them together.
    """

    one: Floats
    two: Floats
    top: Floats
    total: Floats


def find_largest(contributions: Contributions, n_largest: int) -> Largest:
    """The largest contributions to each cell; 0 for a cell without any. Cost O(c log c)."""
    order = np.lexsort([-contributions.size, contributions.cell])
    cell, size, n = contributions.cell[order], contributions.size[order], contributions.n[order]
    before = np.cumsum(n) - n
    first: Bools = np.diff(cell, prepend=-1) != 0
    rank = before - before[first][np.cumsum(first) - 1]  # the larger ones of the cell

    def together(most: int) -> Floats:
        return np.bincount(cell, np.clip(most - rank, 0, n) * size, contributions.m).astype(
            np.float64
        )

    return Largest(together(1), together(2), together(n_largest), together(int(n.sum())))


def _contributions(cells: OriginalCells, rows: Ints, size: Floats) -> Contributions:
    """The contributions of some rows: the values of a person in a cell are one."""
    cell, weight = cells.id[rows], cells.weight[rows]
    if cells.person is None:
        return Contributions(cell, size, weight, cells.m)
    person = cells.person[rows].astype(np.int64)
    nobody = person == MISSING
    person[nobody] = -1 - np.arange(int(nobody.sum()))
    pairs, place = np.unique(np.column_stack([cell, person]), axis=0, return_inverse=True)
    sums = np.bincount(place.ravel(), size, len(pairs)).astype(np.float64)
    return Contributions(pairs[:, 0], sums, np.ones(len(pairs), np.int64), cells.m)

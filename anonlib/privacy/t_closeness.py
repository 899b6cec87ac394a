"""t-closeness: values are distributed in each cell as in the whole table."""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from anonlib.privacy import Bools, CellCounts, Floats, Ints, LooksAt, PrivacyModel, SparseCounts
from anonlib.privacy.shares import sum_cells, sum_counts, with_missing


class TCloseness(PrivacyModel):
    """The earth mover's distance between the distribution of `attribute` in a cell and that in the
    whole table is at most `t`.

    - equal: all values are at distance 1 from each other.
    - ordered: of v sorted values, the i-th and the j-th are at distance |i - j| / (v - 1). Numbers
      and dates are sorted by size, text by its letters, folded; missing is last.
    - hierarchical: the distance of two values is the height of their lowest common ancestor in the
      column's hierarchy, divided by the height of the root. A node's height is the longest way from
      it down to a value (a level that repeats a name doesn't count), so every value has height 0.
      Missing is a child of the root, at distance 1 from all values.

    Missing values are one category. If a config leaves `attribute` out, the model applies to every
    sensitive column.
    Cost O(entries + cells), times log(entries) unless equal, times the levels if hierarchical.
    """

    type: ClassVar[str] = "t_closeness"
    monotone: ClassVar[bool] = True
    reference: ClassVar[str] = "N. Li, T. Li, S. Venkatasubramanian, t-closeness, ICDE 2007"
    t: float = Field(gt=0, le=1, description="the largest distance")
    distance: Literal["equal", "ordered", "hierarchical"] = Field(
        "equal",
        description="between two values: 1, by their places in order, or by the height of their "
        "lowest common ancestor in the column's hierarchy",
    )
    attribute: str | None = Field(None, description="the column; every sensitive one if left out")

    @property
    def relative(self) -> bool:
        return True

    @property
    def looks_at(self) -> LooksAt:
        return "counts"

    @property
    def by_order(self) -> bool:
        return self.distance == "ordered"

    @property
    def by_hierarchy(self) -> bool:
        return self.distance == "hierarchical"

    def implies(self, other: PrivacyModel) -> bool:
        if not isinstance(other, TCloseness) or self.column != other.column:
            return False
        return self.distance == other.distance and self.t <= other.t

    def holds(self, cells: CellCounts) -> Bools:
        return self.distances(cells) <= self.t

    def distances(self, cells: CellCounts) -> Floats:
        """float64[m]. The distance of each cell from the whole table."""
        column = self.column or ""
        counts, whole = with_missing(cells, column)
        total = sum_cells(counts, len(cells.n_rows))
        if self.distance == "equal":
            return _variation(counts, total, whole)
        if self.distance == "ordered":
            if len(whole) < 2 or not len(counts.cell):
                return np.zeros(len(cells.n_rows))
            return _by_order(counts, total, whole / whole.sum()) / (len(whole) - 1)
        levels = cells.references[column].levels
        if levels is None:
            raise ValueError(f"the reference of {column} has no hierarchy")
        return _by_levels(counts, total, whole, levels)


def _variation(counts: SparseCounts, n_all: Ints, whole: Ints) -> Floats:
    """float64[m]. The total variation distance of each cell: the sum of its surplus shares.

    This equals the sum of the shares that it lacks.
    """
    p, q = counts.count / n_all[counts.cell], whole / whole.sum()
    excess = np.maximum(p - q[counts.value], 0.0)
    return np.bincount(counts.cell, excess, len(n_all)).astype(np.float64)


def _by_levels(counts: SparseCounts, n_all: Ints, whole: Ints, levels: Ints) -> Floats:
    """float64[m]. The distance of each cell: the mean of the variation distances at the h levels.

    Mass that moves between two values climbs one step of h at each level where they are in
    different nodes. This equals the paper's sum over nodes of height / h * min(surplus, lack) among
    the children.
    """
    missing = np.full((len(levels), len(whole) - levels.shape[1]), levels.max(initial=-1) + 1)
    total = np.zeros(len(n_all))
    for group in np.concatenate([levels, missing], axis=1):
        generalized = sum_counts(counts.cell, group[counts.value], counts.count)
        share = np.bincount(group, whole).astype(np.int64)
        total += _variation(generalized, n_all, share)
    return total / len(levels)


def _by_order(counts: SparseCounts, n_all: Ints, q: Floats) -> Floats:
    """float64[m]. The sum over i of |P(value <= i) - Q(value <= i)|, for each cell.

    Between two values of a cell P is a constant c. The sum of |c - Q(i)| over such a run of i comes
    from prefix sums of Q, split where Q passes c. Counts are added up instead of shares, so that
    the distance of a cell does not depend on the other cells.
    """
    order = np.lexsort((counts.value, counts.cell))
    cell, value, count = counts.cell[order], counts.value[order], counts.count[order]
    m = len(n_all)
    first = np.minimum(
        np.searchsorted(cell, np.arange(m)), len(cell) - 1
    )  # any place, for a cell without rows
    running = np.cumsum(count)
    rows = running - (running[first] - count[first])[cell]
    level = rows / n_all[cell]  # P at and after each value
    below = np.cumsum(q)
    sums = np.concatenate([[0.0], np.cumsum(below)])
    last = np.append(cell[1:] != cell[:-1], True)
    end = np.where(last, len(q), np.append(value[1:], 0))
    turn = np.clip(np.searchsorted(below, level, side="right"), value, end)
    under = level * (turn - value) - (sums[turn] - sums[value])
    over = (sums[end] - sums[turn]) - level * (end - turn)
    total: Floats = np.bincount(cell, under + over, m) + sums[value[first]]
    return total

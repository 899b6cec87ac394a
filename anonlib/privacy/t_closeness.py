"""t-closeness: cells are distributed as the whole table is."""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from anonlib.privacy import Bools, CellCounts, Floats, Ints, LooksAt, PrivacyModel, SparseCounts
from anonlib.privacy.shares import sum_counts, with_missing


class TCloseness(PrivacyModel):
    """The earth mover's distance between the distribution of `attribute` in a cell and that in the
    whole table is at most `t`.

    - equal: all values are at distance 1 from each other.
    - ordered: of v values in their order (numbers and dates by size, text by its letters, folded;
      missing last), the i-th and the j-th are at distance |i - j| / (v - 1).
    - hierarchical: two values are as far apart as their lowest common ancestor is high in the
      column's hierarchy, the root at 1. A node's height is the longest way from it down to a value
      (levels that repeat a name are none), so values stand at 0 wherever their branch ends.
      Missing hangs from the root, at distance 1 from all.

    Missing values are one category. A config that leaves `attribute` out asks it of every
    sensitive column.
    Cost: O(entries + cells), times log(entries) and the hierarchy's levels if it has them.
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
    def by_hierarchy(self) -> bool:
        return self.distance == "hierarchical"

    def holds(self, cells: CellCounts) -> Bools:
        return self.distances(cells) <= self.t

    def distances(self, cells: CellCounts) -> Floats:
        """float64[m]: the distance of each cell."""
        column = self.column or ""
        counts, whole = with_missing(cells, column)
        if self.distance == "equal":
            return _variation(counts, cells.n_rows, whole)
        if self.distance == "ordered":
            if len(whole) < 2 or not len(counts.cell):
                return np.zeros(len(cells.n_rows))
            return _ordered(counts, cells.n_rows, whole / whole.sum()) / (len(whole) - 1)
        levels = cells.references[column].levels
        if levels is None:
            raise ValueError(f"the reference of {column} has no hierarchy")
        return _by_levels(counts, cells.n_rows, whole, levels)


def _variation(counts: SparseCounts, n_rows: Ints, whole: Ints) -> Floats:
    """The total variation distance of each cell: what a cell has too much of is what it has too
    little of elsewhere."""
    p, q = counts.count / n_rows[counts.cell], whole / whole.sum()
    excess = np.maximum(p - q[counts.value], 0.0)
    return np.bincount(counts.cell, excess, len(n_rows)).astype(np.float64)


def _by_levels(counts: SparseCounts, n_rows: Ints, whole: Ints, levels: Ints) -> Floats:
    """The mean of the variation distances at the levels: what leaves a node on its way to another
    climbs one step of all h at each level at which the two are apart.

    The same as the paper's sum over nodes of height / h * min(surplus, lack) among the children.
    """
    missing = np.full((len(levels), len(whole) - levels.shape[1]), levels.max(initial=-1) + 1)
    total = np.zeros(len(n_rows))
    for group in np.concatenate([levels, missing], axis=1):
        generalized = sum_counts(counts.cell, group[counts.value], counts.count)
        share = np.bincount(group, whole).astype(np.int64)
        total += _variation(generalized, n_rows, share)
    return total / len(levels)


def _ordered(counts: SparseCounts, n_rows: Ints, q: Floats) -> Floats:
    """The sums over i of |P(value <= i) - Q(value <= i)|, for each cell.

    Between two values of a cell P stays as it is, at some c: the sum of |c - Q(i)| over a run of i
    comes from prefix sums of Q, cut where Q passes c. Rows are added up, not shares: a cell's
    distance is the same whatever cells it is measured with.
    """
    order = np.lexsort((counts.value, counts.cell))
    cell, value, count = counts.cell[order], counts.value[order], counts.count[order]
    m = len(n_rows)
    first = np.minimum(np.searchsorted(cell, np.arange(m)), len(cell) - 1)  # of no rows: whatever
    running = np.cumsum(count)
    rows = running - (running[first] - count[first])[cell]
    level = rows / n_rows[cell]  # P at and after each value
    below = np.cumsum(q)
    sums = np.concatenate([[0.0], np.cumsum(below)])
    last = np.append(cell[1:] != cell[:-1], True)
    end = np.where(last, len(q), np.append(value[1:], 0))
    turn = np.clip(np.searchsorted(below, level, side="right"), value, end)
    under = level * (turn - value) - (sums[turn] - sums[value])
    over = (sums[end] - sums[turn]) - level * (end - turn)
    total: Floats = np.bincount(cell, under + over, m) + sums[value[first]]
    return total

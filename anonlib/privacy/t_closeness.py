"""t-closeness: cells are distributed as the whole table is."""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from anonlib.privacy import Bools, CellCounts, Floats, Ints, LooksAt, PrivacyModel, SparseCounts
from anonlib.privacy._shares import against


class TCloseness(PrivacyModel):
    """The earth mover's distance between the distribution of `attribute` in a cell and that in the
    whole table is at most `t`.

    - equal: all values are at distance 1 from each other.
    - ordered: of v values in their order (numbers and dates by size, text by its letters, folded;
      missing last), the i-th and the j-th are at distance |i - j| / (v - 1).

    Missing values are one category. A config that leaves `attribute` out asks it of every
    sensitive column. Reference: N. Li, T. Li, S. Venkatasubramanian, t-closeness, ICDE 2007.
    Cost of the ordered distance: O(entries + cells).
    """

    type: ClassVar[str] = "t_closeness"
    monotone: ClassVar[bool] = True
    t: float = Field(gt=0, le=1, description="the largest distance")
    distance: Literal["equal", "ordered"] = Field(
        "equal", description="how far two values are from each other"
    )
    attribute: str | None = Field(None, description="the column; every sensitive one if left out")

    @property
    def looks_at(self) -> LooksAt:
        return "counts"

    def holds(self, cells: CellCounts) -> Bools:
        return self.distances(cells) <= self.t

    def distances(self, cells: CellCounts) -> Floats:
        """float64[m]: the distance of each cell."""
        counts, p, q = against(cells, self.column or "")
        m = len(cells.n_rows)
        if self.distance == "equal":
            # What the cell has too much of is what it has too little of elsewhere.
            excess = np.maximum(p - q[counts.value], 0.0)
            return np.bincount(counts.cell, excess, m).astype(np.float64)
        if len(q) < 2 or not len(p):
            return np.zeros(m)
        return _ordered(counts, cells.n_rows, q) / (len(q) - 1)


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

"""MDAV: cells of k rows around the rows that are farthest from the centroid."""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from anonlib.arrays import Ints
from anonlib.kernels import Kernel
from anonlib.kernels.merge import (
    join_nearest,
    list_points,
    make_writable,
    merge_failing,
    require_feasible,
)
from anonlib.table.block import Block


class Mdav(Kernel):
    """Maximum distance to average vector: low loss, fast up to 100,000s of rows in a block.

    k is the block's `min_rows`.
    While at least 2k rows remain (generic: 3k), two cells are made. P is the row farthest from the
    centroid of the remaining rows, Q the row farthest from P. P and its k - 1 nearest rows become
    a cell. Then Q and its k - 1 nearest remaining rows become a cell. With ties, Q may already be
    in P's cell; then Q is the remaining row farthest from P. The variants treat the last rows
    differently:

    - figure4: If k or more rows remain, P and its k - 1 nearest rows become one more cell. Each
      leftover row joins the cell with the nearest centroid. Centroids are computed before any of
      these rows joins. The figure itself puts k to 2k - 1 remaining rows into one cell. But the
      published values come from the ending described here (Tarragona, k = 10: 33.1924, not
      33.1929).
    - generic: 2k to 3k - 1 remaining rows become P's cell and one cell of the others; k to 2k - 1
      rows become one cell.

    The squared distance of two rows is a sum in column order: (x - y)**2 for each numeric column,
    then 1 for each nominal column in which they differ. So a nominal column acts as the indicators
    of its categories, scaled by the square root of 1/2. The squared distance to a centroid adds
    (x - mean)**2 for each numeric column, then (1 + S) / 2 - s for each nominal one: s is the share
    of the row's category, S the sum of the squares of all shares. All sums are float64, rounded
    after every operation. Of equally near or far rows, the first one is taken.

    Cells that fail the models are merged with near ones (`merge_failing`).
    """

    type: ClassVar[str] = "mdav"
    cost: ClassVar[str] = "O(n^2 d / k) at worst; far less for few columns"
    reference: ClassVar[str] = (
        "J. Domingo-Ferrer, V. Torra, Ordinal, continuous and heterogeneous k-anonymity through "
        "microaggregation, Data Mining and Knowledge Discovery 11(2), 2005; as in A. "
        "Rodriguez-Hoyos et al., LDA-MDAV, figure 4"
    )
    variant: Literal["figure4", "generic"] = Field(
        "figure4", description="how few remaining rows may be before the last cells are made"
    )

    def cells(self, block: Block) -> Ints:
        if block.n == 0:
            return np.zeros(0, np.int64)
        require_feasible(block)
        from anonlib.kernels._mdav_core import make_mdav_cells

        k, tuples = block.min_rows, block.tuples
        pairs, one = (2 * k, k) if self.variant == "figure4" else (3 * k, 2 * k)
        cell_id = make_mdav_cells(
            list_points(block),
            block.numeric.shape[1],
            tuples.first,
            tuples.count,
            make_writable(block.n_categories),
            k,
            pairs,
            one,
        )
        return merge_failing(block, join_nearest(block, cell_id))

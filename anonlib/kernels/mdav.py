"""MDAV: cells of k rows around the rows that are farthest out."""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from anonlib.arrays import Ints
from anonlib.kernels import Kernel
from anonlib.kernels.merge import (
    join_nearest,
    merge_failing,
    points,
    require_feasible,
    writable_contiguous,
)
from anonlib.table.block import Block


class Mdav(Kernel):
    """Maximum distance to average vector; k is the block's `min_rows`.

    While 2k rows remain (generic: 3k): P is the row farthest from the centroid of the remaining
    rows, Q the row farthest from P. P and its k - 1 nearest rows are a cell, then Q and its k - 1
    nearest of what is left. (Where Q is in P's cell, which takes ties, Q is the farthest from P of
    the rows that are not.) Then:

    - figure4: k or more that remain give one more cell, P's; each row left over joins the cell
      whose centroid, before any of them joins, is nearest. The figure itself makes one cell of k
      to 2k - 1 remaining rows; this tail is the one that gives the published values (Tarragona,
      k = 10: 33.1924, not 33.1929).
    - generic: from 2k to 3k - 1 rows give P's cell and one of the rest; k to 2k - 1, one cell.

    Squared distance of two rows: the sum, in column order, of (x - y)**2 over the numeric columns,
    then of 1 for each nominal column in which they differ: a nominal column is the indicators of
    its categories, scaled by the square root of 1/2. To a centroid: of (x - mean)**2, then, for a
    nominal column in which the row's category has share s and all shares have squares that sum to
    S, of (1 + S) / 2 - s. All of it in float64, rounded after every operation. Of rows equally
    near or far the first one counts.

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
        from anonlib.kernels._mdav_core import mdav

        k, tuples = block.min_rows, block.tuples
        pairs, one = (2 * k, k) if self.variant == "figure4" else (3 * k, 2 * k)
        cell_id = mdav(
            points(block),
            block.numeric.shape[1],
            tuples.first,
            tuples.count,
            writable_contiguous(block.n_categories),
            k,
            pairs,
            one,
        )
        return merge_failing(block, join_nearest(block, cell_id))

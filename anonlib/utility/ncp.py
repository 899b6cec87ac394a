"""Normalized certainty penalty of the cells."""

from typing import ClassVar

import numpy as np

from anonlib.block import Block, Floats, Ints
from anonlib.utility import Metric


class Ncp(Metric):
    """Mean over rows and quasi-identifier columns of the cell's extent over the whole extent.

    The extent of a continuous or ordinal column is its range, of a nominal column its number of
    distinct categories minus one. Reference: J. Xu et al., Utility-based anonymization using
    local recoding, KDD 2006. Whether a value is missing counts as a column of its own, where the
    column is not nominal. State: n, the sum of penalties, the number of columns that vary
    times n. Cost O(n log n) per column.
    """

    type: ClassVar[str] = "ncp"
    undefined: ClassVar[str] = "no quasi-identifier varies"

    def update(self, block: Block, cell_id: Ints, n_cells: int) -> Floats:
        count = np.bincount(cell_id, minlength=n_cells)
        varying = n_varying(block)
        penalty = float(penalties(block, cell_id, n_cells) @ count) * varying
        return np.array([block.n, penalty, varying * block.n], np.float64)

    def value(self, state: Floats) -> float | None:
        return float(state[1] / state[2]) if state[2] else None


def penalties(block: Block, cell_id: Ints, n_cells: int) -> Floats:
    """float64[n_cells]: the mean over the columns of each cell's extent over the whole extent."""
    order = np.argsort(cell_id, kind="stable")
    count = np.bincount(cell_id, minlength=n_cells)
    start = np.cumsum(count) - count
    penalty = np.zeros(n_cells)
    for j, width in enumerate(block.widths):
        if width > 0:
            column = block.numeric[order, j]
            extent = np.maximum.reduceat(column, start) - np.minimum.reduceat(column, start)
            penalty += extent / width
    for j, size in enumerate(block.n_categories):
        if size > 1:
            pairs = np.unique(cell_id * int(size) + block.nominal[:, j])
            distinct = np.bincount(pairs // int(size), minlength=n_cells)
            penalty += (distinct - 1) / (int(size) - 1)
    return penalty / max(1, n_varying(block))


def n_varying(block: Block) -> int:
    """The columns that vary in the whole table."""
    return int((block.widths > 0).sum() + (block.n_categories > 1).sum())

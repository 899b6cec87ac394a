"""Normalized certainty penalty of released values."""

from typing import ClassVar

import numpy as np

from anonlib.arrays import Floats, Ints
from anonlib.loss import Metric, ReleasedBlock
from anonlib.table.block import Block


class Ncp(Metric):
    """Extent of a row's released value / extent of the whole column, averaged over rows and
    quasi-identifiers.

    - Continuous and ordinal columns: the range of the cell's values, and of the released interval
      if it is wider, as with `round_to`, `bottom` and `top` (ends there are open), up to the
      column's own range. If the column has missing values, their 0/1 flag is one more column.
    - Nominal columns with a hierarchy, or above level 0: the number of leaves under the released
      node minus 1 (`nllm` is the mean of such columns alone). Others: the number of the cell's
      categories minus 1, and all of them if they are released as `*`.
    - A single value (`centroid`, `median`, `mode`) stands for all values of its cell, though it
      does not tell how far they are apart: its extent is theirs. So is that of a set of ranks.
    - Nothing (`suppress`) covers the whole column, and so does null for a cell of which only some
      values are missing.

    Columns that do not vary don't count. Suppressed rows have lost all. Kernels with this loss go
    by the values of cells alone. Cost O(n log n) per column.

    Reference: J. Xu et al., Utility-based anonymization using local recoding, KDD 2006.

    State: n, the sum of penalties, n times the columns that vary.
    """

    type: ClassVar[str] = "ncp"
    meaning: ClassVar[str] = (
        "share of its whole range that a released value stands for; 0 to 1, more is worse"
    )
    undefined: ClassVar[str] = "no quasi-identifier varies"

    def update(self, released: ReleasedBlock) -> Floats:
        varying = count_varying(released.block)
        penalty = float(penalize(released) @ released.rows) + released.n_suppressed
        return np.array([released.n, penalty * varying, varying * released.n], np.float64)

    def add_lost(self, state: Floats, n_rows: int) -> Floats:
        n, penalty, whole = state
        more = whole / n * n_rows
        return np.array([n + n_rows, penalty + more, whole + more], np.float64)

    def value(self, state: Floats) -> float | None:
        return float(state[1] / state[2]) if state[2] else None


def penalize(released: ReleasedBlock) -> Floats:
    """float64[m]. The penalty of each cell: extent of its released value / the whole extent, mean
    over columns."""
    block, order, start = released.block, released.order, released.start
    penalty, least = np.zeros(released.m), released.least_extents
    for j, width in enumerate(block.widths):
        if width > 0:
            column = released.columns[j][order]
            extent = np.maximum.reduceat(column, start) - np.minimum.reduceat(column, start)
            penalty += np.maximum(extent / width, least.get(j, 0.0))
    for j, size in enumerate(block.n_categories):
        if size > 1:
            at_least = least.get(len(block.widths) + j, 0.0)
            penalty += np.maximum(_nominal(released, j), at_least)
    return penalty / max(1, count_varying(block))


def _nominal(released: ReleasedBlock, j: int) -> Floats:
    block = released.block
    raised = released.levels is not None and released.levels[j] > 0
    if raised or (block.trees and block.trees[j] is not None):
        return released.trees[j].loss[released.nodes[j]]
    kept, size = released.order, int(block.n_categories[j])
    pairs: Ints = np.sort(released.id[kept] * size + block.nominal[kept, j])
    new = np.diff(pairs, prepend=-1) > 0  # faster than np.unique, which hashes
    return (np.bincount(pairs[new] // size, minlength=released.m) - 1) / (size - 1)


def count_varying(block: Block) -> int:
    """The number of columns that vary in the whole table."""
    return int((block.widths > 0).sum() + (block.n_categories > 1).sum())

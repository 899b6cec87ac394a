"""Normalized certainty penalty of the cells."""

from typing import ClassVar

import numpy as np

from anonlib.arrays import Floats, Ints
from anonlib.loss import Metric, ReleasedBlock
from anonlib.table.block import Block


class Ncp(Metric):
    """Extent of a row's cell / extent of the whole table, averaged over rows and quasi-identifiers.

    The extent of a continuous or ordinal column is its range. If it has missing values, their 0/1
    flag is one more column. The extent of a nominal column with a hierarchy is the number of leaves
    under the released node minus 1 (`nllm` is the mean of such columns alone). Without a hierarchy
    it is the number of distinct categories minus 1; if the release has levels, the column gets a
    flat hierarchy. Columns that do not vary don't count. Suppressed rows have lost all.
    Cost O(n log n) per column.

    Reference: J. Xu et al., Utility-based anonymization using local recoding, KDD 2006.

    State: n, the sum of penalties, n times the columns that vary.
    """

    type: ClassVar[str] = "ncp"
    meaning: ClassVar[str] = (
        "share of its whole range that a released value covers; 0 to 1, more is worse"
    )
    undefined: ClassVar[str] = "no quasi-identifier varies"

    def update(self, released: ReleasedBlock) -> Floats:
        varying = n_varying(released.block)
        penalty = float(penalties(released) @ released.rows) + released.n_suppressed
        return np.array([released.n, penalty * varying, varying * released.n], np.float64)

    def value(self, state: Floats) -> float | None:
        return float(state[1] / state[2]) if state[2] else None


def penalties(released: ReleasedBlock) -> Floats:
    """float64[m]. The penalty of each cell: its extent / the whole extent, mean over columns."""
    block, order, start = released.block, released.order, released.start
    penalty = np.zeros(released.m)
    for j, width in enumerate(block.widths):
        if width > 0:
            column = block.numeric[order, j]
            extent = np.maximum.reduceat(column, start) - np.minimum.reduceat(column, start)
            penalty += extent / width
    for j, size in enumerate(block.n_categories):
        if size > 1:
            penalty += _nominal(released, j)
    return penalty / max(1, n_varying(block))


def _nominal(released: ReleasedBlock, j: int) -> Floats:
    block = released.block
    if released.levels is not None or (block.trees and block.trees[j] is not None):
        return released.trees[j].loss[released.nodes[j]]
    kept, size = released.order, int(block.n_categories[j])
    pairs: Ints = np.unique(released.id[kept] * size + block.nominal[kept, j])
    return (np.bincount(pairs // size, minlength=released.m) - 1) / (size - 1)


def n_varying(block: Block) -> int:
    """The number of columns that vary in the whole table."""
    return int((block.widths > 0).sum() + (block.n_categories > 1).sum())

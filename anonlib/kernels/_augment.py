"""Appends scaled columns to a block, so that kernels with one fixed distance use another."""

from dataclasses import replace

import numpy as np

from anonlib.arrays import Floats, snap
from anonlib.table.block import Block


def with_columns(block: Block, columns: Floats) -> Block:
    """The block with further numeric columns, float64[n, r], rounded to GRID."""
    numeric = np.concatenate([block.numeric, snap(columns)], axis=1)
    widths = np.ptp(numeric, axis=0) if block.n else np.zeros(numeric.shape[1])
    return replace(block, numeric=numeric, widths=widths, ranks=())

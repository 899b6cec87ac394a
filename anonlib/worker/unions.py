"""Cells that are released with the same values: one class to whoever reads the release.

If they share persons, each may hold a model of counts, and their union may not
(`anonlib.privacy.PrivacyModel`). So their union is judged, and cells are merged until all hold.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from anonlib.arrays import Ints
from anonlib.recode import Cells
from anonlib.table.block import Block
from anonlib.table.encoding import one_zero
from anonlib.table.row_numbers import number_distinct, number_tuples


def merge_failing_unions(
    blocks: Sequence[Block], start: Ints, cells: Cells, of_cells: Mapping[str, pa.Array]
) -> Cells:
    """Merges cells of a block that have the same released values, where their union fails a model:
    into one cell, and this with others of the block until it holds. What is released of the new
    cells may be equal again. Returns `cells` itself if no union fails.

    Args:
        blocks: The b blocks, with the models that they must hold.
        start: int64[b]. The first row of each block.
        cells: The cells of all blocks.
        of_cells: By id: the released values of each cell.
    """
    from anonlib.kernels.merge import merge_failing

    assert cells.block is not None
    tuples = number_tuples([cells.block, *map(_number_released, of_cells.values())], cells.m)
    size = np.bincount(tuples)
    several = np.unique(cells.block[size[tuples] > 1])
    merged = cells.id
    bounds = [*start.tolist(), len(cells.id)]
    for i in several.tolist():
        own = cells.id[bounds[i] : bounds[i + 1]]
        union, place = np.unique(tuples[own], return_inverse=True)
        fails = ~blocks[i].holds(place, len(union)) & (size[union] > 1)
        if fails.any():
            merged = merged.copy() if merged is cells.id else merged
            united = np.unique(np.where(fails[place], cells.m + place, own), return_inverse=True)[1]
            merged[bounds[i] : bounds[i + 1]] = merge_failing(blocks[i], united)
    if merged is cells.id:
        return cells
    id = np.empty_like(merged)
    n_cells, block_of_cell = 0, []
    for i, (first, end) in enumerate(pairwise(bounds)):
        numbers, place = np.unique(merged[first:end], return_inverse=True)
        id[first:end] = place + n_cells
        n_cells += len(numbers)
        block_of_cell += [i] * len(numbers)
    return Cells(id, n_cells, block=np.array(block_of_cell, np.int64))


def _number_released(values: pa.Array) -> Ints:
    """int64[m]. Equal values have the same number, in the order in which they come first."""
    if pa.types.is_nested(values.type):
        values = pa.array(number_distinct(values))
    return number_distinct(one_zero(values))

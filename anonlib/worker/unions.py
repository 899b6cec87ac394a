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
    tuples = _number_tuples([cells.block.astype(np.int64), *map(_number_values, of_cells.values())])
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


def _number_values(values: pa.Array) -> Ints:
    """int64[m]. Equal values have the same number."""
    if pa.types.is_nested(values.type):
        values = pa.array([repr(value) for value in values.to_pylist()], pa.string())
    found = one_zero(values).dictionary_encode(null_encoding="encode").indices
    numbers: Ints = found.to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers


def _number_tuples(columns: Sequence[Ints]) -> Ints:
    """int64[m]. Equal tuples of numbers have the same number, from 0."""
    number = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        pair = number * (int(column.max(initial=0)) + 1) + column
        number = np.unique(pair, return_inverse=True)[1].astype(np.int64)
    return number

"""What `refine` with `loss: ncp` is compared with: the penalty of cells, and all steps of two."""

from collections.abc import Iterator
from itertools import product

import numpy as np

from anonlib.table.block import Block
from tests.oracles import holds
from tests.oracles_refine import Cell


def penalty_of(block: Block, cell: Cell) -> float:
    """The sum over the columns that vary, by the definitions."""
    total = 0.0
    for j, width in enumerate(block.widths):
        if width > 0:
            total += float(np.ptp(block.numeric[cell, j]) / width)
    for j, size in enumerate(block.n_categories):
        codes = block.nominal[cell, j]
        tree = block.trees[j] if block.trees else None
        if size < 2:
            continue
        if tree is None:
            total += (len(set(codes.tolist())) - 1) / (int(size) - 1)
        else:
            above = (tree.low <= codes.min()) & (tree.high > codes.max())
            total += float(tree.loss[np.flatnonzero(above)[0]])  # nodes come before their parents
    return total


def penalty_loss(block: Block, cells: list[Cell]) -> float:
    """Penalties times rows."""
    return sum(len(cell) * penalty_of(block, cell) for cell in cells)


def copies(block: Block, cell: Cell) -> list[Cell]:
    """The rows of a cell, by tuple."""
    groups: dict[int, Cell] = {}
    for row in cell:
        groups.setdefault(int(block.tuples.id[row]), []).append(row)
    return list(groups.values())


def group_steps(block: Block, one: Cell, other: Cell) -> Iterator[tuple[Cell, Cell]]:
    """Every transfer and swap of all copies of rows, or as many as the cells can spare, after which
    both hold the models."""
    k = block.min_rows
    for x, y in product([[], *copies(block, one)], [[], *copies(block, other)]):
        if x and y and block.tuples.id[x[0]] == block.tuples.id[y[0]]:
            continue
        out = x[: max(len(one) + len(y) - k, 0)]
        back = y[: max(len(other) + len(out) - k, 0)]
        if bool(x) != bool(out) or bool(y) != bool(back) or not (x or y):
            continue
        after = (
            [row for row in one if row not in out] + back,
            [row for row in other if row not in back] + out,
        )
        if all(holds(block, cell) for cell in after):
            yield after

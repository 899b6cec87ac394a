"""What `univariate` and `refine` are compared with: exact losses, and every way there is."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, product

import numpy as np

from anonlib.arrays import GRID
from anonlib.table.block import Block
from tests.oracles import holds

Cell = list[int]


def loss(block: Block, cells: list[Cell]) -> Fraction:
    """The sum of squared distances from the centroids, exactly."""
    return sum((loss_of(block, cell) for cell in cells), Fraction(0))


def loss_of(block: Block, cell: Cell) -> Fraction:
    """Half the mean, over its rows, of the squared distances to all others."""
    unlike = 0
    for column in block.nominal.T:
        counts = np.bincount(column[cell]).tolist()
        unlike += len(cell) ** 2 - sum(count**2 for count in counts)
    squares = 0
    for column in block.numeric.T:
        values = [int(value) for value in column[cell] / GRID]
        squares += 2 * (len(cell) * sum(v * v for v in values) - sum(values) ** 2)
    return (squares * Fraction(GRID) ** 2 + unlike) / (2 * len(cell))


def cells_of(ids: np.ndarray) -> list[Cell]:
    return [np.flatnonzero(ids == c).tolist() for c in range(ids.max(initial=-1) + 1)]


def runs(order: Cell, k: int) -> Iterator[list[Cell]]:
    """Every way to cut an order into runs of k rows or more."""
    if len(order) >= k:
        yield [order]
    for size in range(k, len(order) - k + 1):
        for others in runs(order[size:], k):
            yield [order[:size], *others]


def partitions(rows: Cell, k: int) -> Iterator[list[Cell]]:
    """Every way to put rows into cells of k or more."""
    if not rows:
        yield []
        return
    first, rest = rows[0], rows[1:]
    for size in range(k - 1, len(rest) + 1):
        for others in combinations(rest, size):
            left = [row for row in rest if row not in others]
            for cells in partitions(left, k):
                yield [[first, *others], *cells]


def steps(block: Block, one: Cell, other: Cell) -> Iterator[tuple[Cell, Cell]]:
    """Every transfer and swap between two cells after which both hold the models."""
    for x, y in product([None, *one], [None, *other]):
        after = (
            [row for row in one if row != x] + [y] * (y is not None),
            [row for row in other if row != y] + [x] * (x is not None),
        )
        if (x, y) != (None, None) and all(cell and holds(block, cell) for cell in after):
            yield after


def gain(block: Block, before: tuple[Cell, Cell], after: tuple[Cell, Cell]) -> Fraction:
    return loss(block, list(before)) - loss(block, list(after))


def negligible(block: Block, one: Cell, other: Cell) -> float:
    """What a step between two cells may gain and still not be taken: 1e-9 of the squared distances
    it depends on, and what rounding may do to them."""
    far = float(loss_of(block, one + other))
    size = float(np.abs(block.numeric).max(initial=0.0)) * block.numeric.shape[1]
    return 4e-9 * far + 2.0**-46 * size * far**0.5

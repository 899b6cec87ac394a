"""Splits a block that is too large, inside its task."""

import numpy as np

from anonlib.arrays import Bools, Ints
from anonlib.table.block import Block


def bisect(block: Block, max_rows: int) -> list[Ints]:
    """Halves a block until its parts have at most `max_rows` rows.

    Every part holds the models. A part is cut at the boundary nearest to its median, along the
    column of largest spread where both halves hold the models. If no column allows that (for
    example, all rows agree), the part is halved in canonical order, the order of the rows' hash. If
    this would break a model, too, the part stays whole, even if it is too large.
    Cost O(n (p + q) log(n / max_rows)).

    Returns:
        The rows of each part, ascending.
    """
    leaves: list[Ints] = []
    todo = [np.arange(block.n)]
    while todo:
        rows = todo.pop()
        halves = _halves(block, rows) if len(rows) > max_rows else None
        if halves is None:
            leaves.append(rows)
        else:
            todo += [halves[1], halves[0]]
    return leaves


def _halves(block: Block, rows: Ints) -> tuple[Ints, Ints] | None:
    columns = [block.numeric[rows, j] for j in range(block.numeric.shape[1])]
    columns += [block.nominal[rows, j].astype(np.float64) for j in range(block.nominal.shape[1])]
    spread = np.array([column.std() for column in columns])
    for j in np.argsort(-spread, kind="stable"):
        if spread[j] > 0:
            values, counts = np.unique(columns[j], return_counts=True)
            below = np.cumsum(counts)[:-1]
            cut = int(np.argmin(np.abs(2 * below - len(rows))))
            low = columns[j] <= values[cut]
            if _both_hold(block, rows, low):
                return rows[low], rows[~low]
    low = np.arange(len(rows)) < len(rows) // 2
    return (rows[low], rows[~low]) if _both_hold(block, rows, low) else None


def _both_hold(block: Block, rows: Ints, low: Bools) -> bool:
    return bool(block.holds((~low).astype(np.int64), 2, rows).all())

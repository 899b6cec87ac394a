"""What kernels are compared with: the same algorithms, slow and obvious."""

from typing import Any

import numpy as np

from anonlib.arrays import Ints
from anonlib.table.block import Block


def numbered(groups: list[list[int]], n: int) -> Ints:
    """Cells as ids 0..m-1 by their first rows; -1 for rows in none."""
    ids = np.full(n, -1)
    for number, group in enumerate(sorted(groups, key=min)):
        ids[group] = number
    return ids


def to_row(block: Block, rows: Any, row: int) -> Any:
    """The squared distances of some rows to one."""
    total = np.zeros(len(rows))
    for j in range(block.numeric.shape[1]):
        total += (block.numeric[rows, j] - block.numeric[row, j]) ** 2
    for j in range(block.nominal.shape[1]):
        total += block.nominal[rows, j] != block.nominal[row, j]
    return total


def to_centroid(block: Block, rows: Any, of: Any) -> Any:
    """The squared distances of some rows to the centroid of others."""
    n = len(of)
    total = np.zeros(len(rows))
    for j in range(block.numeric.shape[1]):
        total += (block.numeric[rows, j] - block.numeric[of, j].sum() / n) ** 2
    for j in range(block.nominal.shape[1]):
        count = np.bincount(block.nominal[of, j], minlength=int(block.n_categories[j]))
        total += 0.5 * (1.0 + (count**2).sum() / (n * n)) - (count / n)[block.nominal[rows, j]]
    return np.maximum(total, 0.0)


def gathered(block: Block, rows: Any) -> tuple[int, list[Any], list[Any]]:
    """What distances of a cell's centroid need: its size, means, and counts of categories with the
    sums of their squared shares."""
    n = len(rows)
    numeric, nominal = block.numeric[rows], block.nominal[rows]
    means = [numeric[:, j].sum() / n for j in range(numeric.shape[1])]
    counts = [
        np.bincount(nominal[:, j], minlength=int(block.n_categories[j]))
        for j in range(nominal.shape[1])
    ]
    return n, means, [(count, (count**2).sum() / (n * n)) for count in counts]


def between(block: Block, one: Any, other: Any, of: Any = gathered) -> float:
    """The squared distance of the centroids of two cells."""
    (m, means, counts), (n, other_means, other_counts) = of(block, one), of(block, other)
    total = 0.0
    for a, b in zip(means, other_means, strict=True):
        total += (a - b) ** 2
    for (c, of_c), (d, of_d) in zip(counts, other_counts, strict=True):
        total += max(0.5 * (of_c + of_d) - (c * d).sum() / (m * n), 0.0)
    return float(total)


def growth(block: Block, one: Any, other: Any, of: Any = gathered) -> float:
    """How much merging two cells adds to the sum of squared distances from the centroids."""
    return len(one) * len(other) / (len(one) + len(other)) * between(block, one, other, of)


def remembered() -> Any:
    """`gathered`, once for each cell."""
    found: dict[tuple[int, ...], Any] = {}

    def of(block: Block, rows: Any) -> Any:
        key = tuple(rows)
        if key not in found:
            found[key] = gathered(block, rows)
        return found[key]

    return of


def mdav_plain(block: Block, variant: str) -> list[list[int]]:
    """The cells of MDAV before those that fail are merged."""
    k = block.min_rows
    left = list(range(block.n))
    cells: list[list[int]] = []

    def farthest(distances: Any) -> int:
        return left[int(np.argmax(distances))]

    def take(center: int) -> None:
        near = np.argsort(to_row(block, left, center), kind="stable")[:k]
        cell = [left[i] for i in near]
        assert center in cell
        cells.append(cell)
        left[:] = [row for row in left if row not in cell]

    while len(left) >= (2 * k if variant == "figure4" else 3 * k):
        p = farthest(to_centroid(block, left, left))
        q = farthest(to_row(block, left, p))
        take(p)
        if q not in left:
            q = farthest(to_row(block, left, p))
        take(q)
    while len(left) >= (k if variant == "figure4" else 2 * k):
        take(farthest(to_centroid(block, left, left)))
    return with_tail(block, cells, left, k)


def with_tail(block: Block, cells: list[list[int]], left: list[int], k: int) -> list[list[int]]:
    """The cells with the rows that are left: k are one more cell, fewer join the nearest."""
    if len(left) >= k:
        return [*cells, left]
    joined, of = [list(cell) for cell in cells], remembered()
    for row in left:
        nearest = min(
            range(len(cells)), key=lambda i: (between(block, [row], cells[i], of), len(cells[i]))
        )
        joined[nearest].append(row)
    return joined


def merge_plain(block: Block, cells: list[list[int]], near: Any = growth) -> list[list[int]]:
    """Cells that fail the models, merged where it adds least to the sum of squares; or, with
    `between`, where the centroid is nearest, of several where most protected values are."""
    cells, of = sorted((list(cell) for cell in cells), key=min), remembered()
    while failing := [cell for cell in cells if not holds(block, cell)]:
        values = {tuple(cell): n_values(block, cell) if near is between else 0 for cell in cells}
        merged: list[list[int]] = []
        for cell in sorted(failing, key=lambda cell: (len(cell), min(cell))):
            if any(set(cell) <= set(other) for other in merged):
                continue
            others = [other for other in cells if other is not cell]
            nearest = min(
                others,
                key=lambda other: (near(block, cell, other, of), -values[tuple(other)], len(other)),
            )
            cells = [other for other in cells if other is not cell and other is not nearest]
            cells.append(cell + nearest)
            cells.sort(key=min)
            merged.append(cell + nearest)
            # Not counted anew in this round.
            values[tuple(cell + nearest)] = max(values[tuple(cell)], values[tuple(nearest)])
    return cells


def n_values(block: Block, rows: Any) -> int:
    """The distinct present values of all protected columns."""
    return sum(len(set(column[rows]) - {-1}) for column in block.sensitive.T)


def holds(block: Block, rows: Any) -> bool:
    rows = np.asarray(rows)
    return bool(block.holds(np.zeros(len(rows), np.int64), 1, rows)[0])


def mondrian_plain(block: Block, mode: str) -> list[list[int]]:
    """The cells of Mondrian, by recursion."""
    columns = np.concatenate([block.numeric, block.nominal], axis=1)
    scale = [*block.widths, *(block.n_categories - 1)]

    def cut(rows: Any) -> list[list[int]]:
        widths = [np.ptp(columns[rows, j]) / w if w > 0 else -1.0 for j, w in enumerate(scale)]
        for j in sorted(range(len(scale)), key=lambda j: (-widths[j], j)):
            if widths[j] < 0 or (mode == "strict" and widths[j] == 0):
                break
            left = strict_left(columns[rows, j]) if mode == "strict" else half(columns[rows, j])
            if holds(block, rows[left]) and holds(block, rows[~left]):
                return cut(rows[left]) + cut(rows[~left])
        return [rows.tolist()]

    return cut(np.arange(block.n))


def strict_left(values: Any) -> Any:
    """Which rows are left of the boundary between distinct values that is nearest to the middle."""
    bounds = np.unique(values)[1:]
    off = [abs(2 * (values < bound).sum() - len(values)) for bound in bounds]
    return values < bounds[int(np.argmin(off))]


def half(values: Any) -> Any:
    """Which rows are in the first half by value, then by row."""
    left = np.zeros(len(values), np.bool_)
    left[np.argsort(values, kind="stable")[: len(values) // 2]] = True
    return left

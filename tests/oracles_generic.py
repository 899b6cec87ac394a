"""What MDAV-generic and Mondrian's information gain are compared with, slow and obvious."""

from typing import Any

import numpy as np

from anonlib.hierarchy.tree import Tree
from anonlib.table.block import Block
from tests.oracles import half, holds, strict_left


class Records:
    """The rows of a block as MDAV-generic sees them."""

    def __init__(self, block: Block, convex: bool, hierarchies: bool):
        self.convex = convex
        ranks = block.ranks or (None,) * block.numeric.shape[1]
        x = block.numeric.T
        self.continuous = [x[j] for j, each in enumerate(ranks) if each is None]
        self.ordinal = [
            (np.rint((x[j] - each.low) / each.step), each.n)
            for j, each in enumerate(ranks)
            if each is not None
        ]
        trees = block.trees if hierarchies and block.trees else (None,) * block.nominal.shape[1]
        self.nominal = list(zip(block.nominal.T, trees, strict=True))

    def distances(self, rows: Any, record: Any) -> Any:
        """The squared distances of some rows to a record."""
        values = iter(record)
        total = np.zeros(len(rows))
        for column in self.continuous:
            total += (column[rows] - next(values)) ** 2
        for ranks, n in self.ordinal:
            total += ((ranks[rows] - next(values)) / n) ** 2
        for codes, tree in self.nominal:
            other = next(values)
            total += [lost(tree, int(code), int(other)) ** 2 for code in codes[rows]]
        return total

    def record(self, row: int) -> list[float]:
        columns = [*self.continuous, *(c for c, _ in self.ordinal), *(c for c, _ in self.nominal)]
        return [column[row] for column in columns]

    def average(self, rows: Any) -> list[float]:
        means = [column[rows].sum() / len(rows) for column in self.continuous]
        medians = [self.median(ranks[rows], n) for ranks, n in self.ordinal]
        modes = [int(np.argmax(np.bincount(codes[rows]))) for codes, _ in self.nominal]
        return [*means, *medians, *modes]

    def median(self, ranks: Any, n: int) -> int:
        count = [int((ranks == r).sum()) for r in range(n)]
        if self.convex:
            count = [min(max(count[: r + 1]), max(count[r:])) for r in range(n)]
        every = [r for r in range(n) for _ in range(count[r])]
        return every[(len(every) - 1) // 2]


def lost(tree: Tree | None, code: int, other: int) -> float:
    """The distance of two categories."""
    if code == other:
        return 0.0
    if tree is None:
        return 1.0
    above = [code]
    while above[-1] != tree.parent[above[-1]]:
        above.append(int(tree.parent[above[-1]]))
    node = other
    while node not in above:
        node = int(tree.parent[node])
    return float(tree.loss[node])


def mdav_generic_plain(block: Block, ordinal: str, nominal: str) -> list[list[int]]:
    """The cells of MDAV-generic before those that fail are merged."""
    k = block.min_rows
    records = Records(block, ordinal == "convex_median", nominal == "hierarchy")
    left = list(range(block.n))
    cells: list[list[int]] = []

    def farthest(record: Any) -> int:
        return left[int(np.argmax(records.distances(left, record)))]

    def take(center: int) -> None:
        near = np.argsort(records.distances(left, records.record(center)), kind="stable")[:k]
        cell = [left[i] for i in near]
        assert center in cell
        cells.append(cell)
        left[:] = [row for row in left if row not in cell]

    while len(left) >= 3 * k:
        p = farthest(records.average(left))
        q = farthest(records.record(p))
        take(p)
        if q not in left:
            q = farthest(records.record(p))
        take(q)
    if len(left) >= 2 * k:
        take(farthest(records.average(left)))
    return [*cells, left]


def mondrian_gain_plain(block: Block, mode: str) -> list[list[int]]:
    """The cells of Mondrian by information gain, by recursion."""
    columns = np.concatenate([block.numeric, block.nominal], axis=1)
    scale = [*block.widths, *(block.n_categories - 1)]
    dimensions = [j for j, width in enumerate(scale) if width > 0]

    def cut(rows: Any) -> list[list[int]]:
        if len(rows) >= 2 * block.min_rows:
            for left in [*by_gain(rows), *by_width(rows)]:
                if holds(block, rows[left]) and holds(block, rows[~left]):
                    return cut(rows[left]) + cut(rows[~left])
        return [rows.tolist()]

    def by_gain(rows: Any) -> list[Any]:
        found = [best_cut(block, rows, columns[rows, j]) for j in dimensions]
        order = sorted(range(len(found)), key=lambda i: (-found[i][0], i))
        return [found[i][1] for i in order if found[i][0] > 0]

    def by_width(rows: Any) -> list[Any]:
        widths = {j: np.ptp(columns[rows, j]) / scale[j] for j in dimensions}
        order = sorted(dimensions, key=lambda j: (-widths[j], j))
        if mode == "relaxed":
            return [half(columns[rows, j]) for j in order]
        return [strict_left(columns[rows, j]) for j in order if widths[j] > 0]

    return cut(np.arange(block.n))


def best_cut(block: Block, rows: Any, values: Any) -> tuple[float, Any]:
    """The largest gain of a boundary, the lowest of several, and which rows are left of it."""
    best, result = 0.0, None
    least = block.min_rows
    for bound in np.unique(values)[1:]:
        left = values < bound
        if min(left.sum(), (~left).sum()) >= least:
            gain = gain_of(block, rows[left], rows[~left])
            if gain > best:
                best, result = gain, left
    return best, result


def gain_of(block: Block, left: Any, right: Any) -> float:
    """By how much a cut lowers rows times entropy, or the sum of squared deviations."""
    assert block.target is not None
    y, n = block.target, block.n_classes
    if n == 0:
        m, r = float(len(left)), float(len(right))
        gap = r * y[left].sum() - m * y[right].sum()
        return float(gap * gap / (m * r * (m + r)))
    both = np.concatenate([left, right])
    gain = content(y[both], n) - content(y[left], n) - content(y[right], n)
    return float(gain) if 2 * gain > 3 * (n + 1) else 0.0


def content(labels: Any, n_classes: int) -> int:
    """Rows times entropy, from c log2(c) in units of 2^-10."""
    counts = np.array([len(labels), *np.bincount(labels.astype(int), minlength=n_classes)])
    each = np.rint(counts * np.log2(np.maximum(counts, 1)) * 1024).astype(int)
    return int(each[0] - each[1:].sum())

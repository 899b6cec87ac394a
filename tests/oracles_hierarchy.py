"""Greedy k-anonymization and Mondrian along hierarchies, slow and obvious."""

import math
from typing import Any

import numpy as np

from anonlib.table.block import Block
from tests.oracles import holds, strict_left


def greedy_plain(block: Block, loss: str) -> list[list[int]]:
    """The cells of greedy, by row order."""
    count = [1] * block.n if block.weight is None else block.weight.tolist()
    columns = [Column(block, j) for j in range(block.numeric.shape[1])]
    columns += [Codes(block, j, loss, count) for j in range(block.nominal.shape[1])]
    tuples: dict[Any, list[int]] = {}
    for row, x in enumerate(np.concatenate([block.numeric, block.nominal], axis=1).tolist()):
        tuples.setdefault(tuple(x), []).append(row)
    classes = [[column.of(rows[0]) for column in columns] for rows in tuples.values()]
    cells = list(tuples.values())
    sizes = [sum(count[row] for row in rows) for rows in cells]
    fine = [holds(block, rows) for rows in cells]

    def lost(values: Any) -> int:
        return sum(c.loss(v) for c, v in zip(columns, values, strict=True))

    def union(i: int, j: int) -> Any:
        pairs = zip(columns, classes[i], classes[j], strict=True)
        return [column.union(a, b) for column, a, b in pairs]

    def cost(i: int, j: int) -> int:
        whole = lost(union(i, j))
        return sum(sizes[c] * (whole - lost(classes[c])) for c in (i, j))

    while not all(fine):
        failing = [i for i in range(len(cells)) if not fine[i]]
        small = min(failing, key=lambda i: (sizes[i], min(cells[i])))
        others = [i for i in range(len(cells)) if i != small]
        other = min(others, key=lambda i: (cost(small, i), sizes[i], min(cells[i])))
        classes[other], cells[other] = union(small, other), cells[small] + cells[other]
        sizes[other] += sizes[small]
        fine[other] = holds(block, cells[other])
        for each in (classes, cells, sizes, fine):
            each.pop(small)  # type: ignore[attr-defined]
    return cells


class Column:
    """A numeric column: classes have ranges."""

    def __init__(self, block: Block, j: int) -> None:
        self.values, self.width = block.numeric[:, j], float(block.widths[j])
        self.low = float(self.values.min())

    def of(self, row: int) -> Any:
        value = float(self.values[row])
        return value, value

    def union(self, one: Any, other: Any) -> Any:
        return min(one[0], other[0]), max(one[1], other[1])

    def loss(self, range_: Any) -> int:
        if self.width == 0:
            return 0
        low, high = (round((end - self.low) / self.width * 2**20) for end in range_)
        return high - low


class Codes:
    """A nominal column: classes have nodes, the sets of codes under them."""

    def __init__(self, block: Block, j: int, loss: str, count: list[int]) -> None:
        self.codes, self.kind, n = block.nominal[:, j].tolist(), loss, int(block.n_categories[j])
        tree = block.trees[j] if block.trees else None
        self.rows = {
            c: sum(w for code, w in zip(self.codes, count, strict=True) if code == c)
            for c in range(n)
        }
        sets = {frozenset([c]): 0.0 for c in range(n)} | (
            {frozenset(range(n)): 1.0} if n > 1 else {}
        )
        if tree is not None:
            runs = zip(tree.low.tolist(), tree.high.tolist(), tree.loss.tolist(), strict=True)
            sets = {}
            for low, high, lost in runs:
                sets.setdefault(frozenset(range(low, high)), lost)
        self.sets = sets

    def of(self, row: int) -> Any:
        return frozenset([self.codes[row]])

    def union(self, one: Any, other: Any) -> Any:
        return min((s for s in self.sets if one | other <= s), key=len)

    def loss(self, node: Any) -> int:
        if self.kind == "nllm":
            share = self.sets[node]
        elif self.kind == "ncp":
            share = len(node) / len(self.rows) if len(node) > 1 else 0.0
        else:
            n = sum(self.rows.values())
            entropy = sum(w * math.log2(n / w) for w in self.rows.values() if w) / n
            under = sum(self.rows[c] for c in node)
            share = math.log2(under) / entropy if entropy else 0.0
        return round(share * 2**20)


def mondrian_along_plain(block: Block) -> list[list[int]]:
    """The cells of Mondrian with nominal columns cut along their hierarchies, by recursion."""
    p, q = block.numeric.shape[1], block.nominal.shape[1]

    def ancestor(j: int, codes: Any) -> int:
        """The first node over all codes, which is the lowest."""
        tree = block.tree(j)
        over = (tree.low <= min(codes)) & (max(codes) < tree.high)
        return int(np.argmax(over))

    def width(rows: Any, j: int) -> float:
        if j < p:
            extent = np.ptp(block.numeric[rows, j])
            return float(extent / block.widths[j]) if block.widths[j] > 0 else 0.0
        codes = block.nominal[rows, j - p]
        return float(block.tree(j - p).loss[ancestor(j - p, codes)]) if np.ptp(codes) else 0.0

    def parts(rows: Any, j: int) -> list[Any]:
        if j < p:
            left = strict_left(block.numeric[rows, j])
            return [rows[left], rows[~left]]
        tree, codes = block.tree(j - p), block.nominal[rows, j - p]
        top = ancestor(j - p, codes)
        children = [c for c in range(len(tree.parent)) if tree.parent[c] == top and c != top]
        under = [rows[(tree.low[c] <= codes) & (codes < tree.high[c])] for c in children]
        return [part for part in under if len(part)]

    def cut(rows: Any) -> list[list[int]]:
        widths = [width(rows, j) for j in range(p + q)]
        for j in sorted(range(p + q), key=lambda j: (-widths[j], j)):
            if widths[j] > 0 and all(holds(block, part) for part in parts(rows, j)):
                return [cell for part in parts(rows, j) for cell in cut(part)]
        return [rows.tolist()]

    return cut(np.arange(block.n))

"""Hierarchies: generalization trees over the values of a column."""

import csv
import io
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonlib.block import Ints, Tree
from anonlib.errors import InputError
from anonlib.folding import fold

#: ARX writes the first of these; the first that gives one root is taken.
SEPARATORS = ";,"


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """A tree whose leaves are the values that a column can have.

    names: of all nodes, as numbered by `tree`: the leaves first, depth first, siblings as the file
    first names them. Missing stands under the root, as one more leaf after all others.
    """

    names: tuple[str, ...]
    tree: Tree

    def places(self, values: pa.Array) -> Ints:
        """int64[n]: which leaf each value is, by its text; -1 for those that are none."""
        leaves = pa.array(self.names[: self.tree.high[-1]], pa.string())
        found = pc.index_in(values.cast(pa.string()), value_set=leaves)
        places: Ints = found.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        return places

    @property
    def heights(self) -> Ints:
        """int64[nodes]: the length of the longest way from each node down to a leaf."""
        return self.tree.heights

    def levels(self, places: Ints) -> Ints:
        """int64[h, n], h the height of the root: row i has the node that each leaf is generalized
        to at height i, the highest one above it (or itself) that is no higher. Two leaves meet
        first in the row of the height of their lowest common ancestor; if that is the root, in
        none."""
        return np.stack([self.tree.raised(places, h) for h in range(self.tree.heights[-1])])

    def folded(self) -> "Hierarchy":
        """The same for a protected column, whose text is compared trimmed and case-folded.

        Raises InputError where values of it are the same then.
        """
        names = tuple(map(fold, self.names))
        c = int(self.tree.high[-1])
        if same := c - len(set(names[:c])):
            text = f"{same} values differ from others in case or white space only"
            raise InputError(f"{text}, which sensitive columns ignore; remove them")
        return replace(self, names=names)

    def over(self, places: Ints, *, missing: bool) -> Tree:
        """The tree over a column's c categories, which are these leaves (ascending); with
        `missing`, over code c too. Nodes without any of them are left out."""
        low = np.searchsorted(places, self.tree.low)
        high = np.searchsorted(places, self.tree.high)
        kept = high > low
        kept[-1] = True  # the root, whatever there is
        c, root = len(places), int(kept.sum()) - 1
        parent = (np.cumsum(kept) - 1)[self.tree.parent[kept]]
        heights = self.tree.heights[kept]
        tree = Tree(parent, low[kept], high[kept], self.tree.loss[kept], heights)
        if not missing:
            return tree
        return Tree(
            np.insert(parent + 1, c, root + 1),
            np.insert(tree.low, c, c),
            np.insert(np.append(tree.high[:-1], c + 1), c, c + 1),
            np.insert(tree.loss, c, 0.0),
            np.insert(heights, c, 0),
        )


def read_hierarchy(path: str | Path) -> Hierarchy:
    """The hierarchy in a CSV file as ARX has them: a row for each value, which comes first, then
    the names of the ever larger groups that it is in, up to the root, which all rows share.

    Separated by `;` or `,`, UTF-8, without a header. Rows may differ in length; names that are
    empty at the end of a row, and repeat in a row side by side, count once or not at all. A name
    stands for one node. Cost: the size of the file.

    Raises InputError with all that is wrong, by line.
    """
    try:
        text = Path(path).read_text("utf-8-sig")
    except OSError as error:
        reason = error.strerror or "I/O error"
        raise InputError(f"hierarchy {path}: can't be read ({reason})") from None
    except ValueError:
        raise InputError(f"hierarchy {path}: not UTF-8 text") from None
    try:
        rows = min((_rows(text, each) for each in SEPARATORS), key=_doubts)
    except csv.Error:
        raise InputError(f"hierarchy {path}: not CSV") from None
    problems = [*_row_problems(rows)]
    if not problems:
        nodes = _Nodes()
        for row in rows:
            nodes.add(row)
        problems = [*nodes.problems()]
    if problems:
        raise InputError(f"hierarchy {path}: {'; '.join(problems)}")
    return nodes.hierarchy()


@dataclass(frozen=True)
class _Row:
    line: int
    names: tuple[str, ...]


def _rows(text: str, separator: str) -> list[_Row]:
    rows = []
    reader = csv.reader(io.StringIO(text), delimiter=separator)
    for fields in reader:
        while fields and not fields[-1]:
            fields.pop()
        names = [name for i, name in enumerate(fields) if i == 0 or name != fields[i - 1]]
        if names:
            rows.append(_Row(reader.line_num, tuple(names)))
    return rows


def _doubts(rows: list[_Row]) -> tuple[int, int]:
    """How little the rows look like those of a hierarchy."""
    return sum(len(row.names) < 2 for row in rows), len({row.names[-1] for row in rows})


def _row_problems(rows: list[_Row]) -> Iterator[str]:
    if not rows:
        yield "has no rows"
        return
    short = [row.line for row in rows if len(row.names) < 2]
    if short:
        yield f"{_lines(short)} no group above the value"
    hollow = [row.line for row in rows if "" in row.names[1:]]
    if hollow:
        yield f"{_lines(hollow)} an empty name between others"
    roots = Counter(row.names[-1] for row in rows)
    if len(roots) > 1:
        root = roots.most_common(1)[0][0]
        others = [row.line for row in rows if row.names[-1] != root]
        yield f"{_lines(others)} another root than most"
    seen: set[str] = set()
    again = []
    for row in rows:
        if row.names[0] in seen:
            again.append(row.line)
        seen.add(row.names[0])
    if again:
        yield f"{_lines(again)} a value of an earlier row"


def _lines(lines: list[int]) -> str:
    more = f" and {len(lines) - 1} more" if len(lines) > 1 else ""
    return f"line {lines[0]}{more}: {'have' if more else 'has'}"


class _Nodes:
    """A tree in the making: node 0 is the root; `line` is where a node is named first, `values` the
    node and the line of each row's value."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.parent: list[int] = []
        self.line: list[int] = []
        self.below: list[dict[str, int]] = []
        self.values: list[tuple[int, int]] = []

    def add(self, row: _Row) -> None:
        node = 0
        if not self.names:
            self._append(row.names[-1], 0, row.line)
        for name in reversed(row.names[:-1]):
            if name not in self.below[node]:
                self.below[node][name] = len(self.names)
                self._append(name, node, row.line)
            node = self.below[node][name]
        self.values.append((node, row.line))

    def _append(self, name: str, parent: int, line: int) -> None:
        self.names.append(name)
        self.parent.append(parent)
        self.line.append(line)
        self.below.append({})

    def problems(self) -> Iterator[str]:
        groups = [line for node, line in self.values if self.below[node]]
        if groups:
            yield f"{_lines(groups)} a value that is a group of others"
        seen: set[str] = set()
        again = []
        for name, line in zip(self.names, self.line, strict=True):
            if name in seen:
                again.append(line)
            seen.add(name)
        if again:
            yield f"{_lines(again)} a name that stands elsewhere in the tree too"

    def hierarchy(self) -> Hierarchy:
        walk, todo = [], [0]  # depth first, a node before those below it
        while todo:
            node = todo.pop()
            walk.append(node)
            todo += reversed(self.below[node].values())
        leaves = [node for node in walk if not self.below[node]]
        order = [*leaves, *(node for node in reversed(walk) if self.below[node])]
        number = {node: i for i, node in enumerate(order)}
        parent = np.array([number[self.parent[node]] for node in order], np.int64)
        c = len(leaves)
        low = np.append(np.arange(c), np.full(len(order) - c, c))
        high = np.append(np.arange(1, c + 1), np.zeros(len(order) - c, np.int64))
        for node, above in enumerate(parent[:-1]):
            low[above] = min(low[above], low[node])
            high[above] = max(high[above], high[node])
        loss = (high - low - 1) / max(c - 1, 1)
        loss[-1] = 1.0
        return Hierarchy(tuple(self.names[node] for node in order), Tree(parent, low, high, loss))

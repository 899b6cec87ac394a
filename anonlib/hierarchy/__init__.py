"""Hierarchies: generalization trees over the values of a column."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonlib.arrays import Ints
from anonlib.errors import InputError
from anonlib.hierarchy.files import (
    MAX_BYTES,
    MAX_YAML_BYTES,
    NamedTree,
    parse_csv,
    parse_yaml,
    to_csv,
    to_yaml,
)
from anonlib.hierarchy.tree import Tree
from anonlib.text import fold

#: How a file's name ends -> how its text is read; any other name is read as the first.
READERS: dict[str, Callable[[str], NamedTree]] = {
    ".csv": parse_csv,
    ".yaml": parse_yaml,
    ".yml": parse_yaml,
}
WRITERS: dict[str, Callable[[NamedTree], str]] = {
    ".csv": to_csv,
    ".yaml": to_yaml,
    ".yml": to_yaml,
}


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """A tree whose leaves are the values that a column can have.

    names: of all nodes, as numbered by `tree`: the leaves first, depth first, siblings as the file
    first names them. Missing stands under the root, as one more leaf after all others.
    """

    names: tuple[str, ...]
    tree: Tree

    @classmethod
    def of(cls, nodes: NamedTree) -> "Hierarchy":
        """The hierarchy of a tree in which each node has a name of its own, and the root is no
        leaf."""
        below = nodes.below()
        walk, todo = [], [0]  # depth first, a node before those below it
        while todo:
            node = todo.pop()
            walk.append(node)
            todo += reversed(below[node])
        leaves = [node for node in walk if not below[node]]
        order = [*leaves, *(node for node in reversed(walk) if below[node])]
        number = np.empty(len(order), np.int64)
        number[order] = np.arange(len(order))
        parent = number[np.array(nodes.parent)[order]]
        c = len(leaves)
        low = np.append(np.arange(c), np.full(len(order) - c, c))
        high = np.append(np.arange(1, c + 1), np.zeros(len(order) - c, np.int64))
        for node, above in enumerate(parent[:-1]):
            low[above] = min(low[above], low[node])
            high[above] = max(high[above], high[node])
        loss = (high - low - 1) / max(c - 1, 1)
        loss[-1] = 1.0
        return cls(tuple(nodes.names[node] for node in order), Tree(parent, low, high, loss))

    def nodes(self) -> NamedTree:
        """The tree as `of` takes it."""
        nodes = NamedTree()
        number: dict[int, int] = {}
        root, tree = len(self.names) - 1, self.tree
        # From the root down, siblings by their first leaf; of a chain the one that is above first.
        for node in sorted(range(root + 1), key=lambda i: (tree.low[i], -tree.high[i], -i)):
            above = None if node == root else number[int(tree.parent[node])]
            number[node] = nodes.add(self.names[node], above)
        return nodes

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
    """The hierarchy in a file: UTF-8, YAML where its name ends so, else CSV.

    CSV is as ARX has it, without a header and separated by `;` or `,`: a row for each value, which
    comes first, then the names of the ever larger groups that it is in, up to the root, which all
    rows share. Rows may differ in length; names that are empty at the end of a row, and repeat in a
    row side by side, count once or not at all.

    YAML is nested: a mapping of the root to what it holds, which is a mapping of groups to what
    they hold, a list of values (and of such mappings), or one value. Names are texts as they are
    written: 01234, yes and 1.0 stay what they are.

    A name stands for one node. Cost: the size of the file.

    Raises InputError with all that is wrong, by line, and where the file or its tree is too large.
    """
    text = _text(Path(path))
    try:
        nodes = READERS.get(Path(path).suffix.lower(), parse_csv)(text)
    except InputError as error:
        raise InputError(f"hierarchy {path}: {error}") from None
    return Hierarchy.of(nodes)


def _text(path: Path) -> str:
    """What a hierarchy's file says."""
    read = READERS.get(path.suffix.lower(), parse_csv)
    most = MAX_BYTES if read is parse_csv else MAX_YAML_BYTES
    try:
        if path.exists() and not path.is_file():  # a device or a pipe might never end
            raise InputError(f"hierarchy {path}: can't be read (no plain file)")
        with path.open("rb") as file:
            data = file.read(most + 1)
        if len(data) > most:
            more = "" if read is parse_csv else "; write it as CSV"
            raise InputError(f"hierarchy {path}: larger than {most:,} bytes{more}")
        return data.decode("utf-8-sig")
    except OSError as error:
        reason = error.strerror or "I/O error"
        raise InputError(f"hierarchy {path}: can't be read ({reason})") from None
    except ValueError:
        raise InputError(f"hierarchy {path}: not UTF-8 text") from None


def write_hierarchy(hierarchy: Hierarchy, path: str | Path) -> None:
    """Writes a file that `read_hierarchy` reads as the same tree; its name ends in .csv, .yaml or
    .yml. One that is there is replaced. Raises InputError where it can't be written."""
    write = WRITERS.get(Path(path).suffix.lower())
    if write is None:
        raise InputError(f"hierarchy {path}: the name must end in {', '.join(WRITERS)}")
    try:
        data = write(hierarchy.nodes()).encode()
        Path(path).write_bytes(data)
    except OSError as error:
        reason = error.strerror or "I/O error"
        raise InputError(f"hierarchy {path}: can't be written ({reason})") from None
    except UnicodeEncodeError:
        raise InputError(f"hierarchy {path}: a name is no Unicode text") from None

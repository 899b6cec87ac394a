"""Hierarchies: generalization trees over the values of a column."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonlib.arrays import Ints
from anonlib.errors import InputError, refuse_to_write
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
from anonlib.text import fold_text

#: By suffix of a file: the parser of its text. Other suffixes are parsed as CSV.
READERS: dict[str, Callable[[str], NamedTree]] = {
    ".csv": parse_csv,
    ".yaml": parse_yaml,
    ".yml": parse_yaml,
}
#: By suffix of a file: the writer of its text.
WRITERS: dict[str, Callable[[NamedTree], str]] = {
    ".csv": to_csv,
    ".yaml": to_yaml,
    ".yml": to_yaml,
}


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """A tree over the values that a column can have. Its leaves are the values.

    A missing value is one more leaf under the root, after all others.

    Attributes:
        names: The name of each node of `tree`. Siblings are in the order of the file.
        tree: The nodes by number, leaves first.
    """

    names: tuple[str, ...]
    tree: Tree

    @classmethod
    def of(cls, nodes: NamedTree) -> "Hierarchy":
        """Makes a hierarchy from a tree of names. Names are distinct, and the root is no leaf."""
        below = nodes.below()
        walk, todo = [], [0]  # depth first: each node before its children
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
        """The tree of names, as `of` takes it."""
        nodes = NamedTree()
        number: dict[int, int] = {}
        root, tree = len(self.names) - 1, self.tree
        # From the root down, siblings by their first leaf; in a chain, the upper node first.
        for node in sorted(range(root + 1), key=lambda i: (tree.low[i], -tree.high[i], -i)):
            above = None if node == root else number[int(tree.parent[node])]
            number[node] = nodes.add(self.names[node], above)
        return nodes

    def places(self, values: pa.Array) -> Ints:
        """int64[n]. The leaf of each value, by its text; -1 for a value that is no leaf."""
        leaves = pa.array(self.names[: self.tree.high[-1]], pa.string())
        index = pc.index_in(values.cast(pa.string()), value_set=leaves)
        places: Ints = index.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        return places

    @property
    def heights(self) -> Ints:
        """int64[nodes]. The length of the longest path from each node down to a leaf."""
        return self.tree.heights

    def levels(self, places: Ints) -> Ints:
        """int64[h, n]. The generalizations of n leaves at heights 0..h-1. The root has height h.

        Row i has the highest ancestor of each leaf (or the leaf itself) with at most height i. Two
        leaves have the same node from row i on, if their lowest common ancestor has height i. They
        never have if it is the root.
        """
        return np.stack([self.tree.raised(places, h) for h in range(self.tree.heights[-1])])

    def folded(self) -> "Hierarchy":
        """The same hierarchy with folded names, for a protected column: its texts are compared as
        people see them.

        Raises:
            InputError: Folded values are equal.
        """
        names = tuple(map(fold_text, self.names))
        c = int(self.tree.high[-1])
        if same := c - len(set(names[:c])):
            raise InputError(
                f"{same} values differ from others in case or white space only, which sensitive "
                "columns ignore; remove them"
            )
        return replace(self, names=names)

    def over(self, places: Ints, *, missing: bool) -> Tree:
        """The tree over the c categories of a column. Nodes without a category are left out, except
        the root.

        Args:
            places: int64[c], ascending. The leaf of each category.
            missing: Whether code c stands for missing values.
        """
        low = np.searchsorted(places, self.tree.low)
        high = np.searchsorted(places, self.tree.high)
        used = high > low
        used[-1] = True  # the root stays, even without categories
        c, root = len(places), int(used.sum()) - 1
        parent = (np.cumsum(used) - 1)[self.tree.parent[used]]
        heights = self.tree.heights[used]
        tree = Tree(parent, low[used], high[used], self.tree.loss[used], heights)
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
    """Reads a hierarchy from a UTF-8 file: YAML if its name ends in .yaml or .yml, else CSV.

    CSV has ARX's form: no header, separated by `;` or `,`, one row per value. A row has the value
    first, then the groups that contain it, from small to large. The last name is the root, which
    all rows share. Rows may differ in length. Empty names at the end of a row are ignored. A name
    that repeats side by side counts once.

    YAML is nested: the root maps to its content. Content is a mapping of groups to their content, a
    list of values (and of such mappings), or one value. Names are texts as they are written: 01234,
    yes and 1.0 are not converted.

    Each name stands for one node. Cost: linear in the size of the file.

    Raises:
        InputError: The file is not such a hierarchy (all problems, by line), can't be read, or is
            too large.
    """
    text = _text(Path(path))
    try:
        nodes = READERS.get(Path(path).suffix.lower(), parse_csv)(text)
    except InputError as error:
        raise InputError(f"hierarchy {path}: {error}") from None
    return Hierarchy.of(nodes)


def _text(path: Path) -> str:
    """Reads the text of a hierarchy's file."""
    reader = READERS.get(path.suffix.lower(), parse_csv)
    most = MAX_BYTES if reader is parse_csv else MAX_YAML_BYTES
    try:
        if path.exists() and not path.is_file():  # a device or a pipe might never end
            raise InputError(f"hierarchy {path}: can't be read (not a regular file)")
        with path.open("rb") as file:
            data = file.read(most + 1)
        if len(data) > most:
            more = "" if reader is parse_csv else "; write it as CSV"
            raise InputError(f"hierarchy {path}: larger than {most:,} bytes{more}")
        return data.decode("utf-8-sig")
    except OSError as error:
        reason = error.strerror or "I/O error"
        raise InputError(f"hierarchy {path}: can't be read ({reason})") from None
    except ValueError:
        raise InputError(f"hierarchy {path}: not UTF-8 text") from None


def write_hierarchy(hierarchy: Hierarchy, path: str | Path) -> None:
    """Writes a file that `read_hierarchy` reads as the same tree. Replaces an existing file.

    Raises:
        InputError: The file can't be written, or its name does not end in .csv, .yaml or .yml.
    """
    write = WRITERS.get(Path(path).suffix.lower())
    if write is None:
        raise InputError(f"hierarchy {path}: the name must end in {', '.join(WRITERS)}")
    try:
        data = write(hierarchy.nodes()).encode()
        Path(path).write_bytes(data)
    except OSError as error:
        raise InputError(f"hierarchy {refuse_to_write(path, error)}") from None
    except UnicodeEncodeError:
        raise InputError(f"hierarchy {path}: a name is not valid Unicode") from None

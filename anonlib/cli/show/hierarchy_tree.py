"""Prints hierarchies. Only `print_hierarchy` shows values."""

from collections.abc import Sequence

import numpy as np
from rich.text import Text
from rich.tree import Tree

from anonlib.cli.show.parts import new_pairs
from anonlib.cli.show.summaries import console
from anonlib.hierarchy import Hierarchy
from anonlib.table.coverage import Coverage
from anonlib.text import printable


def print_hierarchy(hierarchy: Hierarchy, path: str, most: int) -> None:
    """Prints a hierarchy as a tree.

    Args:
        hierarchy: The hierarchy.
        path: Its file, for the title.
        most: The number of nodes to show at most, the upper ones first.
    """
    to = console()
    to.print(Text(printable(path), style="bold"), soft_wrap=True)
    to.print(new_pairs(_figures(hierarchy)))
    to.print()
    nodes = hierarchy.nodes()
    below = nodes.below()
    sizes = [1] * len(below)
    for node in range(len(below) - 1, -1, -1):
        if below[node]:
            sizes[node] = sum(sizes[child] for child in below[node])
    tree = Tree(_label(nodes.names[0], sizes[0]), guide_style="dim")
    todo, shown = [(0, tree)], 1
    for node, branch in todo:  # grows meanwhile: breadth first
        room = below[node][: max(most - shown, 0)]
        shown += len(room)
        for child in room:
            size = sizes[child] if below[child] else 0
            todo.append((child, branch.add(_label(nodes.names[child], size))))
        left = below[node][len(room) :]
        if room and left:
            branch.add(Text(f"… {len(left):,} more", style="dim"))
    to.print(tree, soft_wrap=True)


def print_coverage(hierarchy: Hierarchy, path: str, coverage: Coverage | None) -> None:
    """Prints the figures of a hierarchy and, if known, how it covers a column."""
    to = console()
    to.print(Text.assemble(printable(path), ": ", ("a hierarchy", "bold green")), soft_wrap=True)
    to.print()
    figures = _figures(hierarchy)
    if coverage is not None:
        figures += [
            ("the column", f"{coverage.n_values:,} distinct values in {coverage.n_rows:,} rows"),
            (
                "without a leaf",
                f"{coverage.n_lacking_values:,} in {coverage.n_lacking_rows:,} rows",
            ),
            ("missing", f"{coverage.n_missing_rows:,} rows, which stand under the root"),
            ("unused leaves", f"{coverage.n_unused_leaves:,}"),
        ]
    to.print(new_pairs(figures))


def _figures(hierarchy: Hierarchy) -> list[tuple[str, str]]:
    counts: Sequence[int] = np.bincount(hierarchy.heights).tolist()
    n_values = int(hierarchy.tree.high[-1])
    by_height = ", ".join(f"{height}: {n:,}" for height, n in enumerate(counts))
    return [
        ("values", f"{n_values:,}"),
        ("groups", f"{len(hierarchy.names) - n_values:,}, the root included"),
        ("nodes by height", by_height),
    ]


def _label(name: str, size: int) -> Text:
    """The name of a node, and the number of its values unless that is 0."""
    return Text.assemble(printable(name), (f"  {size:,}", "dim") if size else "")

"""Recoders and encodings along hierarchies, one value and one path to the root at a time."""

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st

from anonlib.encode._published import read_parents
from anonlib.hierarchy import Hierarchy
from anonlib.recode import Cells


@st.composite
def hierarchies(draw: st.DrawFn) -> Hierarchy:
    """Trees of 1 to about 12 leaves and any shape: groups of one, leaves at different depths."""
    shape = st.recursive(
        st.none(), lambda below: st.lists(below, min_size=1, max_size=4), max_leaves=5
    )
    return hierarchy_of(draw(st.lists(shape, min_size=1, max_size=4)))


def hierarchy_of(nested: list[Any]) -> Hierarchy:
    """A tree of lists, whose leaves are None: leaves named v0, v1, ..., groups g0, g1, ..., *."""
    leaves: list[int] = []  # by number, the node that it is under
    groups: list[tuple[int, int]] = []  # number and parent, a group before those in it

    def walk(node: Any, parent: int) -> None:
        if node is None:
            leaves.append(parent)
            return
        groups.append((len(groups), parent))
        number = len(groups) - 1
        for each in node:
            walk(each, number)

    walk(nested, 0)
    c, g = len(leaves), len(groups)
    place = {number: c + g - 1 - number for number in range(g)}
    names = [f"v{i}" for i in range(c)] + [f"g{i}" for i in range(g - 1, 0, -1)] + ["*"]
    parents = [place[p] for p in leaves] + [place[p] for _, p in reversed(groups)]
    return read_parents(names, parents)


def lineage(hierarchy: Hierarchy, name: str | None) -> list[str | None]:
    """A node and all above it, up to the root; missing stands right under the root."""
    names, parent = hierarchy.names, hierarchy.tree.parent
    if name is None:
        return [None, names[-1]]
    found: list[str | None] = [name]
    while found[-1] != names[-1]:
        found.append(names[parent[names.index(str(found[-1]))]])
    return found


def height(hierarchy: Hierarchy, name: str | None) -> int:
    below = [other for other in hierarchy.names if name in lineage(hierarchy, other)[1:]]
    return 1 + max(height(hierarchy, other) for other in below) if below else 0


def lowest_common(hierarchy: Hierarchy, values: list[str | None], level: int = 0) -> str | None:
    """The lowest node above all values, each generalized first to the highest node above it that
    is no higher than `level`."""
    paths = []
    for value in values:
        path = lineage(hierarchy, value)
        at = [i for i, node in enumerate(path) if i == 0 or height(hierarchy, node) <= level]
        paths.append(path[max(at) :])
    return next(node for node in paths[0] if all(node in path for path in paths))


def shares(values: list[str | None], steps: int | None = None) -> dict[str | None, Fraction]:
    """The share of each value; in multiples of 1/steps by largest remainders, ties to the first."""
    count = Counter(values)
    order = sorted(count, key=lambda value: (value is None, int((value or "v0")[1:])))
    exact = {value: Fraction(count[value], len(values)) for value in order}
    if steps is None:
        return exact
    given = {value: int(exact[value] * steps) for value in order}
    by_rest = sorted(order, key=lambda value: given[value] - exact[value] * steps)  # stable
    for value in by_rest[: steps - sum(given.values())]:
        given[value] += 1
    return {value: Fraction(n, steps) for value, n in given.items() if n}


@st.composite
def cells_of(
    draw: st.DrawFn, hierarchy: Hierarchy
) -> tuple[list[str | None], Cells, list[list[str | None]]]:
    """Leaves and missing values, their cells, and the values of each cell."""
    names = list(hierarchy.names[: int(hierarchy.tree.high[-1])])
    value = st.sampled_from([*names, None])
    # a cell of like values now and then
    some = st.lists(value, min_size=1, max_size=9) | st.builds(
        lambda v, n: [v] * n, value, st.integers(1, 5)
    )
    lists = draw(st.lists(some, max_size=6))
    rows = [(cell, each) for cell, values in enumerate(lists) for each in values]
    rows = draw(st.permutations(rows))
    ids = np.array([cell for cell, _ in rows], np.int64)
    return [each for _, each in rows], Cells(ids, len(lists)), lists

"""What the builders of hierarchies are compared with, slow and obvious."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

import numpy as np

from anonlib.hierarchy import Hierarchy

Nested = "str | frozenset[Nested]"


def groups_of(hierarchy: Hierarchy) -> dict[str, frozenset[str]]:
    """The leaves under each node."""
    c = int(hierarchy.tree.high[-1])
    ends = zip(hierarchy.tree.low.tolist(), hierarchy.tree.high.tolist(), strict=True)
    found = [frozenset(hierarchy.names[low:high]) for low, high in ends]
    assert sorted(hierarchy.names[:c]) == sorted(found[-1])
    return dict(zip(hierarchy.names, found, strict=True))


def huffman(rows: dict[str, int], fan_out: int) -> set[frozenset[str]]:
    """The groups of Huffman's tree."""
    trees = [frozenset([text]) for text in rows]
    found = set(trees)
    while len(trees) > 1:
        trees.sort(key=lambda group: (sum(rows[text] for text in group), min(group)))
        size = fan_out
        while size > 2 and (len(trees) - size) % (fan_out - 1):
            size -= 1
        trees = [frozenset().union(*trees[:size]), *trees[size:]]
        found.add(trees[0])
    return found


def target_tree(rows: dict[str, Sequence[int]]) -> list[frozenset[str]]:
    """The groups of the target-aware tree of pairs, in the order in which they are merged."""

    def content(group: frozenset[str]) -> int:
        total = np.sum([rows[text] for text in group], axis=0)
        return _units(total.sum()) - sum(_units(count) for count in total)

    def key(pair: tuple[frozenset[str], ...]) -> tuple[object, ...]:
        union = pair[0] | pair[1]
        loss = content(union) - content(pair[0]) - content(pair[1])
        first, second = sorted(map(min, pair))
        return loss, sum(int(np.sum(rows[text])) for text in union), first, second

    groups = [frozenset([text]) for text in sorted(rows)]
    merged = []
    while len(groups) > 1:
        one, other = min(combinations(groups, 2), key=key)
        groups = [*(group for group in groups if group not in (one, other)), one | other]
        merged.append(one | other)
    return merged


def _units(count: int) -> int:
    return round(float(count * np.log2(count) * 1024)) if count else 0


def widened(merged: Sequence[frozenset[str]], fan_out: int) -> set[frozenset[str]]:
    """The groups of the tree that are left with so many below each, those merged last opened
    first."""
    when = {group: i for i, group in enumerate(merged)}

    def parts(group: frozenset[str]) -> list[frozenset[str]]:
        """The two that were merged."""
        inside = [g for g in merged[: when[group]] if g < group]
        inside += [frozenset([text]) for text in group]
        largest = [g for g in inside if not any(g < other for other in inside)]
        assert len(largest) == 2
        return largest

    found: set[frozenset[str]] = set()
    todo = [merged[-1]] if merged else []
    while todo:
        group = todo.pop()
        found.add(group)
        if group not in when:
            continue
        children = parts(group)
        while len(children) < fan_out and any(child in when for child in children):
            last = max((child for child in children if child in when), key=lambda g: when[g])
            children = [child for child in children if child != last] + parts(last)
        todo += children
    return found


def due_bounds(rows: dict[Fraction, int], parts: int) -> set[Fraction]:
    """Where intervals of equal frequency begin, but for the first."""
    values = sorted(rows)
    total = sum(rows.values())
    found = set()
    for j in range(1, parts):
        due = Fraction(total * j, parts)
        below = {v: sum(rows[u] for u in values if u < v) for v in values}
        found.add(min(values, key=lambda v: (abs(below[v] - due), v)))
    return found - {values[0]}

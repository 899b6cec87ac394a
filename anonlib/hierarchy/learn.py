"""Hierarchies from data: trees over categories by how often they occur, or by a target.

Values and missing ones as in `hierarchy_build`. Such a tree depends on the data: who sees the names
of its nodes in a release learns which values are about as frequent, or alike in the target.
"""

import heapq
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonlib.arrays import Ints
from anonlib.errors import InputError
from anonlib.hierarchy import Hierarchy
from anonlib.hierarchy.build import ROOT, count_texts, distinct_texts, require_apart
from anonlib.hierarchy.files import NamedTree

#: The largest target-aware trees: all pairs of values are compared.
MOST_VALUES, MOST_CLASSES = 2_000, 1_000
#: Most values that the name of a group lists, and most characters of each.
_LISTED, _SHOWN = 3, 40
#: No loss: that of a pair which can't be merged.
_NEVER = np.iinfo(np.int64).max


def frequency(values: pa.Array, counts: Ints, fan_out: int = 2, *, root: str = ROOT) -> Hierarchy:
    """Huffman's tree: of the groups that are left, the `fan_out` rarest become one, again and
    again. So rare values stand deep down, under groups of few rows, and frequent ones near the
    root. counts: how often each of the values is there.

    Of equally rare groups those with the first text go first. Cost O(n log n).
    """
    _require_fan_out(fan_out)
    rows = count_texts(values, counts)
    texts = sorted(rows)
    heap = [(rows[text], i, i) for i, text in enumerate(texts)]  # rows, first text, node
    heapq.heapify(heap)
    below: list[list[int]] = []
    # The first group is smaller, so that all others are full.
    size = 2 + (len(texts) - 2) % (fan_out - 1)
    while len(heap) > 1:
        merged = [heapq.heappop(heap) for _ in range(size)]
        count, first = sum(each[0] for each in merged), min(each[1] for each in merged)
        heapq.heappush(heap, (count, first, len(texts) + len(below)))
        below.append([node for _, _, node in merged])
        size = fan_out
    return _named(texts, below, root)


def target_aware(
    values: pa.Array,
    classes: pa.Array,
    counts: Ints,
    fan_out: int = 2,
    *,
    root: str = ROOT,
) -> Hierarchy:
    """Values whose targets are distributed alike stand together: again and again the two groups
    become one whose union loses the least mutual information with the target, in all their rows
    (agglomerative information bottleneck; Slonim and Tishby 1999). With a larger `fan_out`, the
    groups merged last within one take its place, as long as there is room.

    counts: how often each of the values is there with each class of the target, of which missing
    is one. Of several pairs the one with the fewest rows goes first, then that with the first
    texts. Takes at most MOST_VALUES values and MOST_CLASSES classes. Cost O(n^2 classes), and
    O(n^3) where many pairs tie: some seconds for 1,000 values.
    """
    _require_fan_out(fan_out)
    texts = sorted(distinct_texts(values))
    labels = classes.unique()
    if len(texts) > MOST_VALUES:
        raise InputError(f"{len(texts):,} values; a tree by a target takes {MOST_VALUES:,} at most")
    if len(labels) > MOST_CLASSES:
        text = f"{len(labels):,} classes of the target; {MOST_CLASSES:,} are the most"
        raise InputError(f"{text}: choose a coarser one")
    place = pc.index_in(values.cast(pa.string()), value_set=pa.array(texts, pa.string()))
    label = pc.index_in(classes, value_set=labels)
    there = place.is_valid().to_numpy(zero_copy_only=False)
    rows = np.zeros((len(texts), len(labels)), np.int64)
    at = place.fill_null(0).to_numpy(), label.to_numpy()
    np.add.at(rows, (at[0][there], at[1][there]), counts[there])
    return _named(texts, _widened(_merges(rows), len(texts), fan_out), root)


def _require_fan_out(fan_out: int) -> None:
    if fan_out < 2:
        raise InputError("fan_out: at least 2")


def information(counts: Ints) -> Ints:
    """c log2(c) in units of 2^-10, so that sums are exact in any order."""
    found: Ints = np.rint(counts * np.log2(np.maximum(counts, 1)) * 1024).astype(np.int64)
    return found


def _merges(rows: Ints) -> list[list[int]]:
    """The pairs of nodes that become nodes n, n + 1, ... A group stays in the place of its first
    value, so that places are in the order of first texts."""
    n = len(rows)
    rows, node = rows.copy(), list(range(n))
    content = _content(rows)
    loss = np.full((n, n), _NEVER)
    for i in range(n):
        loss[i, i + 1 :] = _content(rows[i] + rows[i + 1 :]) - content[i] - content[i + 1 :]
    least = loss.min(axis=1)
    merges = []
    for _ in range(n - 1):
        i, j = _pair(loss, least, rows.sum(axis=1))
        merges.append([node[i], node[j]])
        node[i] = n + len(merges) - 1
        rows[i] += rows[j]
        content[i] = _content(rows[i])
        stale = ((least == loss[:, i]) | (least == loss[:, j])) & (least < _NEVER)
        stale[[i, j]] = True
        loss[j, :] = loss[:, j] = _NEVER
        after, before = loss[i] < _NEVER, loss[:, i] < _NEVER
        again = _content(rows[i] + rows) - content[i] - content
        loss[i, after], loss[before, i] = again[after], again[before]
        least = np.minimum(least, loss[:, i])
        least[stale] = loss[stale].min(axis=1)
    return merges


def _content(rows: Ints) -> Ints:
    """The number of rows times the entropy of their classes, for each last axis."""
    content: Ints = information(rows.sum(axis=-1)) - information(rows).sum(axis=-1)
    return content


def _pair(loss: Ints, least: Ints, n_rows: Ints) -> tuple[int, int]:
    """The pair that loses the least; of several that of the fewest rows, then the first. least: of
    each row of `loss`."""
    candidates = np.flatnonzero(least == least.min())
    first, second = np.nonzero(loss[candidates] == least.min())
    best = np.argmin(n_rows[candidates[first]] + n_rows[second])
    return int(candidates[first[best]]), int(second[best])


def _widened(merges: Sequence[Sequence[int]], n: int, fan_out: int) -> list[list[int]]:
    """The same nodes with at most `fan_out` below each; those that are no longer needed are below
    none."""
    below = []
    for pair in merges:
        found = list(pair)
        while len(found) < fan_out and max(found) >= n:
            found += merges[_take_last(found) - n]
        below.append(found)
    return below


def _take_last(nodes: list[int]) -> int:
    """Takes the node that was made last out of a list."""
    node = max(nodes)
    nodes.remove(node)
    return node


def _named(texts: Sequence[str], below: Sequence[Sequence[int]], root: str) -> Hierarchy:
    """The tree whose nodes are the texts, which are sorted, and groups of nodes before them, the
    last of which is the root; siblings in the order of their first text."""
    require_apart(root, texts)
    n = len(texts)
    first, size = list(range(n)), [1] * n
    for nodes in below:
        first.append(min(first[node] for node in nodes))
        size.append(sum(size[node] for node in nodes))
    tree, used = NamedTree(), {root, *texts}
    top = n + len(below) - 1
    todo = [(top, tree.add(root, None))] if below else []
    if not below:
        tree.add(texts[0], tree.add(root, None))
    while todo:
        node, number = todo.pop()
        for child in sorted(below[node - n], key=lambda each: first[each]):
            if child < n:
                tree.add(texts[child], number)
            else:
                name = _group_name(texts, below, child, first[child], size[child])
                todo.append((child, tree.add(_unused(name, used), number)))
    return Hierarchy.of(tree)


def _group_name(
    texts: Sequence[str], below: Sequence[Sequence[int]], node: int, first: int, size: int
) -> str:
    """Such as {a, b}, or {a and 5 more}: within a tree, a first value and a number of values are
    those of one group only."""
    shown = [_short(texts[first])]
    if size > _LISTED:
        return f"{{{shown[0]} and {size - 1} more}}"
    todo, members = [node], []
    while todo:
        at = todo.pop()
        if at < len(texts):
            members.append(at)
        else:
            todo += below[at - len(texts)]
    return f"{{{', '.join(_short(texts[member]) for member in sorted(members))}}}"


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def _unused(name: str, used: set[str]) -> str:
    """The name, with a number where it is another's already (values may look like names, or agree
    in their first characters)."""
    found, number = name, 1
    while found in used:
        number += 1
        found = f"{name} ({number})"
    used.add(found)
    return found

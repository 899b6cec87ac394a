"""Learns hierarchies from data: trees over categories by their frequency, or by a target.

Values and missing values are treated as in `anonlib.hierarchy.build`. The trees depend on the data:
their released names reveal which values are about equally frequent, or have similar targets.
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

#: Most values, and most classes, of target-aware trees, which compare all pairs of values.
MOST_VALUES, MOST_CLASSES = 2_000, 1_000
#: Most values that the name of a group lists, and most characters of each.
_LISTED, _SHOWN = 3, 40
#: The loss of a pair that can't be merged.
_NEVER = np.iinfo(np.int64).max


def frequency(values: pa.Array, counts: Ints, fan_out: int = 2, *, root: str = ROOT) -> Hierarchy:
    """Huffman's tree: merges the `fan_out` rarest groups into one, until one is left.

    Rare values are deep in the tree, under groups of few rows. Frequent values are near the root.
    Of equally rare groups, those with the first texts are merged first. Cost O(n log n).

    Args:
        values: [n]. The values.
        counts: int64[n]. The rows of each value.
        fan_out: The number of children of a node.
        root: The name of the root.
    """
    _require_fan_out(fan_out)
    rows = count_texts(values, counts)
    texts = sorted(rows)
    heap = [(rows[text], i, i) for i, text in enumerate(texts)]  # rows, first text, node
    heapq.heapify(heap)
    below: list[list[int]] = []
    # The first group may be smaller. So all others have fan_out children.
    size = 2 + (len(texts) - 2) % (fan_out - 1)
    while len(heap) > 1:
        merged = [heapq.heappop(heap) for _ in range(size)]
        count, first = sum(each[0] for each in merged), min(each[1] for each in merged)
        heapq.heappush(heap, (count, first, len(texts) + len(below)))
        below.append([node for _, _, node in merged])
        size = fan_out
    return _to_hierarchy(texts, below, root)


def target_aware(
    values: pa.Array,
    classes: pa.Array,
    counts: Ints,
    fan_out: int = 2,
    *,
    root: str = ROOT,
) -> Hierarchy:
    """A tree that groups values with similar distributions of the target.

    Agglomerative information bottleneck (Slonim and Tishby 1999): each step merges the two groups
    whose union loses the least mutual information with the target, over all their rows. Of equal
    pairs, the pair with the fewest rows is merged first, then the pair with the first texts. With a
    `fan_out` above 2, a node's child that was merged last is replaced by its own children, while
    there is room.

    Cost O(n^2 classes), or O(n^3) if many pairs tie: some seconds for 1,000 values.

    Args:
        values: [n]. The values, at most MOST_VALUES distinct ones.
        classes: [n]. The class of the target, at most MOST_CLASSES distinct ones. Missing is a
            class of its own.
        counts: int64[n]. The rows with each value and class.
        fan_out: Most children of a node.
        root: The name of the root.
    """
    _require_fan_out(fan_out)
    texts = sorted(distinct_texts(values))
    labels = classes.unique()
    if len(texts) > MOST_VALUES:
        raise InputError(
            f"{len(texts):,} values; a target-aware tree takes {MOST_VALUES:,} at most"
        )
    if len(labels) > MOST_CLASSES:
        raise InputError(
            f"{len(labels):,} classes of the target; at most {MOST_CLASSES:,} are allowed: choose "
            "a coarser target"
        )
    place = pc.index_in(values.cast(pa.string()), value_set=pa.array(texts, pa.string()))
    label = pc.index_in(classes, value_set=labels)
    there = place.is_valid().to_numpy(zero_copy_only=False)
    rows = np.zeros((len(texts), len(labels)), np.int64)
    at = place.fill_null(0).to_numpy(), label.to_numpy()
    np.add.at(rows, (at[0][there], at[1][there]), counts[there])
    return _to_hierarchy(texts, _widen(_merge_pairs(rows), len(texts), fan_out), root)


def _require_fan_out(fan_out: int) -> None:
    if fan_out < 2:
        raise InputError("fan_out: must be at least 2")


def information(counts: Ints) -> Ints:
    """int64[...]. c log2(c) for each count c, in units of 2^-10. Sums of integers are exact in any
    order."""
    units: Ints = np.rint(counts * np.log2(np.maximum(counts, 1)) * 1024).astype(np.int64)
    return units


def _merge_pairs(rows: Ints) -> list[list[int]]:
    """Merges pairs of nodes until one is left. A group keeps the index of its first value, so that
    indices are in the order of first texts.

    Args:
        rows: int64[n, classes]. The rows of each value and class.

    Returns:
        The pairs that become the nodes n, n + 1, ...
    """
    n = len(rows)
    rows, node = rows.copy(), list(range(n))
    content = _content(rows)
    loss = np.full((n, n), _NEVER)
    for i in range(n):
        loss[i, i + 1 :] = _content(rows[i] + rows[i + 1 :]) - content[i] - content[i + 1 :]
    least = loss.min(axis=1)
    merges = []
    for _ in range(n - 1):
        i, j = _best_pair(loss, least, rows.sum(axis=1))
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
    """The number of rows times the entropy of their classes, which are the last axis."""
    content: Ints = information(rows.sum(axis=-1)) - information(rows).sum(axis=-1)
    return content


def _best_pair(loss: Ints, least: Ints, n_rows: Ints) -> tuple[int, int]:
    """The pair with the least loss; of equal pairs the one with the fewest rows, then the first.

    Args:
        loss: int64[n, n]. The loss of each pair.
        least: int64[n]. The minimum of each row of `loss`.
        n_rows: int64[n]. The rows of each group.
    """
    candidates = np.flatnonzero(least == least.min())
    first, second = np.nonzero(loss[candidates] == least.min())
    best = np.argmin(n_rows[candidates[first]] + n_rows[second])
    return int(candidates[first[best]]), int(second[best])


def _widen(merges: Sequence[Sequence[int]], n: int, fan_out: int) -> list[list[int]]:
    """Gives each node up to `fan_out` children. Nodes that lose their place have no parent then."""
    below = []
    for pair in merges:
        children = list(pair)
        while len(children) < fan_out and max(children) >= n:
            children += merges[_take_last(children) - n]
        below.append(children)
    return below


def _take_last(nodes: list[int]) -> int:
    """Removes the node that was merged last from a list, and returns it."""
    node = max(nodes)
    nodes.remove(node)
    return node


def _to_hierarchy(texts: Sequence[str], below: Sequence[Sequence[int]], root: str) -> Hierarchy:
    """The hierarchy over sorted texts. Siblings are in the order of their first text.

    Args:
        texts: The texts of the leaves 0..n-1.
        below: The children of the nodes n, n + 1, ... Children come before their parent, and the
            last node is the root.
        root: The name of the root.
    """
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
                todo.append((child, tree.add(_unused_name(name, used), number)))
    return Hierarchy.of(tree)


def _group_name(
    texts: Sequence[str], below: Sequence[Sequence[int]], node: int, first: int, size: int
) -> str:
    """A name such as {a, b}, or {a and 5 more}. In a tree, only one group has this first value and
    this number of values."""
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


def _unused_name(name: str, names: set[str]) -> str:
    """The name, with a number if it is in use. Values may look like names, or agree in their first
    characters."""
    unused, number = name, 1
    while unused in names:
        number += 1
        unused = f"{name} ({number})"
    names.add(unused)
    return unused

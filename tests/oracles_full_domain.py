"""Full-domain recoding as it is defined: all nodes of the lattice, one by one; and hierarchies
with branches of all lengths to try it on."""

from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from anonlib.arrays import GRID, Ints
from anonlib.hierarchy.tree import Tree
from anonlib.table.block import Block


class Plain(NamedTuple):
    """A node: the steps of loss, the rows that it suppresses, what each row is released as."""

    heights: tuple[int, ...]
    loss: int
    suppressed: int
    released: list[tuple[int, ...] | None]


def released_at(tree: Tree, code: int, height: int) -> int:
    """The highest node above a code, or itself, that is no higher."""
    node, found = code, code
    while node != tree.parent[node]:
        node = int(tree.parent[node])
        if tree.heights[node] <= height:
            found = node
    return found


def trees_of(block: Block) -> list[Tree]:
    return [block.tree(j) for j in range(block.nominal.shape[1])]


def at_node(block: Block, heights: tuple[int, ...]) -> Plain:
    weight = [1] * block.n if block.weight is None else block.weight.tolist()
    columns = [
        [released_at(tree, code, h) for code in range(size)]
        for tree, size, h in zip(trees_of(block), block.n_categories.tolist(), heights, strict=True)
    ]
    rows = [
        tuple(column[code] for column, code in zip(columns, row, strict=True))
        for row in block.nominal.tolist()
    ]
    number = {nodes: i for i, nodes in enumerate(dict.fromkeys(rows))}
    holds = block.holds(np.array([number[nodes] for nodes in rows]), len(number))
    released = [nodes if holds[number[nodes]] else None for nodes in rows]
    steps = [[round(loss / GRID) for loss in tree.loss.tolist()] for tree in trees_of(block)]
    varying = [j for j, size in enumerate(block.n_categories.tolist()) if size > 1]
    loss = suppressed = 0
    for nodes, rows_of in zip(released, weight, strict=True):
        if nodes is None:
            suppressed += rows_of
            loss += rows_of * len(varying) * round(1 / GRID)
        else:
            loss += rows_of * sum(steps[j][nodes[j]] for j in varying)
    return Plain(heights, loss, suppressed, released)


def full_domain_plain(block: Block) -> Plain:
    """The best of all nodes."""
    tops = [int(tree.heights[-1]) for tree in trees_of(block)]
    varies = (block.n_categories > 1).tolist()
    ways = product(*(range(top * each + 1) for top, each in zip(tops, varies, strict=True)))
    nodes = (at_node(block, heights) for heights in ways)
    allowed = (node for node in nodes if node.suppressed <= block.may_suppress)
    return min(allowed, key=lambda node: (node.loss, sum(node.heights), node.heights))


def ragged_tree(random: Any, c: int) -> Tree:
    """A tree over c codes: groups of one to three neighbours, of any height, become one until one
    is left. The data lack leaves, and levels, of some of them."""
    top, parent = list(range(c)), [-1] * c
    low, high, leaves, height = [*range(c)], [*range(1, c + 1)], [1] * c, [0] * c
    while len(top) > 1 or len(parent) == c:
        at = int(random.integers(len(top)))
        group = top[at : at + int(random.choice([1, 2, 3], p=[0.1, 0.6, 0.3]))]
        node = len(parent)
        for each in group:
            parent[each] = node
        parent.append(node)
        low.append(low[group[0]])
        high.append(high[group[-1]])
        leaves.append(sum(leaves[each] for each in group) + int(random.integers(0, 2)))
        height.append(
            max(height[each] for each in group) + int(random.choice([1, 2], p=[0.8, 0.2]))
        )
        top[at : at + len(group)] = [node]
    loss = (np.array(leaves) - 1) / max(leaves[-1] - 1, 1)
    loss[-1] = 1.0
    arrays = (np.array(each, np.int64) for each in (parent, low, high))
    return Tree(*arrays, loss, np.array(height))


def generalizable(block: Block, random: Any) -> Block:
    """The block without its numeric columns, with hierarchies of most of the nominal ones, of
    which it keeps three, and its rows in order."""
    block = replace(block, nominal=block.nominal[:, :3], n_categories=block.n_categories[:3])
    order = np.lexsort(block.nominal.T) if block.nominal.shape[1] else np.arange(block.n)
    trees = [
        ragged_tree(random, int(c)) if random.random() < 0.7 else None for c in block.n_categories
    ]
    return replace(
        block,
        numeric=np.zeros((block.n, 0)),
        widths=np.zeros(0),
        ranks=(),
        nominal=block.nominal[order],
        sensitive=block.sensitive[order],
        unit=None if block.unit is None else block.unit[order],
        target=None if block.target is None else block.target[order],
        trees=tuple(trees),
    )


def classes_of(released: list[tuple[int, ...] | None]) -> Ints:
    """The cells of rows that are released alike, -1 of those that are not."""
    number: dict[Any, int] = {}
    return np.array(
        [-1 if nodes is None else number.setdefault(nodes, len(number)) for nodes in released],
        np.int64,
    )

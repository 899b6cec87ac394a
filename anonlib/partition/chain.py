"""Runs the steps of a config: grows their forest on a sample, and cuts a table in memory into
blocks."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from anonlib.arrays import Ints
from anonlib.partition import (
    CutTree,
    Grower,
    Leaf,
    Partitioner,
    Sample,
    TaskPartitioner,
    TreePartitioner,
)
from anonlib.partition.kmeans import KMeansPartitioner
from anonlib.table.block import Block, part

#: The size of leaves aims at this share of max_rows, because a sample only estimates it.
FILL = 0.5


class Forest(NamedTuple):
    """A forest on a sample of m rows.

    Attributes:
        tree: All trees; leaves are numbered across trees.
        leaf: int64[m]. The leaf of each sampled row.
    """

    tree: CutTree
    leaf: Ints


def grow(
    sample: Sample,
    steps: Sequence[Partitioner],
    max_rows: int,
    seed: int,
    root: Ints,
    n_rows: Ints,
) -> Forest:
    """Grows the forest of all steps that grow trees.

    Steps that bound leaves cut only leaves of more than max_rows rows. If there is no such step,
    k-means is added at the end, unless a step keeps the table whole.

    Args:
        sample: m sampled rows.
        steps: The steps of the config.
        max_rows: The most rows of a leaf, in rows of the table, estimated from the sample.
        seed: The seed of the steps.
        root: int64[m]. The tree of each sampled row.
        n_rows: int64[r]. The rows of the table in each tree.
    """
    grower = Grower(len(n_rows))
    members = np.split(np.argsort(root, kind="stable"), np.cumsum(np.bincount(root))[:-1])
    rows_of = dict(enumerate(members)) if len(root) else {}
    chain = [step for step in steps if isinstance(step, TreePartitioner)]
    if not any(step.bounds for step in chain) and all(
        step.max_block_rows is None for step in steps
    ):
        chain.append(KMeansPartitioner())
    leaf_of = np.zeros(len(root), np.int64)
    for tree, n in enumerate(n_rows.tolist()):
        leaves = [Leaf(tree, rows_of.get(tree, np.zeros(0, np.int64)))]
        share = len(leaves[0].rows) / max(n, 1)
        for step in chain:
            grown = []
            for leaf in leaves:
                if step.bounds and len(leaf.rows) <= max_rows * share:
                    grown.append(leaf)
                    continue
                grown += step.grow(sample, grower, leaf, FILL * max_rows * share, seed)
            leaves = grown
        for leaf in leaves:
            leaf_of[leaf.rows] = leaf.id
    numbers = grower.leaves()
    ids = np.array([numbers[id] for id in leaf_of.tolist()], np.int64)
    return Forest(grower.tree(), ids)


def parts(block: Block, steps: Sequence[Partitioner], seed: int) -> list[Ints]:
    """Splits a block by the step that works in tasks. Without such a step, there is one part.

    Returns:
        The rows of each part, ascending.
    """
    for step in steps:
        if isinstance(step, TaskPartitioner):
            return step.parts(block, seed)
    return [np.arange(block.n)]


def blocks(
    block: Block, steps: Sequence[Partitioner], max_rows: int, seed: int, place: Ints
) -> list[Ints]:
    """Cuts a table in memory into blocks. Controllers are ignored.

    The blocks are exactly those of a release whose sample is the whole table, if no block needs
    repair.

    Args:
        block: All rows of the table.
        steps: The steps of the config.
        max_rows: The most rows of a block.
        seed: The seed of the steps.
        place: int64[n]. See `Sample`.

    Returns:
        The rows of each block, ascending.
    """
    sample = Sample(block, place, 1.0)
    grown = grow(sample, steps, max_rows, seed, np.zeros(block.n, np.int64), np.array([block.n]))
    found = []
    for leaf in range(int(grown.leaf.max(initial=-1)) + 1):
        rows = np.flatnonzero(grown.leaf == leaf)
        found += [rows[inner] for inner in parts(part(block, rows), steps, seed) if len(rows)]
    return found

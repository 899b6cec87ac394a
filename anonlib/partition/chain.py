"""Runs the steps of a config: grows their forest on a sample, and cuts a table in memory into
blocks."""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from anonlib.arrays import Ints
from anonlib.errors import ContractError
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
from anonlib.registry import run_plugin
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
    grower = Grower(len(n_rows), sample)
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
                most = FILL * max_rows * share
                found = run_plugin(step, partial(step.grow, sample, grower, leaf, most, seed))
                grown += _check_leaves(step, found, leaf, grower)
            leaves = grown
        for leaf in leaves:
            leaf_of[leaf.rows] = leaf.id
    numbers = grower.leaves()
    ids = np.array([numbers[id] for id in leaf_of.tolist()], np.int64)
    return Forest(grower.tree(), ids)


def _check_leaves(step: TreePartitioner, answer: Any, leaf: Leaf, grower: Grower) -> list[Leaf]:
    """The leaves that a step gave in place of one, and checks them."""
    is_list = isinstance(answer, list) and all(
        isinstance(each, Leaf) and grower.has_leaf(each.id) and isinstance(each.rows, np.ndarray)
        for each in answer
    )
    rows = np.concatenate([each.rows for each in answer]) if is_list and answer else leaf.rows[:0]
    if not is_list or not np.array_equal(np.sort(rows), np.sort(leaf.rows)):
        raise ContractError(
            f"partitioner {step.type}: must give a list of leaves of the tree; each row of the "
            "leaf that they replace must be in one"
        )
    return [*answer]


def cut_parts(block: Block, steps: Sequence[Partitioner], seed: int) -> list[Ints]:
    """Splits a block by the step that works in tasks. Without such a step, there is one part.

    Returns:
        The rows of each part, ascending. Each row is in one part.

    Raises:
        ContractError: The step failed, or gave something else.
    """
    for step in steps:
        if isinstance(step, TaskPartitioner):
            return _check_parts(step, run_plugin(step, partial(step.parts, block, seed)), block.n)
    return [np.arange(block.n)]


def _check_parts(step: TaskPartitioner, answer: Any, n: int) -> list[Ints]:
    """The parts that a step gave for a block of n rows, and checks them."""
    is_list = isinstance(answer, list) and all(map(_is_rows, answer))
    rows = np.concatenate(answer) if is_list and answer else np.zeros(0, np.int64)
    if not is_list or len(rows) != n or (np.sort(rows) != np.arange(n)).any():
        raise ContractError(
            f"partitioner {step.type}: must give a list of parts, each an array of ascending row "
            f"numbers; each of the {n} rows must be in one part"
        )
    return [inner.astype(np.int64, copy=False) for inner in answer]


def _is_rows(inner: Any) -> bool:
    """Whether something is an array of ascending integers, and not empty."""
    is_integers = isinstance(inner, np.ndarray) and inner.ndim == 1 and inner.dtype.kind in "iu"
    return is_integers and len(inner) > 0 and bool((inner[1:] > inner[:-1]).all())


def cut_blocks(
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
        if len(rows):
            found += [rows[inner] for inner in cut_parts(part(block, rows), steps, seed)]
    return found

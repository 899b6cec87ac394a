"""The leaves of a plan, the same for every engine: those of the trees, and one of its own for each
tuple that is too frequent for a leaf. Tasks bisect leaves that are a little too large, and merge
those that fail within a pool of neighbours. Rows need to be sent to pools only: tasks find their
leaves."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from anonlib.arrays import Ints
from anonlib.partition import CutTree, Partitioner, Sample
from anonlib.partition.chain import grow
from anonlib.partition.cuts import TreeShape
from anonlib.partition.repair import IN_TASK, Leaves, find_centers

#: A pool has at least this many blocks of max_rows: most failing ones find another to merge with.
BLOCKS_PER_POOL = 4
#: Pools are made of subtrees, which few cuts find. A subtree has at most half the rows of a small
#: pool or, if that is more, the lesser of this share of the table and this many rows. So tasks have
#: several pools, and there are pools for many tasks. Numbers of tasks or cores do not count: the
#: same rows have the same pools everywhere.
SUBTREE_SHARE, SUBTREE_ROWS = 1 / 32, 62_500


class Pools(NamedTuple):
    """Leaves that a task gets together: neighbours in the forest.

    Attributes:
        trunk: The forest down to the subtrees that pools are made of.
        of_trunk: int64[t]. The pool of each leaf of the trunk, 0..p-1.
        of_leaf: int64[b]. The pool of each leaf of the forest.
    """

    trunk: CutTree
    of_trunk: Ints
    of_leaf: Ints


@dataclass(frozen=True)
class LeafPlan:
    """The b leaves that the m rows of a sample give. An engine sends all rows to them.

    Attributes:
        tree: The forest.
        heavy: Hash of a tuple with a leaf of its own -> this leaf. They come after those of `tree`.
        leaf: int64[m]. The leaf of each sampled row.
        sizes: int64[b]. The rows of the table in each leaf, estimated.
        leaves: The leaves, as `repair` gets them.
        pools: The pools of the leaves, where tasks may count leaves and merge those that fail
            within their pool. None where all rows must be counted, and for a single leaf.
        max_rows: The rows of a block; None if leaves stay whole.
    """

    tree: CutTree
    heavy: dict[int, int]
    leaf: Ints
    sizes: Ints
    leaves: Leaves
    pools: Pools | None
    max_rows: int | None


def plan_leaves(
    sample: Sample,
    root: Ints,
    tuples: Ints,
    n_rows: Ints,
    controller: Ints | None,
    steps: Sequence[Partitioner],
    max_rows: int,
    seed: int,
) -> LeafPlan:
    """Plans the leaves of a table.

    Tasks can't merge leaves on their own if a model looks at the counts of values or at several
    columns, if there are data controllers, or if a leaf is too large to be bisected.

    Args:
        sample: m sampled rows.
        root: int64[m]. The tree of each: its controller, or 0.
        tuples: int64[m]. The hash of each row's tuple.
        n_rows: int64[r]. The rows of the table in each tree.
        controller: int64[r] or None. The controller that the rows of each tree count for; -1 if
            they are suppressed. None without controllers.
        steps: The steps of the config.
        max_rows: The most rows of a block.
        seed: The seed of the steps.
    """
    block, share = sample.block, sample.share
    tree, leaf = grow(sample, steps, max_rows, seed, root, n_rows)
    whole = any(step.max_block_rows for step in steps)
    heavy: dict[int, int] = {}
    if not whole:
        heavy, leaf = find_heavy(tuples, IN_TASK * max_rows * share, leaf, tree.n_leaves)
    n_leaves = tree.n_leaves + len(heavy)
    sizes = np.rint(np.bincount(leaf, minlength=n_leaves) / share).astype(np.int64)
    roots = np.array([root[leaf == id][0] for id in heavy.values()], np.int64)
    its_root = np.concatenate([tree.root_of_leaf, roots])
    leaves = Leaves(
        tree,
        its_root if controller is None else controller[its_root],
        find_centers(leaf, sample.coordinates, n_leaves),
        tuple(heavy.values()),
    )
    small = not heavy and int(sizes.max()) <= IN_TASK * max_rows
    plain = not block.joint and not any(model.looks_at == "counts" for model in block.models)
    pools = None
    if small and plain and controller is None and n_leaves > 1:
        pools = make_pools(tree, sizes, max_rows)
    return LeafPlan(tree, heavy, leaf, sizes, leaves, pools, None if whole else max_rows)


def make_pools(tree: CutTree, sizes: Ints, max_rows: int) -> Pools:
    """The pools of a forest's leaves.

    Args:
        tree: The forest.
        sizes: int64[b]. The rows of each leaf.
        max_rows: The most rows of a block.
    """
    least = BLOCKS_PER_POOL * max_rows
    most = max(least // 2, int(min(SUBTREE_ROWS, SUBTREE_SHARE * sizes.sum())))
    trunk, branch = cut_off(tree, sizes, most)
    of_trunk = group_leaves(trunk, np.bincount(branch, sizes).astype(np.int64), least)
    return Pools(trunk, of_trunk, of_trunk[branch])


def cut_off(tree: CutTree, sizes: Ints, most: int) -> tuple[CutTree, Ints]:
    """Makes leaves of a forest's subtrees that have few rows.

    Args:
        tree: The forest.
        sizes: int64[b]. The rows of each leaf.
        most: The most rows of a subtree that becomes a leaf.

    Returns:
        The new forest.
        int64[b]. Its leaf for each leaf of the old one.
    """
    sides = np.column_stack([tree.left, tree.right]).tolist()
    rows = [0] * len(sides)
    for node in reversed(range(len(sides))):  # children come after their node
        rows[node] = sum(int(sizes[-1 - c]) if c < 0 else rows[c] for c in sides[node])
    kept = [node for node, n in enumerate(rows) if n > most]
    number = {node: i for i, node in enumerate(kept)}
    ends = [c for node in kept for c in sides[node] if c not in number]
    ends += [root for root in tree.roots.tolist() if root not in number]
    number |= {end: -1 - i for i, end in enumerate(ends)}
    branch = np.empty(len(sizes), np.int64)
    for i, end in enumerate(ends):
        below = [end]
        while below:
            child = below.pop()
            if child < 0:
                branch[-1 - child] = i
            else:
                below += sides[child]
    left, right = np.array([[number[c] for c in sides[node]] for node in kept]).reshape(-1, 2).T
    roots = np.array([number[root] for root in tree.roots.tolist()], np.int32)
    cuts = tuple(tree.cuts[node] for node in kept)
    return CutTree(cuts, left.astype(np.int32), right.astype(np.int32), roots), branch


def group_leaves(cuts: TreeShape, sizes: Ints, least: int) -> Ints:
    """int64[leaves]. The pool of each leaf: neighbours in the tree that have together `least` rows
    or more."""
    order, below = [], cuts.roots[::-1].tolist()
    while below:
        node = below.pop()
        if node < 0:
            order.append(-1 - node)
        else:
            below += [int(cuts.right[node]), int(cuts.left[node])]
    pool, n_pools, total = np.empty(len(sizes), np.int64), 0, 0
    for leaf in order:
        pool[leaf] = n_pools
        total += int(sizes[leaf])
        if total >= least:
            n_pools, total = n_pools + 1, 0
    # The last ones may be too few for a pool.
    return np.minimum(pool, max(n_pools - 1, 0))


def find_heavy(tuples: Ints, most: float, leaf: Ints, n_leaves: int) -> tuple[dict[int, int], Ints]:
    """The tuples of more than `most` sampled rows, by hash, with leaves of their own, and the leaf
    of each sampled row."""
    unique, count = np.unique(tuples, return_counts=True)
    many = unique[count > most].tolist()
    heavy = {tuple_: n_leaves + i for i, tuple_ in enumerate(many)}
    leaf = leaf.copy()
    for tuple_, id in heavy.items():
        leaf[tuples == tuple_] = id
    return heavy, leaf

"""The leaves of a plan, the same for every engine: those of the trees, and one of its own for each
tuple that is too frequent for a leaf. Tasks bisect leaves that are a little too large, and merge
those that fail within a pool of neighbours."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anonlib.arrays import Ints
from anonlib.partition import CutTree, Partitioner, Sample
from anonlib.partition.chain import grow
from anonlib.partition.cuts import Cuts
from anonlib.partition.repair import IN_TASK, Leaves, find_centers

#: A pool has at least this many blocks of max_rows: most failing ones find another to merge with,
#: and tasks have several pools.
BLOCKS_PER_POOL = 4


@dataclass(frozen=True)
class LeafPlan:
    """The b leaves that the m rows of a sample give. An engine sends all rows to them.

    Attributes:
        tree: The forest.
        heavy: Hash of a tuple with a leaf of its own -> this leaf. They come after those of `tree`.
        leaf: int64[m]. The leaf of each sampled row.
        sizes: int64[b]. The rows of the table in each leaf, estimated.
        leaves: The leaves, as `repair` gets them.
        pools: int64[b] or None. The pool of each leaf, where tasks may count leaves and merge those
            that fail within their pool. None where all rows must be counted, and for a single leaf.
        max_rows: The rows of a block; None if leaves stay whole.
    """

    tree: CutTree
    heavy: dict[int, int]
    leaf: Ints
    sizes: Ints
    leaves: Leaves
    pools: Ints | None
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
        pools = group_leaves(tree, sizes, BLOCKS_PER_POOL * max_rows)
    return LeafPlan(tree, heavy, leaf, sizes, leaves, pools, None if whole else max_rows)


def group_leaves(cuts: Cuts | CutTree, sizes: Ints, least: int) -> Ints:
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

"""What tasks do with the leaves of a plan: they merge leaves that fail within a unit of neighbours,
bisect large leaves, and leave tuples that are too frequent for a leaf to a leaf of their own."""

import numpy as np

from anonlib.arrays import Ints
from anonlib.partition import CutTree
from anonlib.partition.cuts import Cuts

#: Blocks of up to this many times max_rows are bisected in their task; larger ones are dealt out.
IN_TASK = 4
#: A unit has at least this many blocks of max_rows: most failing ones find another to merge with,
#: and tasks have several units.
BLOCKS_PER_UNIT = 4


def group_leaves(cuts: Cuts | CutTree, sizes: Ints, least: int) -> Ints:
    """int64[leaves]. The unit of each leaf: neighbours in the tree that have together `least` rows
    or more."""
    order, below = [], cuts.roots[::-1].tolist()
    while below:
        node = below.pop()
        if node < 0:
            order.append(-1 - node)
        else:
            below += [int(cuts.right[node]), int(cuts.left[node])]
    unit, n_units, total = np.empty(len(sizes), np.int64), 0, 0
    for leaf in order:
        unit[leaf] = n_units
        total += int(sizes[leaf])
        if total >= least:
            n_units, total = n_units + 1, 0
    # The last ones may be too few for a unit.
    return np.minimum(unit, max(n_units - 1, 0))


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

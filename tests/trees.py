"""Trees whose cuts go through rows, and a plain walk of them."""

import numpy as np

from anonlib.arrays import Ints
from anonlib.partition import Among, Below, CutTree, Grower, Plane, Sample
from anonlib.partition.cuts import score_rows, with_threshold


def grow_on_ties(sample: Sample, random: np.random.Generator, *, mixed: bool) -> CutTree:
    """Planes of random weights through rows, and cuts of single columns if `mixed`."""
    grower, n = Grower(1, sample), sample.coordinates.shape[1]
    p, q = sample.block.numeric.shape[1], sample.block.nominal.shape[1]
    at = {0: np.arange(sample.block.n)}
    for turn in range(40):
        leaf = max(at, key=lambda leaf: len(at[leaf]))
        rows = at.pop(leaf)
        cut: Plane | Below | Among
        if mixed and turn % 3 == 1:
            column = int(random.integers(p + q))
            cut = Below(column, float(random.choice(sample.values[rows, column])))
        elif mixed and turn % 3 == 2:
            column = p + int(random.integers(q))
            codes = np.unique(random.choice(sample.values[rows, column], 3)).astype(np.int64)
            cut = Among(column, codes)
        else:
            weights = random.normal(size=n).astype(np.float32)
            points = sample.points[rows]
            score = score_rows(with_threshold(weights[None], np.zeros(1)), points)
            cut = Plane(weights, float(random.choice(score)))
        side = sample.left(cut, rows)
        left, right = grower.cut(leaf, cut)
        at |= {left: rows[side], right: rows[~side]}
    return grower.tree()


def send_by_sample(tree: CutTree, sample: Sample) -> Ints:
    """The leaf of each row, cut by cut, as trees grow."""
    leaf = np.empty(sample.block.n, np.int64)
    below = [(int(tree.roots[0]), np.arange(sample.block.n))]
    while below:
        node, rows = below.pop()
        if node < 0:
            leaf[rows] = -1 - node
        else:
            side = sample.left(tree.cuts[node], rows)
            below += [(int(tree.left[node]), rows[side]), (int(tree.right[node]), rows[~side])]
    return leaf

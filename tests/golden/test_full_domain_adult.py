"""Full-domain recoding of Adult with the hierarchies of ARX's example: the node of least loss."""

from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest

from anonlib.arrays import GRID
from anonlib.kernels.full_domain.search import HeightLattice, LatticeSearch
from anonlib.privacy.k_anonymity import KAnonymity
from anonlib.privacy.l_diversity import LDiversity
from anonlib.table.block import Block
from tests.arx import NAMES, adult
from tests.support import data_dir

FOUR = ("age", "marital-status", "education", "occupation")


@cache
def block_of(names: tuple[str, ...]) -> Block:
    return adult(data_dir(), names)


def case(names: tuple[str, ...], k: int, l: int, may_suppress: int) -> Block:  # noqa: E741
    block = replace(block_of(names), models=(KAnonymity(k=k),), may_suppress=may_suppress)
    if l == 1:
        return replace(block, protected=(), sensitive=block.sensitive[:, :0])
    return replace(block, models=(*block.models, LDiversity(l=l, attribute="salary-class")))


def at_all_nodes(block: Block, label: Any) -> tuple[int, int, tuple[int, ...]]:
    """The least loss, in steps, and the sum of the heights that have it, and these."""
    best: tuple[int, int, tuple[int, ...]] = (2**62, 0, ())
    weight = block.weight
    assert weight is not None
    trees = [block.tree(j) for j in range(block.nominal.shape[1])]
    for heights in product(*(range(int(tree.heights[-1]) + 1) for tree in trees)):
        nodes = [
            tree.raised(codes.astype(np.int64), h)
            for tree, codes, h in zip(trees, block.nominal.T, heights, strict=True)
        ]
        table = pd.DataFrame(dict(enumerate(nodes))).assign(rows=weight, label=label)
        by = table.groupby(list(range(len(nodes))))
        kept = by["rows"].transform("sum") >= block.min_rows
        if block.protected:
            kept &= by["label"].transform("nunique") >= 2
        kept = kept.to_numpy()
        loss = sum(np.rint(t.loss[v] / GRID) for t, v in zip(trees, nodes, strict=True))
        lost = np.where(kept, loss, len(heights) / GRID)
        if weight[~kept].sum() <= block.may_suppress:
            best = min(best, (int(weight @ lost), sum(heights), heights))
    return best


@pytest.mark.parametrize("may_suppress", [0, 603, 3016])
@pytest.mark.parametrize(("k", "l"), [(5, 1), (10, 2)])
def test_of_four_columns(k: int, l: int, may_suppress: int) -> None:  # noqa: E741
    block = case(FOUR, k, l, may_suppress)
    search = LatticeSearch(HeightLattice(block))
    found = search.run()
    expected = at_all_nodes(block, block_of(FOUR).sensitive[:, 0])
    assert (search.least, sum(found), found) == expected


@pytest.mark.parametrize(
    ("k", "l", "may_suppress", "heights"),
    [
        (5, 1, 0, (0, 4, 0, 2, 3, 2, 2, 1)),
        (5, 1, 603, (0, 3, 0, 1, 2, 1, 1, 2)),
        (10, 1, 3016, (0, 3, 0, 1, 1, 1, 1, 1)),
        (10, 2, 603, (0, 4, 0, 1, 3, 1, 0, 2)),
    ],
)
def test_of_all_columns(k: int, l: int, may_suppress: int, heights: Any) -> None:  # noqa: E741
    """What `scripts/bench full_domain` finds by looking at all 6,480 nodes."""
    search = LatticeSearch(HeightLattice(case(NAMES, k, l, may_suppress)))
    assert search.run() == heights
    assert search.lattice.n_looks < 6480 / 10

"""MDAV-generic gives the very cells of its plain version."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonlib.arrays import snap
from anonlib.hierarchy.tree import Tree
from anonlib.kernels.mdav import Mdav
from anonlib.kernels.mdav_generic import MdavGeneric
from anonlib.table.block import Block, Ranks
from tests.oracles import merge_plain, numbered
from tests.oracles_generic import lost, mdav_generic_plain
from tests.support import blocks, make_block


def random_tree(random: Any, c: int) -> Tree:
    """A tree over c codes: one to three neighbours in a group, and so on up to the root."""
    runs, parent, top = [(i, i + 1) for i in range(c)], [-1] * c, list(range(c))
    while len(top) > 1 or len(runs) == c:
        above = []
        while top:
            size = int(random.integers(1, 4))
            group, top = top[:size], top[size:]
            for node in group:
                parent[node] = len(runs)
            above.append(len(runs))
            runs.append((runs[group[0]][0], runs[group[-1]][1]))
            parent.append(-1)
        top = above
    parent[-1] = len(runs) - 1
    low, high = np.array(runs).T
    loss = (high - low - 1) / max(c - 1, 1)
    loss[-1] = 1.0
    return Tree(np.array(parent), low, high, loss)


@st.composite
def mixed_blocks(draw: st.DrawFn, max_columns: int = 20, max_rows: int = 300) -> Block:
    """Blocks whose numeric columns are in part ranks, and nominal ones in part with hierarchies."""
    block = draw(blocks(max_columns=max_columns, max_rows=max_rows))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    numeric, widths = block.numeric.copy(), block.widths.copy()
    ranks: list[Ranks | None] = [None] * len(widths)
    for j in np.flatnonzero(random.random(len(widths)) < draw(st.sampled_from([0.0, 0.6]))):
        n = int(random.integers(1, 7))
        ends = snap(np.sort(random.normal(size=2)) + np.arange(2)) if n > 1 else np.zeros(2)
        step = (ends[1] - ends[0]) / (n - 1) if n > 1 else 1.0
        numeric[:, j] = snap(ends[0] + step * random.integers(0, n, block.n))
        widths[j] = ends[1] - ends[0]
        ranks[j] = Ranks(n, float(ends[0]), float(step))
    trees = [
        random_tree(random, int(c)) if random.random() < 0.7 else None for c in block.n_categories
    ]
    given_trees = () if all(tree is None for tree in trees) else tuple(trees)
    given_ranks = () if all(each is None for each in ranks) else tuple(ranks)
    return replace(block, numeric=numeric, widths=widths, ranks=given_ranks, trees=given_trees)


@pytest.mark.parametrize("ordinal", ["median", "convex_median"])
@pytest.mark.parametrize("nominal", ["equal", "hierarchy"])
@given(mixed_blocks())
@settings(max_examples=100)
def test_mdav_generic(ordinal: Any, nominal: Any, block: Block) -> None:
    plain = merge_plain(block, mdav_generic_plain(block, ordinal, nominal))
    cells = MdavGeneric(ordinal=ordinal, nominal=nominal).cells(block)
    assert cells.tolist() == numbered(plain, block.n).tolist()


@given(blocks())
@settings(max_examples=50)
def test_continuous_columns_alone_are_mdav(block: Block) -> None:
    alone = replace(block, nominal=block.nominal[:, :0], n_categories=block.n_categories[:0])
    expected = Mdav(variant="generic").cells(alone)
    assert MdavGeneric().cells(alone).tolist() == expected.tolist()


def ordinal_block(ranks: list[int], n: int, k: int) -> Block:
    block = make_block(np.array(ranks, np.float64)[:, None], k=k)
    return replace(block, ranks=(Ranks(n, 0.0, 1.0),))


def test_the_convex_median_makes_up_for_both_sides() -> None:
    # 0 four times, 6 three times: the median is 0, so 6 is farthest. With all between raised to
    # three times, it is 3: both are as far, and the first row's cell is made first.
    block = ordinal_block([0, 0, 0, 0, 6, 6, 6], 7, k=3)
    assert MdavGeneric().cells(block).tolist() == [0, 0, 0, 0, 1, 1, 1]
    assert MdavGeneric(ordinal="convex_median").cells(block).tolist() == [0, 0, 0, 1, 1, 1, 1]


def test_a_hierarchy_brings_relatives_together() -> None:
    # Codes 0 and 1 are siblings, so are 2 and 3; by equality alone, all are as far.
    tree = Tree(
        np.array([4, 4, 5, 5, 6, 6, 6]),
        np.array([0, 1, 2, 3, 0, 2, 0]),
        np.array([1, 2, 3, 4, 2, 4, 4]),
        np.array([0, 0, 0, 0, 1 / 3, 1 / 3, 1]),
    )
    assert [lost(tree, 0, c) for c in range(4)] == [0, 1 / 3, 1, 1]
    block = make_block(np.zeros((4, 0)), np.array([[0], [2], [1], [3]]), k=2)
    block = replace(block, trees=(tree,))
    assert MdavGeneric().cells(block).tolist() == [0, 0, 1, 1]
    assert MdavGeneric(nominal="hierarchy").cells(block).tolist() == [0, 1, 0, 1]

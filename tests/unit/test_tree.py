"""Trees over a block's codes: heights, common nodes, and values raised to a height."""

from itertools import product

import numpy as np
import pytest

from anonlib.hierarchy import Hierarchy
from anonlib.hierarchy.tree import Tree
from anonlib.table.block import Block
from tests.oracles_full_domain import ragged_tree, released_at

#: 0 and 1 make 4; 4 and 2 make 5; 5 and 3 make the root, 6.
STAIRS = Tree(
    np.array([4, 4, 5, 6, 5, 6, 6]),
    np.array([0, 1, 2, 3, 0, 0, 0]),
    np.array([1, 2, 3, 4, 2, 3, 4]),
    np.array([0, 0, 0, 0, 1 / 3, 2 / 3, 1]),
)


def test_heights() -> None:
    assert STAIRS.heights.tolist() == [0, 0, 0, 0, 1, 2, 3]
    assert Tree.flat(2).heights.tolist() == [0, 0, 1]
    assert Tree.flat(0).heights.tolist() == [0]


def test_common() -> None:
    first, last = np.array([0, 0, 0, 0, 2, 3]), np.array([0, 1, 2, 3, 3, 3])
    assert STAIRS.common(first, last).tolist() == [0, 4, 5, 6, 6, 3]
    assert STAIRS.common(first[:0], last[:0]).tolist() == []


def test_raised() -> None:
    """A value stays what it is until the height of the first node above it."""
    rows = [STAIRS.raised(np.arange(4), h).tolist() for h in range(5)]
    assert rows == [[0, 1, 2, 3], [4, 4, 2, 3], [5, 5, 5, 3], [6] * 4, [6] * 4]
    assert STAIRS.raised(np.array([5, 4]), 1).tolist() == [5, 4]


@pytest.mark.parametrize("seed", range(20))
def test_raised_by_the_definition(seed: int) -> None:
    tree = ragged_tree(np.random.default_rng(seed), 7)
    for code, h in product(range(7), range(int(tree.heights[-1]) + 1)):
        assert tree.raised(np.array([code]), h)[0] == released_at(tree, code, h)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_values_that_the_data_lack_count(seed: int, missing: bool) -> None:
    """A height means the same in the data's tree as in the hierarchy that it is a part of."""
    random = np.random.default_rng(seed)
    tree = ragged_tree(random, 9)
    hierarchy = Hierarchy(tuple(map(str, range(len(tree.parent)))), tree)
    places = np.flatnonzero(random.random(9) < 0.5)
    made, codes = hierarchy.over(places, missing=missing), np.arange(len(places))
    assert made.heights[-1] == tree.heights[-1]
    for h, nodes in enumerate(hierarchy.levels(places)):
        found = made.raised(codes, h)
        assert made.heights[found].tolist() == tree.heights[nodes].tolist()
        assert made.loss[found].tolist() == tree.loss[nodes].tolist()
        if missing:
            assert made.raised(np.array([len(places)]), h).tolist() == [len(places)]
    whole = np.arange(len(places) + missing)
    assert set(made.raised(whole, int(tree.heights[-1])).tolist()) <= {len(made.parent) - 1}


def test_columns_without_a_hierarchy_are_flat() -> None:
    none = np.zeros((3, 0))
    codes = np.zeros((3, 2), np.int32)
    sizes = np.array([4, 3])
    block = Block(none, codes, none.astype(np.int32), None, np.zeros(0), sizes, ())
    assert block.tree(1).parent.tolist() == [3, 3, 3, 3]
    assert block.tree(1).loss.tolist() == [0, 0, 0, 1]
    block = Block(
        none, codes, none.astype(np.int32), None, np.zeros(0), sizes, (), trees=(STAIRS, None)
    )
    assert block.tree(0) is STAIRS
    assert len(block.tree(1).parent) == 4

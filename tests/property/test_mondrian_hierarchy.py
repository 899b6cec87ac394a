"""Mondrian along hierarchies gives the very cells of its plain version."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from pydantic import ValidationError

from anonlib.hierarchy.tree import Tree
from anonlib.kernels.mondrian import Mondrian
from anonlib.table.block import Block
from tests.oracles import numbered
from tests.oracles_hierarchy import mondrian_along_plain
from tests.property.test_kernels_generic import mixed_blocks
from tests.support import make_block

ALONG = Mondrian(nominal="hierarchy")
#: Two groups, of three and two codes.
TREE = Tree(
    np.array([5, 5, 5, 6, 6, 7, 7, 7]),
    np.array([0, 1, 2, 3, 4, 0, 3, 0]),
    np.array([1, 2, 3, 4, 5, 3, 5, 5]),
    np.array([0, 0, 0, 0, 0, 2 / 4, 1 / 4, 1]),
)


@given(mixed_blocks(max_columns=5))
@settings(max_examples=200)
def test_along_hierarchies(block: Block) -> None:
    cells = ALONG.cells(block)
    assert cells.tolist() == numbered(mondrian_along_plain(block), block.n).tolist()


@given(mixed_blocks())
@settings(max_examples=50)
def test_numeric_columns_alone_are_cut_at_medians(block: Block) -> None:
    none = block.n_categories[:0]
    alone = replace(block, nominal=block.nominal[:, :0], n_categories=none, trees=())
    assert ALONG.cells(alone).tolist() == Mondrian().cells(alone).tolist()


def of(codes: list[int], k: int) -> Block:
    codes = sorted(codes)
    return replace(
        make_block(np.zeros((len(codes), 0)), np.array(codes)[:, None], k=k),
        trees=(TREE,),
        n_categories=np.array([5]),
    )


def test_cells_are_tree_nodes() -> None:
    # By codes, the median cut would part the group of 0, 1 and 2.
    block = of([0] * 3 + [1] * 3 + [2] * 6 + [3] * 2 + [4] * 2, k=2)
    assert ALONG.cells(block).tolist() == [0] * 3 + [1] * 3 + [2] * 6 + [3] * 2 + [4] * 2
    block = of([0] * 6 + [1] * 6 + [2] + [3] * 2 + [4] * 2, k=3)
    assert Mondrian().cells(block).tolist()[5:8] == [0, 1, 1]
    assert ALONG.cells(block).tolist() == [0] * 13 + [1] * 4


def test_a_cut_with_one_part_that_fails_is_none() -> None:
    assert ALONG.cells(of([0] * 8 + [3], k=2)).tolist() == [0] * 9
    # Children without rows don't count.
    assert ALONG.cells(of([0] * 4 + [2] * 4, k=2)).tolist() == [0] * 4 + [1] * 4


def test_the_width_is_the_share_of_leaves() -> None:
    # Codes 3 and 4 are a quarter of the leaves apart, less than the half of the range.
    x = np.array([[0.0], [1.0], [0.0], [1.0]])
    block = replace(
        make_block(x, np.array([[3], [3], [4], [4]])),
        trees=(TREE,),
        n_categories=np.array([5]),
        widths=np.array([2.0]),
    )
    assert ALONG.cells(block).tolist() == [0, 1, 0, 1]
    assert ALONG.cells(replace(block, widths=np.array([5.0]))).tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("other", [{"mode": "relaxed"}, {"cut": "information_gain"}])
def test_goes_with_strict_medians_only(other: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="goes with mode: strict and cut: median only"):
        Mondrian(nominal="hierarchy", **other)

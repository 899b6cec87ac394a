"""Greedy gives the very cells of its plain version."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonlib.hierarchy.tree import Tree
from anonlib.kernels.greedy import Greedy
from anonlib.privacy import PrivacyModel
from anonlib.privacy.shares import make_reference
from anonlib.privacy.t_closeness import TCloseness
from anonlib.table.block import Block, part
from tests.oracles import numbered
from tests.oracles_hierarchy import greedy_plain
from tests.property.test_kernels_generic import mixed_blocks
from tests.support import make_block

every_loss = pytest.mark.parametrize("loss", ["nllm", "ncp", "entropy"])


def in_order(block: Block) -> Block:
    """Equal tuples side by side, as blocks are."""
    x = np.concatenate([block.numeric, block.nominal], axis=1)
    return part(block, np.unique(x, axis=0, return_inverse=True)[1].ravel().argsort(kind="stable"))


@st.composite
def greedy_blocks(draw: st.DrawFn) -> Block:
    """Blocks of all kinds of columns, in some with weights, in some with a relative model too."""
    block = in_order(draw(mixed_blocks(max_columns=6, max_rows=60)))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    if block.unit is None and draw(st.booleans()):
        block = replace(
            block, weight=random.integers(1, draw(st.integers(1, 9)), block.n, endpoint=True)
        )
    if block.protected and draw(st.booleans()):
        codes = block.sensitive[:, 0].astype(np.int64)
        weight = np.ones(block.n, np.int64) if block.weight is None else block.weight
        person = None if block.unit is None else np.repeat(block.unit, weight)
        reference = make_reference(np.repeat(codes, weight), int(codes.max()) + 1, person)
        close: PrivacyModel = TCloseness(t=draw(st.sampled_from([0.1, 0.3])), attribute="disease")
        references = {"disease": reference}
        block = replace(block, models=(*block.models, close), references=references)
    return block


@every_loss
@given(greedy_blocks())
@settings(max_examples=60)
def test_greedy(loss: Any, block: Block) -> None:
    cells = Greedy(loss=loss).cells(block)
    assert cells.tolist() == numbered(greedy_plain(block, loss), block.n).tolist()


@every_loss
@given(greedy_blocks())
@settings(max_examples=30)
def test_a_weight_is_as_many_rows(loss: Any, block: Block) -> None:
    weight = np.ones(block.n, np.int64) if block.weight is None else block.weight
    repeated = part(replace(block, weight=None), np.repeat(np.arange(block.n), weight))
    cells = Greedy(loss=loss).cells(block)
    assert np.repeat(cells, weight).tolist() == Greedy(loss=loss).cells(repeated).tolist()


#: Codes 0 and 1 are siblings, so are 2 and 3; code 4 stands right under the root, and so does a
#: group of one, 5.
TREE = Tree(
    np.array([6, 6, 7, 7, 9, 8, 9, 9, 9, 9]),
    np.array([0, 1, 2, 3, 4, 5, 0, 2, 5, 0]),
    np.array([1, 2, 3, 4, 5, 6, 2, 4, 6, 6]),
    np.array([0, 0, 0, 0, 0, 0, 1 / 7, 1 / 7, 0, 1]),
)


def test_siblings_come_together() -> None:
    block = make_block(np.zeros((6, 0)), np.array([[0], [2], [4], [1], [3], [5]]), k=2)
    block = replace(block, trees=(TREE,))
    assert Greedy().cells(block).tolist() == [0, 1, 2, 0, 1, 2]
    # Flat, all are as far; what is the root already takes in the rest at the least cost.
    assert Greedy().cells(replace(block, trees=())).tolist() == [0] * 6


def test_a_class_that_holds_takes_others_in() -> None:
    # Code 1 joins the three of code 0, and these lose a seventh each; with the one of code 4 it
    # would lose all.
    codes = np.array([[0], [0], [0], [1], [4], [4]])
    block = replace(make_block(np.zeros((6, 0)), codes, k=2), trees=(TREE,))
    assert Greedy().cells(block).tolist() == [0, 0, 0, 0, 1, 1]


def test_both_classes_count_with_their_rows() -> None:
    # As far from both, a row goes to the class of fewer rows; a little farther, still.
    x = np.array([[0.0]] * 5 + [[50.0]] + [[100.0]] * 2)
    assert Greedy().cells(make_block(x, k=2)).tolist() == [0] * 5 + [1] * 3
    x[5] = 40.0
    assert Greedy().cells(make_block(x, k=2)).tolist() == [0] * 5 + [1] * 3
    x[5] = 10.0
    assert Greedy().cells(make_block(x, k=2)).tolist() == [0] * 6 + [1] * 2

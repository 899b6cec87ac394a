"""Mondrian by information gain gives the very cells of its plain version."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonlib.arrays import snap
from anonlib.kernels.mondrian import Mondrian
from anonlib.table.block import Block
from tests.oracles import numbered
from tests.oracles_generic import content, mondrian_gain_plain
from tests.support import blocks, make_block


@st.composite
def labelled_blocks(draw: st.DrawFn) -> Block:
    """Blocks with a target: of 1 to 12 classes, or numeric; by chance, or told by a column."""
    block = draw(blocks(max_columns=6))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_classes = draw(st.sampled_from([0, 0, 1, 2, 2, 3, 12]))
    told = np.concatenate([block.numeric, block.nominal], axis=1)[:, 0]
    if draw(st.booleans()):
        told = random.permutation(told)
    if n_classes:
        target = np.floor(told) % n_classes
    else:
        spread = draw(st.sampled_from([0.0, 2.0**-20, 1.0, 2.0**14]))
        target = snap(random.integers(-1, 2, block.n) * spread + np.sign(told))
    return replace(block, target=target, n_classes=n_classes)


@pytest.mark.parametrize("mode", ["strict", "relaxed"])
@given(labelled_blocks())
@settings(max_examples=200)
def test_information_gain(mode: Any, block: Block) -> None:
    cells = Mondrian(cut="information_gain", mode=mode).cells(block)
    assert cells.tolist() == numbered(mondrian_gain_plain(block, mode), block.n).tolist()


@pytest.mark.parametrize("mode", ["strict", "relaxed"])
@pytest.mark.parametrize("n_classes", [0, 1, 3])
@given(blocks(max_columns=6))
@settings(max_examples=30)
def test_a_constant_target_is_cut_by_medians(mode: Any, n_classes: int, block: Block) -> None:
    labelled = replace(block, target=np.zeros(block.n), n_classes=n_classes)
    cells = Mondrian(cut="information_gain", mode=mode).cells(labelled)
    assert cells.tolist() == Mondrian(mode=mode).cells(block).tolist()


@pytest.mark.parametrize("n_classes", [0, 2])
def test_the_target_picks_dimension_and_boundary(n_classes: int) -> None:
    # The first column is the widest, the second tells the target, at 3 and not at the median.
    random = np.random.default_rng(0)
    x = np.column_stack([random.permutation(20) * 100, np.arange(20)])
    target = (x[:, 1] < 3).astype(np.float64)
    block = replace(make_block(x, k=3), target=target, n_classes=n_classes)
    cells = Mondrian(cut="information_gain").cells(block)
    assert cells[:3].tolist() == [0, 0, 0]
    assert (cells[3:] > 0).all()
    assert not (Mondrian().cells(block)[:3] == 0).all()


def test_rounding_is_no_gain() -> None:
    # Wherever pairs of both classes are cut apart nothing is gained, but 3 of 13 seem to gain.
    assert content(np.arange(26) % 2, 2) > content(np.arange(6) % 2, 2) + content(
        np.arange(20) % 2, 2
    )
    x = np.column_stack([np.arange(26) >= 10, np.arange(26) >= 6])
    block = replace(make_block(x, k=6), target=np.arange(26) % 2.0, n_classes=2)
    assert Mondrian(cut="information_gain").cells(block).tolist() == [0] * 10 + [1] * 16


def test_needs_a_target_for_this_cut_only() -> None:
    assert Mondrian(cut="information_gain").needs_target
    assert not Mondrian().needs_target

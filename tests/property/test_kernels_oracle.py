"""Kernels give the very cells of their slow and obvious versions."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonlib.kernels.mdav import Mdav
from anonlib.kernels.merge import merge_failing
from anonlib.kernels.mondrian import Mondrian
from anonlib.table.block import Block
from tests.oracles import between, growth, mdav_plain, merge_plain, mondrian_plain, numbered
from tests.support import blocks


@pytest.mark.parametrize("variant", ["figure4", "generic"])
@given(blocks())
@settings(max_examples=200)
def test_mdav(variant: str, block: Block) -> None:
    expected = numbered(merge_plain(block, mdav_plain(block, variant)), block.n)
    assert Mdav(variant=variant).cells(block).tolist() == expected.tolist()


@pytest.mark.parametrize("mode", ["strict", "relaxed"])
@given(blocks())
@settings(max_examples=200)
def test_mondrian(mode: str, block: Block) -> None:
    expected = numbered(mondrian_plain(block, mode), block.n)
    assert Mondrian(mode=mode).cells(block).tolist() == expected.tolist()


@pytest.mark.parametrize("near", [growth, between])
@given(blocks(max_columns=4), st.integers(1, 9), st.randoms(use_true_random=False))
@settings(max_examples=200)
def test_merge(near: Any, block: Block, m: int, random: object) -> None:
    given_ids = np.random.default_rng(random.getrandbits(32)).integers(0, m, block.n)  # type: ignore[attr-defined]
    before = [np.flatnonzero(given_ids == c).tolist() for c in np.unique(given_ids)]
    merged = merge_failing(block, given_ids, growth=near is growth)
    assert merged.tolist() == numbered(merge_plain(block, before, near), block.n).tolist()
    assert block.holds(merged, merged.max() + 1).all()
    for cell in before:
        assert len(set(merged[cell])) == 1
    # The numbers of the given cells don't matter.
    assert (merge_failing(block, (7 * given_ids) % 11, growth=near is growth) == merged).all()

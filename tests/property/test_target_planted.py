"""Target-aware trees on tables whose target a tree tells: it is found."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import threadpoolctl

from anonlib.arrays import snap
from anonlib.partition import Among, Below
from anonlib.partition.target_tree import TargetTree
from anonlib.table.block import Block
from tests.oracles_tree import grown
from tests.support import make_block

CRITERIA = ("information_gain", "gain_ratio", "gini")


def planted(n: int, seed: int, n_classes: int, noise: float = 0.05) -> Block:
    """Told by a number at 0.5, and where that is large by two of ten categories."""
    random = np.random.default_rng(seed)
    x, codes = random.normal(size=(n, 3)), random.integers(0, 10, (n, 2))
    target = np.where(x[:, 1] < 0.5, 0, 1 + np.isin(codes[:, 0], [2, 7]) * (n_classes - 2))
    if n_classes == 2:
        target = np.where(x[:, 1] < 0.5, 0, np.isin(codes[:, 0], [2, 7]))
    chance = random.random(n) < noise
    target[chance] = random.integers(0, n_classes, chance.sum())
    return make_block(x, codes, k=20, target=target, n_classes=n_classes)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_planted_tree_is_found(n_classes: int, criterion: Any) -> None:
    for seed in range(3):
        block = planted(3000, seed, n_classes)
        tree, leaves = grown(TargetTree(criterion=criterion, significance=0.001), block)
        assert len(leaves) == 3
        kinds = {type(cut): cut for cut in tree.cuts}
        assert kinds[Below].column == 1
        assert abs(kinds[Below].threshold - 0.5) < 0.05
        assert kinds[Among].column == 3
        assert kinds[Among].codes.tolist() == [2, 7]


def test_a_planted_tree_of_numbers_is_found() -> None:
    block = planted(3000, 0, 3)
    assert block.target is not None
    numbers = replace(block, target=snap(block.target * 2), n_classes=0)
    tree, leaves = grown(TargetTree(significance=0.001), numbers)
    assert [cut.column for cut in tree.cuts if isinstance(cut, Below | Among)] == [1, 3]
    assert len(leaves) == 3


def test_threads_are_limited_once_for_all_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    limits = threadpoolctl.threadpool_limits
    monkeypatch.setattr(threadpoolctl, "threadpool_limits", lambda n: calls.append(n) or limits(n))
    _, leaves = grown(TargetTree(significance=0.001), planted(3000, 0, 3))
    assert (len(leaves), calls) == (3, [1])

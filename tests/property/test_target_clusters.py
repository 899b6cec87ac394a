"""Target clusters: all models hold in each; sizes; sums of squares against the least there is."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from anonlib import registry
from anonlib.arrays import Ints, snap
from anonlib.errors import InfeasibleError
from anonlib.partition import chain as _chain
from anonlib.partition.target_clusters import TargetClusters
from anonlib.privacy.k_anonymity import KAnonymity
from anonlib.privacy.shares import make_reference
from anonlib.table.block import Block, Context, part
from anonlib.table.encoding import mix
from tests.oracles import holds, merge_plain
from tests.oracles_refine import loss, partitions
from tests.property.test_privacy_models import LEVELS, MODELS
from tests.support import blocks, make_block

VARIANTS = [
    TargetClusters(nominal=nominal, merge=merge)
    for nominal in ("mismatch", "codes")
    for merge in ("growth", "nearest")
]
every_variant = pytest.mark.parametrize("step", VARIANTS, ids=repr)


def with_context(block: Block, random: Any) -> Block:
    numeric = snap(random.normal(size=(block.n, 2)))
    return replace(block, context=Context(numeric, random.integers(0, 3, (block.n, 1), np.int32)))


def canonical(block: Block) -> tuple[Block, Ints]:
    """The block in canonical order, and the row that stands at each place."""
    context = [] if block.context is None else [mix(*block.context)]
    unit = [] if block.unit is None else [block.unit]
    keys = [*block.sensitive.T, *unit, *context, mix(block.numeric, block.nominal)]
    order = np.lexsort(keys)
    return part(block, order), order


def check(step: TargetClusters, block: Block) -> list[Ints]:
    """The parts, after all that can be said of any."""
    parts = step.parts(block, 0)
    assert sorted(np.concatenate(parts).tolist()) == list(range(block.n))
    assert all(rows.dtype == np.int64 and (np.diff(rows) > 0).all() for rows in parts)
    if block.n and holds(block, range(block.n)):
        for rows in parts:
            assert part(block, rows).holds(np.zeros(len(rows), np.int64), 1).all()
            assert len(rows) >= block.min_rows
        assert len(parts) <= max(1, block.n // (2 * block.min_rows))
    return parts


@every_variant
@given(blocks(max_columns=6), st.booleans())
@settings(max_examples=40)
def test_parts(step: TargetClusters, block: Block, context: bool) -> None:
    block = with_context(block, np.random.default_rng(0)) if context else block
    check(step, block)


@pytest.mark.parametrize("name", sorted(MODELS))
@every_variant
@given(st.data(), st.booleans(), st.integers(0, 2**32 - 1))
@settings(max_examples=15)
def test_every_model(name: str, step: TargetClusters, data: Any, unit: bool, seed: int) -> None:
    """Values that go with the columns, so that clusters fail."""
    random = np.random.default_rng(seed)
    n = data.draw(st.integers(20, 200))
    x = np.sort(random.normal(size=(n, 2)), axis=0)
    codes = np.sort(random.choice([-1, 0, 1, 2, 3, 4, 5], n))
    swapped = random.choice(n, n // 2, replace=False)
    codes[swapped] = random.permutation(codes[swapped])
    persons = random.integers(0, n // 2, n) if unit else None
    block = make_block(x, random.integers(0, 3, (n, 1)), k=2, unit=persons)
    models = KAnonymity(k=data.draw(st.integers(2, 5))), data.draw(MODELS[name])
    block = replace(
        block,
        models=models,
        protected=("s",),
        sensitive=codes.astype(np.int32)[:, None],
        references={"s": replace(make_reference(codes, 6), levels=np.array(LEVELS))},
    )
    assume(holds(block, range(n)))
    check(step, block)


@given(blocks(max_columns=6))
@settings(max_examples=60)
def test_repair_is_merging(block: Block) -> None:
    """The parts are the clusters that k rows alone would give, those that fail merged."""
    rows_only = replace(block, models=(KAnonymity(k=block.min_rows),), protected=(), unit=None)
    rows_only = replace(rows_only, sensitive=block.sensitive[:, :0])
    assume(block.unit is None)
    clusters = [rows.tolist() for rows in TargetClusters().parts(rows_only, 0)]
    merged = sorted(merge_plain(block, clusters), key=min)
    assert [sorted(cell) for cell in merged] == [
        rows.tolist() for rows in TargetClusters().parts(block, 0)
    ]


def test_near_the_least_sum_of_squares() -> None:
    """Against every way to make as many clusters of k rows or more."""
    ratios = []
    for seed in range(20):
        random = np.random.default_rng(seed)
        block = make_block(random.normal(size=(9, 2)), random.integers(0, 2, (9, 1)), k=2)
        parts = [rows.tolist() for rows in TargetClusters().parts(block, 0)]
        assert len(parts) == 2
        ways = (cells for cells in partitions(list(range(9)), 2) if len(cells) == 2)
        ratios.append(float(loss(block, parts) / min(loss(block, cells) for cells in ways)))
    assert min(ratios) >= 1
    assert np.mean(ratios) < 1.05
    assert max(ratios) < 1.25


@every_variant
@pytest.mark.parametrize("seed", range(3))
def test_planted_clusters_are_found(step: TargetClusters, seed: int) -> None:
    """Far groups of k to 4k rows; there are as many clusters as groups or more, and none of two."""
    random = np.random.default_rng(seed)
    group = np.repeat(np.arange(30), random.integers(10, 40, 30))
    x = random.normal(size=(30, 4))[group] * 50 + random.normal(size=(len(group), 4))
    codes = random.integers(0, 3, (len(group), 1))
    block, order = canonical(make_block(x, codes, k=10))
    parts = check(step, block)
    assert all(len(set(group[order[rows]])) == 1 for rows in parts)


@every_variant
def test_order_of_rows_does_not_matter(step: TargetClusters) -> None:
    """Rows come to a task in any order, and are put in canonical order there."""
    random = np.random.default_rng(0)
    x, nominal = random.integers(0, 4, (300, 2)), random.integers(0, 3, (300, 2))
    codes = random.integers(0, 3, 300)
    block = with_context(make_block(x, nominal, k=4, sensitive=codes, l=3), random)

    def found(block: Block) -> list[list[tuple[Any, ...]]]:
        block, _ = canonical(block)
        rows = np.column_stack([block.numeric, block.nominal, block.sensitive, *block.context])  # type: ignore[misc]
        return [sorted(map(tuple, rows[each].tolist())) for each in step.parts(block, 0)]

    first = found(block)
    for _ in range(3):
        assert found(part(block, random.permutation(block.n))) == first


def test_what_clusters_look_at() -> None:
    """Context, but neither the target nor sensitive columns that no model fails on."""
    random = np.random.default_rng(1)
    x = random.normal(size=(400, 2))
    block = make_block(x, k=5, sensitive=np.arange(400) % 3, target=x[:, 0])

    def found(block: Block) -> list[list[int]]:
        return [rows.tolist() for rows in TargetClusters().parts(block, 0)]

    plain = replace(block, models=block.models[:1])
    first = found(plain)
    assert found(replace(plain, target=-x[:, 1])) == first
    assert found(replace(plain, sensitive=random.integers(0, 9, (400, 1), np.int32))) == first
    # A column of two far values: no cluster has both.
    flag = np.arange(400) % 2
    context = Context(99.0 * flag[:, None], np.zeros((400, 0), np.int32))
    assert all(len(set(flag[rows])) == 1 for rows in found(replace(plain, context=context)))
    assert not all(len(set(flag[rows])) == 1 for rows in first)


def test_codes_are_nearer_than_their_ends() -> None:
    """Codes 0, 1 and 5: as codes 1 is with 0; by mismatch it is as far from both."""
    nominal = np.repeat([0, 1, 5], [4, 4, 8])[:, None]
    block = make_block(np.zeros((16, 0)), nominal, k=4)
    parts = TargetClusters(nominal="codes").parts(block, 0)
    assert [rows.tolist() for rows in parts] == [list(range(8)), list(range(8, 16))]


@every_variant
@pytest.mark.parametrize("n", [0, 1, 3, 7, 8])
def test_few_rows(step: TargetClusters, n: int) -> None:
    block = make_block(np.arange(n)[:, None], k=2)
    assert len(check(step, block)) == max(1, n // 4)


@every_variant
def test_rows_that_agree_stay_together(step: TargetClusters) -> None:
    """To part them would gain nothing; other rows are parted as always."""
    same = make_block(np.ones((100, 2)), np.zeros((100, 1)), k=5)
    assert len(check(step, same)) == 1
    x = np.concatenate([np.ones(70), 10 + np.arange(30)])[:, None]
    parts = check(step, make_block(x, k=5))
    assert parts[0].tolist() == list(range(70))
    assert len(parts) > 3


def test_persons_with_many_rows() -> None:
    """Ten rows each: the number of clusters is that of persons over 2k."""
    random = np.random.default_rng(0)
    unit = np.repeat(np.arange(60), 10)
    x = random.normal(size=(60, 2))[unit] * 9 + random.normal(size=(600, 2))
    parts = check(TargetClusters(), make_block(x, k=3, unit=unit))
    assert 2 <= len(parts) <= 10


def test_a_block_that_fails_is_refused() -> None:
    block = make_block(np.arange(20)[:, None], k=2, sensitive=np.zeros(20))
    with pytest.raises(InfeasibleError, match="20 rows do not hold l_diversity"):
        TargetClusters().parts(block, 0)


def test_in_a_chain() -> None:
    """After k-means: the blocks of the chain are the clusters of its leaves."""
    random = np.random.default_rng(0)
    block, _ = canonical(make_block(random.normal(size=(600, 3)), k=5))
    steps = [registry.build("partitioner", {"type": "kmeans"}), TargetClusters()]
    found = _chain.cut_blocks(block, steps, 200, 0, random.permutation(600))
    assert sorted(np.concatenate(found).tolist()) == list(range(600))
    assert min(map(len, found)) >= 5
    assert len(found) > 40

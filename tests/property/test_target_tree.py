"""Target-aware trees against exhaustive search, and on noise."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import fisher_exact

from anonlib.partition import Among, Below, CutTree
from anonlib.partition.target_tree import TargetTree
from anonlib.partition.target_tree.search import (
    MOST_GROUPS,
    find_p_value,
    group_categories,
    list_subsets,
)
from anonlib.privacy.k_anonymity import KAnonymity
from anonlib.privacy.shares import make_reference
from anonlib.table.block import Block
from tests.oracles_tree import best_gain, gain, grown, nodes
from tests.property.test_privacy_models import LEVELS, MODELS
from tests.property.test_target_planted import CRITERIA, planted
from tests.support import make_block

PLAIN = TargetTree(evidence="none")
#: What information may be off by its rounding, in bits of a node's rows, for up to 4 classes.
ROUNDED = 15 / 1024


@st.composite
def small_blocks(draw: Any, n_classes: int, k: int | None = None, most: int = 40) -> Block:
    """Up to `most` rows of few values, so that ties and repeated tuples are many."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, p = draw(st.integers(1, most)), draw(st.integers(0, 2))
    q = draw(st.integers(0 if p else 1, 2))
    numeric = random.integers(0, draw(st.sampled_from([1, 4, 50])), (n, p)) / 4
    nominal = random.integers(0, draw(st.integers(1, 6)), (n, q))
    told = np.concatenate([numeric, nominal], axis=1).sum(axis=1) + random.integers(0, 2, n)
    if n_classes:
        told = np.floor(told)
        told = told % n_classes if draw(st.booleans()) else np.minimum(told, n_classes - 1)
    k = draw(st.integers(1, 5)) if k is None else k
    block = make_block(numeric, nominal, target=told, n_classes=n_classes)
    return replace(block, models=(KAnonymity(k=k),) if k > 1 else ())


@pytest.mark.parametrize("n_classes", [0, 2, 4])
@pytest.mark.parametrize("criterion", ["information_gain", "gini"])
@given(data=st.data())
@settings(max_examples=40)
def test_cuts_are_the_best_of_all(criterion: Any, n_classes: int, data: Any) -> None:
    """By k-anonymity alone: no allowed cut of a node gains more, and none of a leaf gains."""
    block = data.draw(small_blocks(n_classes))
    tree, leaves = grown(TargetTree(evidence="none", criterion=criterion), block)
    measure = criterion if n_classes else "variance"
    off = ROUNDED if measure == "information_gain" else 1e-9
    assert block.target is not None
    for cut, rows, _ in nodes(tree, block):
        guides = np.ones(len(rows), np.bool_)
        best = best_gain(block, rows, measure, block.min_rows, guides)
        if cut is None:
            assert best <= off
            continue
        left = left_of(cut, block)[rows]
        assert min(left.sum(), (~left).sum()) >= block.min_rows
        assert gain(block.target[rows], left, measure) >= best - off
    assert sorted(np.concatenate(leaves).tolist()) == list(range(block.n))


@pytest.mark.parametrize("n_classes", [0, 2, 4])
@given(data=st.data())
@settings(max_examples=40)
def test_cuts_are_chosen_by_some_rows_and_judged_by_others(n_classes: int, data: Any) -> None:
    block = data.draw(small_blocks(n_classes, k=2, most=150))
    place = np.random.default_rng(data.draw(st.integers(0, 99))).permutation(block.n)
    measure = "information_gain" if n_classes else "variance"
    off = ROUNDED if n_classes else 1e-9
    target = block.target
    assert target is not None
    for cut, rows, depth in nodes(grown(TargetTree(significance=0.4), block, place)[0], block):
        if not isinstance(cut, Below | Among):
            continue
        left, guides = left_of(cut, block)[rows], place[rows] % 3 != 0
        best = best_gain(block, rows, measure, block.min_rows, guides, cut.column)
        assert gain(target[rows][guides], left[guides], measure) >= best - off > 0
        expected = expected_left(target[rows], left, guides, n_classes)[~guides]
        table = [[np.sum((left[~guides] == a) & (expected == b)) for b in (1, 0)] for a in (1, 0)]
        evidence = fisher_exact(table, alternative="greater").pvalue
        assert evidence <= min(1.0, 0.4 * 2**depth) / 2 + 1e-9


def expected_left(target: Any, left: Any, guides: Any, n_classes: int) -> Any:
    """Which rows should stand on the left by what the guides found there."""
    ours, node = target[guides & left], target[guides]
    if n_classes:
        return np.array([(ours == c).mean() > (node == c).mean() + 1e-12 for c in target])
    return target > node.mean() if ours.mean() > node.mean() else target < node.mean()


def left_of(cut: Any, block: Block) -> Any:
    values = np.column_stack([block.numeric, block.nominal])[:, cut.column]
    return values < cut.threshold if isinstance(cut, Below) else np.isin(values, cut.codes)


@pytest.mark.parametrize("name", sorted(MODELS))
@pytest.mark.parametrize("evidence", ["held_back", "none"])
@given(data=st.data())
@settings(max_examples=25)
def test_leaves_hold_every_model(evidence: Any, name: str, data: Any) -> None:
    block = data.draw(small_blocks(data.draw(st.sampled_from([0, 2]))))
    random = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    values = random.integers(-1, 6, block.n).astype(np.int32)
    persons = random.integers(0, block.n, block.n).astype(np.int32)
    block = replace(
        block,
        sensitive=values[:, None],
        protected=("s",),
        references={
            "s": replace(make_reference(values.astype(np.int64), 6), levels=np.array(LEVELS))
        },
        unit=persons if data.draw(st.booleans()) else None,
        models=(*block.models, data.draw(MODELS[name])),
    )
    assume(block.holds(np.zeros(block.n, np.int64), 1)[0])
    _, leaves = grown(TargetTree(evidence=evidence, significance=1), block)
    for rows in leaves:
        assert block.holds(np.zeros(len(rows), np.int64), 1, rows)[0]


def test_a_column_whose_best_cut_is_refused_has_others() -> None:
    """At 5 the target is told best, but one side would have one sensitive value only."""
    values = [0, 1, 0, 1, 1, 0, 0, 0, 0]
    block = make_block(np.arange(9)[:, None], sensitive=values, k=2, target=np.arange(9) >= 5)
    tree, leaves = grown(PLAIN, replace(block, n_classes=2))
    assert tree.cuts[0] == Below(0, 4.0)
    assert [len(rows) for rows in leaves] == [4, 5]
    free = replace(block, n_classes=2, models=block.models[:1])
    assert grown(PLAIN, free)[0].cuts[0] == Below(0, 5.0)


def test_persons_are_counted() -> None:
    target = np.arange(8) >= 4
    block = make_block(np.arange(8)[:, None], k=2, target=target, n_classes=2)
    assert grown(PLAIN, block)[0].cuts == (Below(0, 4.0),)
    one = replace(block, unit=np.array([0, 0, 0, 0, 1, 2, 3, 4], np.int32))
    assert grown(PLAIN, one)[0].cuts == (Below(0, 5.0),)  # the left side needs another person


@pytest.mark.parametrize("n_classes", [0, 2, 3])
@given(data=st.data())
@settings(max_examples=40)
def test_the_order_of_rows_does_not_matter(n_classes: int, data: Any) -> None:
    block = data.draw(small_blocks(n_classes))
    random = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    place, order = random.permutation(block.n), random.permutation(block.n)
    assert block.target is not None
    shuffled = replace(
        block,
        numeric=block.numeric[order],
        nominal=block.nominal[order],
        target=block.target[order],
        sensitive=block.sensitive[order],
    )
    for step in (PLAIN, TargetTree(significance=1), TargetTree(criterion="gain_ratio")):
        tree, leaves = grown(step, block, place)
        again, others = grown(step, shuffled, place[order])
        assert plain(tree) == plain(again)
        assert [sorted(order[rows].tolist()) for rows in others] == [
            rows.tolist() for rows in leaves
        ]


def plain(tree: CutTree) -> list[Any]:
    """The tree in lists, which can be compared."""
    cuts = [
        (cut.column, cut.threshold if isinstance(cut, Below) else cut.codes.tolist())
        for cut in tree.cuts
        if isinstance(cut, Below | Among)
    ]
    return [cuts, tree.left.tolist(), tree.right.tolist(), tree.roots.tolist()]


def test_ties_go_to_the_first_column_and_the_lowest_boundary() -> None:
    x = np.repeat([0, 1, 1, 2], 2)
    block = make_block(np.column_stack([x, x]), (x > 0)[:, None], k=2, target=x == 1, n_classes=2)
    assert grown(PLAIN, block)[0].cuts == (Below(0, 1.0), Below(0, 2.0))


def test_what_a_node_has_not_seen_goes_with_the_most_rows() -> None:
    codes, target = np.array([3, 3, 0, 0, 0, 5, 5]), np.array([1, 1, 0, 0, 0, 1, 1])
    block = make_block(np.zeros((7, 0)), codes[:, None], target=target, n_classes=2)
    (cut,) = grown(PLAIN, block)[0].cuts
    assert isinstance(cut, Among)
    assert cut.codes.tolist() == [0]


def noise(seed: int, n_classes: int) -> Block:
    """Numbers of many values and of few, five categories and two hundred; a rare class."""
    random = np.random.default_rng(seed)
    n = 500
    numeric = np.column_stack([random.normal(size=n), random.integers(0, 4, n)])
    nominal = np.column_stack([random.integers(0, 5, n), random.integers(0, 200, n)])
    shares = [0.5, 0.4, 0.1][:n_classes]
    target = (
        random.choice(n_classes, n, p=np.array(shares) / sum(shares))
        if n_classes
        else random.standard_t(5, n)
    )
    return make_block(numeric, nominal, k=10, target=target, n_classes=n_classes)


@pytest.mark.parametrize("n_classes", [0, 2, 3])
def test_noise_is_not_cut(n_classes: int) -> None:
    """At most a share `significance` of tables whose target is noise are cut at all; the paper's
    tree cuts all of them, into many leaves."""
    step, n_tables = TargetTree(significance=0.1), 60
    sizes = []
    for seed in range(n_tables):
        place = np.random.default_rng(seed).permutation(500)
        sizes.append(len(grown(step, noise(seed, n_classes), place)[1]))
    # 6 are expected at most, with a standard deviation of 2.3.
    assert sum(size > 1 for size in sizes) <= 13
    assert np.mean(sizes) - 1 <= 0.5
    assert len(grown(PLAIN, noise(0, n_classes))[1]) > 15


def test_rows_of_one_person_are_no_evidence_for_each_other() -> None:
    """Eight persons of forty rows each, who agree in all: a target of theirs is not told by what
    they are."""
    cut = 0
    for seed in range(30):
        random = np.random.default_rng(seed)
        person = np.repeat(np.arange(8), 40)
        numeric, target = random.normal(size=(8, 3))[person], random.integers(0, 2, 8)[person]
        block = make_block(numeric, target=target, n_classes=2, unit=person)
        block = replace(block, models=())
        place = random.permutation(320)
        cut += len(grown(TargetTree(significance=0.01), block, place)[1]) > 1
        rows = replace(block, unit=None)
        assert (
            target.all()
            or not target.any()
            or len(grown(TargetTree(significance=0.01), rows, place)[1]) > 1
        )
    assert cut == 0


@pytest.mark.parametrize("n_classes", [0, 1, 3])
@pytest.mark.parametrize("n", [0, 1, 50])
def test_a_constant_target_is_not_cut(n_classes: int, n: int) -> None:
    random = np.random.default_rng(0)
    target = np.full(n, max(n_classes - 1, 0))
    made = make_block(random.normal(size=(n, 2)), target=target, n_classes=n_classes)
    for step in (PLAIN, TargetTree()):
        tree, leaves = grown(step, made)
        assert tree.cuts == ()
        assert [len(rows) for rows in leaves] == [n]


@pytest.mark.parametrize("criterion", CRITERIA)
def test_a_class_of_five_rows(criterion: Any) -> None:
    """They stand together: the plain tree parts their end from the rest, with the k rows it needs;
    five rows, two of which judge, are hardly evidence, and all models hold."""
    x = np.arange(2000.0)
    block = make_block(x[:, None], k=20, target=x >= 1995, n_classes=2)
    tree, leaves = grown(TargetTree(evidence="none", criterion=criterion), block)
    assert plain(tree)[0][0] == (0, 1980.0)
    assert min(len(rows) for rows in leaves) == 20
    place = np.random.default_rng(1).permutation(2000)
    leaves = grown(TargetTree(criterion=criterion), block, place)[1]
    assert min(len(rows) for rows in leaves) >= 20


def test_a_tree_of_a_part_is_that_of_its_rows() -> None:
    """A sample gives the very tree of a table that has no other rows, if both ask for as many rows
    on a side (k times the share, at least 50) and rows are all that the models count."""
    block = planted(4000, 1, 3, noise=0.3)
    place = np.random.default_rng(0).permutation(block.n)
    for step in (TargetTree(), PLAIN):
        whole = grown(step, replace(block, models=(KAnonymity(k=60),)), place)
        part = grown(step, replace(block, models=(KAnonymity(k=600),)), place, share=0.1)
        assert plain(whole[0]) == plain(part[0])
        assert len(whole[1]) >= 3
        few = grown(step, replace(block, models=(KAnonymity(k=10),)), place, share=0.1)
        assert min(len(rows) for rows in few[1]) >= 50


def test_a_tree_of_a_sample_is_that_of_the_table_where_the_target_is_told() -> None:
    """A target that is told by two cuts is found alike in half of the rows: the threshold is at the
    first sampled value on the right."""
    random = np.random.default_rng(3)
    x, codes = random.integers(0, 30, (4000, 2)) / 8, random.integers(0, 6, (4000, 1))
    target = np.where(x[:, 0] < 2, 0, 1 + np.isin(codes[:, 0], [1, 3]))
    block = make_block(x, codes, k=20, target=target, n_classes=3)
    half = random.permutation(4000) < 2000
    sampled = replace(
        block, numeric=block.numeric[half], nominal=block.nominal[half], target=target[half] * 1.0
    )
    assert plain(grown(TargetTree(), block)[0]) == plain(grown(TargetTree(), sampled, share=0.5)[0])


def test_columns_of_many_categories_are_cut_by_few_groups() -> None:
    random = np.random.default_rng(0)
    codes = random.integers(0, 400, (8000, 1))
    target = (random.random(8000) < codes[:, 0] / 400) + (random.random(8000) < 0.2)
    block = make_block(np.zeros((8000, 0)), codes, k=5, target=target, n_classes=3)
    for step in (TargetTree(), PLAIN):
        tree, leaves = grown(step, block)
        sides = np.array([np.isin(np.arange(400), cut.codes) for cut in tree.cuts])  # type: ignore[union-attr]
        assert len(np.unique(sides, axis=1).T) <= MOST_GROUPS
        assert len(leaves) > 3


@given(st.integers(2, 12), st.integers(1, 5), st.integers(0, 2**32 - 1))
@settings(max_examples=60)
def test_subsets_part_the_categories_and_none_twice(c: int, t: int, seed: int) -> None:
    sums = np.random.default_rng(seed).integers(0, 3, (c, t)).astype(np.float64)
    found = list_subsets(sums, np.maximum(sums.sum(axis=1), 1).astype(np.int64))
    assert found.shape[1] == c
    assert found.any(axis=1).all()
    assert not found.all(axis=1).any()
    if c <= 8:
        assert len(found) == 2 ** (c - 1) - 1
        assert len({min(row.tobytes(), (~row).tobytes()) for row in found}) == len(found)


def test_many_categories_of_several_classes_are_ordered_by_their_shares() -> None:
    """Ten categories of one mix of four classes, five of another: parted at once."""
    sums = np.array([[9, 6, 3, 2]] * 10 + [[2, 3, 5, 10]] * 5) * 1.0
    found = list_subsets(sums, np.full(15, 20))
    assert any(
        row.tolist() in ([True] * 10 + [False] * 5, [False] * 10 + [True] * 5) for row in found
    )


def test_groups_are_in_the_target_s_order_and_rare_ones_in_the_middle() -> None:
    rows = np.array([100] * 64 + [1, 1])
    sums = np.concatenate([np.arange(64) * 100.0 / 63, [1, 0]])[:, None]
    found = group_categories(sums, rows)
    assert (np.diff(found[:64]) >= 0).all()
    assert set(found.tolist()) == set(range(MOST_GROUPS))
    assert 10 < found[64] < 22
    assert 10 < found[65] < 22


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60))
def test_evidence_is_fisher_s_exact_test(rows: list[tuple[bool, bool]]) -> None:
    left, expected = (np.array(column) for column in zip(*rows, strict=True))
    table = [[np.sum((left == s) & (expected == e)) for e in (True, False)] for s in (True, False)]
    found = find_p_value(left, expected)
    if np.mean(left & expected) <= np.mean(left) * np.mean(expected):
        assert found == 1.0
    else:
        assert found == pytest.approx(fisher_exact(table, alternative="greater").pvalue)


def test_evidence_of_many_rows_is_exact_too() -> None:
    left, expected = np.arange(200_000) % 2 == 0, np.arange(200_000) % 3 == 0
    assert find_p_value(left, expected) == pytest.approx(0.5, abs=1e-6)
    expected[:600:2] = True
    table = [[33_534, 66_466], [33_333, 66_667]]
    assert [int((left & expected).sum()), int(expected.sum())] == [33_534, 66_867]
    assert find_p_value(left, expected) == pytest.approx(
        fisher_exact(table, alternative="greater").pvalue, rel=1e-6
    )
    assert find_p_value(left, left) == 0.0  # too small for a number

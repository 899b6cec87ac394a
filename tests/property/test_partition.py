"""Plans against a naive walk of their trees, repair and bisection against exact recounts."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from anonlib.arrays import Floats, Ints
from anonlib.partition import Below, CutTree, Sample, flatten_tree, send_rows
from anonlib.partition.bisection import bisect
from anonlib.partition.cuts import (
    NO_CUT,
    Cuts,
    Singles,
    no_cuts,
    score_rows,
    with_one,
    with_threshold,
)
from anonlib.partition.leaf_plan import (
    BLOCKS_PER_POOL,
    SUBTREE_ROWS,
    SUBTREE_SHARE,
    LeafPlan,
    cut_off,
    make_pools,
    plan_leaves,
)
from anonlib.partition.repair import BlockCounts, Demands, make_one_demand, merge_small
from anonlib.partition.single import Single
from anonlib.privacy import PrivacyModel
from anonlib.privacy.k_anonymity import KAnonymity
from anonlib.privacy.l_diversity import LDiversity
from anonlib.privacy.t_closeness import TCloseness
from anonlib.table.block import Block, part
from tests.support import make_block
from tests.trees import grow_on_ties, send_by_sample

QUICK = settings(max_examples=40)
GRIDDED = st.integers(-8, 8).map(lambda i: i / 4)


@st.composite
def grown(draw: Any, n_features: int = 2, most: int = 6, n_roots: int = 1) -> Cuts:
    """A forest grown by cutting leaves in any order."""
    n = draw(st.integers(0, most))
    weights = np.array([[draw(GRIDDED) for _ in range(n_features)] for _ in range(n)], np.float32)
    threshold = np.array([draw(GRIDDED) for _ in range(n)], np.float32)
    # Places where a node or leaf hangs: (array, index).
    roots, left, right = (np.zeros(m, np.int32) for m in (n_roots, n, n))
    open_ = [(roots, root) for root in range(n_roots)]
    for node in range(n):
        array, at = open_.pop(draw(st.integers(0, len(open_) - 1)))
        array[at] = node
        open_ += [(left, node), (right, node)]
    for leaf, (array, at) in enumerate(open_):
        array[at] = -1 - leaf
    return Cuts(weights.reshape(n, n_features), threshold, left, right, roots)


def stump(threshold: float, *, weights: Any = (1.0,)) -> Cuts:
    """One cut."""
    ends = np.array([-1], np.int32), np.array([-2], np.int32), np.zeros(1, np.int32)
    return Cuts(np.array([weights], np.float32), np.array([threshold], np.float32), *ends)


def walk(cuts: Cuts, row: Floats, root: int = 0) -> int:
    """The leaf of one row, one cut at a time."""
    node = int(cuts.roots[root])
    while node >= 0:
        score = sum(w * x for w, x in zip(cuts.weights[node], row, strict=True))
        node = int((cuts.left if score < cuts.threshold[node] else cuts.right)[node])
    return -1 - node


def assigned(cuts: Cuts, features: Singles, root: Ints) -> Ints:
    """The leaf of every row, each from its root on: cut by cut, as plans evaluate them."""
    node = cuts.roots[root].astype(np.int64)
    rows, weights = with_one(features), with_threshold(cuts.weights, cuts.threshold)
    for _ in range(cuts.depth):
        inner = np.flatnonzero(node >= 0)
        at = node[inner]
        low = score_rows(weights[at], rows[inner]) < 0
        node[inner] = np.where(low, cuts.left[at], cuts.right[at])
    return -1 - node


ROWS = st.lists(st.tuples(GRIDDED, GRIDDED, st.integers(0, 2)), min_size=1, max_size=30)


@given(grown(n_roots=3), ROWS)
@QUICK
def test_cuts_walk_the_forest(cuts: Cuts, rows: list[tuple[float, float, int]]) -> None:
    features = np.array([row[:2] for row in rows], np.float32)
    root = np.array([row[2] for row in rows])
    found = assigned(cuts, features, root).tolist()
    assert found == [walk(cuts, row, at) for row, at in zip(features, root, strict=True)]
    assert cuts.root_of_leaf[found].tolist() == root.tolist()


@given(grown(n_features=9, n_roots=2), st.lists(st.tuples(*[GRIDDED] * 9), min_size=1, max_size=9))
@QUICK
def test_levels_walk_to_the_same_leaves(cuts: Cuts, rows: list[tuple[float, ...]]) -> None:
    """By look-ups alone, as the JVM does, one row at a time."""
    features = np.array(rows, np.float32)
    root = np.arange(len(features)) % 2
    *levels, last = cuts.levels()
    found = []
    for row, start in zip(with_one(features), root.tolist(), strict=True):
        place = start
        for weights, cut, child in levels:
            right = False
            if cut[place] != NO_CUT:
                its = weights[cut[place]]
                right = sum(float(w) * float(x) for w, x in zip(its, row, strict=True)) >= 0
            place = int(child[place]) | int(right)
        found.append(int(last.child[place]))
    assert found == assigned(cuts, features, root).tolist()
    assert sum(len(level.weights) for level in levels) == len(cuts.threshold)


@given(
    st.floats(width=32, allow_nan=False, allow_infinity=False),
    st.floats(width=32, allow_nan=False, allow_infinity=False),
    st.integers(0, 9),
)
@QUICK
def test_a_cut_of_one_weight_is_exact(x: float, t: float, at: int) -> None:
    weights, features = np.zeros(10, np.float32), np.ones((1, 10), np.float32)
    weights[at], features[0, at] = 1.0, x
    cuts = stump(t, weights=weights)
    assert assigned(cuts, features, np.zeros(1, np.int64)).tolist() == [0 if x < t else 1]


@given(grown(n_roots=2))
@QUICK
def test_depth_is_that_of_the_longest_walk(cuts: Cuts) -> None:
    def depth(node: int) -> int:
        return 0 if node < 0 else 1 + max(depth(cuts.left[node]), depth(cuts.right[node]))

    assert cuts.depth == max(depth(root) for root in cuts.roots)
    assert cuts.n_leaves == len(cuts.threshold) + 2


def test_no_cuts() -> None:
    cuts = no_cuts(3, 2)
    assert (cuts.n_leaves, cuts.depth) == (2, 0)
    root = np.array([0, 1, 1, 0])
    assert assigned(cuts, np.zeros((4, 3), np.float32), root).tolist() == [0, 1, 1, 0]
    assert cuts.to_dict()["roots"] == [-1, -2]


def rows_of_leaves(draw: Any, n_leaves: int) -> list[list[tuple[int, int]]]:
    """For each leaf its rows, as (person, value); a leaf may be empty."""
    row = st.tuples(st.integers(0, 12), st.integers(0, 63))
    return [draw(st.lists(row, max_size=8)) for _ in range(n_leaves)]


def leaf_counts(leaves: list[list[tuple[int, int]]], shared: bool) -> BlockCounts:
    """What Spark would count of them: the sketch has one bit per value."""
    n_rows = np.array([len(leaf) for leaf in leaves], np.int64)
    persons = np.array([len({person for person, _ in leaf}) for leaf in leaves], np.int64)
    words = np.zeros((len(leaves), 1), np.uint64)
    for i, leaf in enumerate(leaves):
        for _, value in leaf:
            words[i, 0] |= np.uint64(1) << np.uint64(value)
    return BlockCounts(n_rows, persons if shared else n_rows, {"s": words.view(np.int64)}, shared)


def recount(leaves: list[list[tuple[int, int]]], block: Ints, k: int, l: int, shared: bool) -> Any:  # noqa: E741
    """Whether each block holds the models, by its own rows."""
    holds = []
    for b in range(block.max() + 1):
        rows = [row for leaf, at in zip(leaves, block, strict=True) if at == b for row in leaf]
        persons = len({person for person, _ in rows}) if shared else len(rows)
        holds.append(persons >= k and len({value for _, value in rows}) >= l)
    return holds


@given(st.data(), st.integers(2, 6), st.integers(2, 4), st.booleans(), st.integers(1, 2))
@settings(max_examples=80)
def test_merge_small(data: Any, k: int, l: int, shared: bool, n_roots: int) -> None:  # noqa: E741
    """Merged blocks hold the models by an exact recount; trees are not mixed; only a whole tree
    that fails is left failing."""
    cuts = data.draw(grown(n_roots=n_roots))
    leaves = rows_of_leaves(data.draw, cuts.n_leaves)
    assume(any(leaves))  # a source without rows is refused
    centers = np.array([[data.draw(GRIDDED), data.draw(GRIDDED)] for _ in leaves])
    models = (KAnonymity(k=k), LDiversity(l=l, attribute="s"))
    counts = leaf_counts(leaves, shared)
    root = cuts.root_of_leaf
    block = merge_small(cuts, root, counts, centers, make_one_demand(models, cuts.n_leaves))
    assert len(block) == cuts.n_leaves
    assert sorted(set(block.tolist())) == list(range(block.max() + 1))
    holding = recount(leaves, block, k, l, shared)
    for b in range(block.max() + 1):
        (tree,) = set(root[block == b])
        if not holding[b]:
            assert set(np.flatnonzero(block == b)) >= {
                leaf for leaf in np.flatnonzero(root == tree) if leaves[leaf]
            }
    each = np.arange(cuts.n_leaves)
    alone = recount(leaves, each, k, l, shared)
    assert counts.hold(models).tolist() == alone
    if all(alone):
        assert block.tolist() == each.tolist()  # nothing to merge


def four_leaves() -> Cuts:
    """((0 | 1) | (2 | 3))."""
    left, right = np.array([1, -1, -3], np.int32), np.array([2, -2, -4], np.int32)
    weights, threshold = np.ones((3, 1), np.float32), np.zeros(3, np.float32)
    return Cuts(weights, threshold, left, right, np.zeros(1, np.int32))


def test_small_leaves_join_their_sibling_first() -> None:
    """Leaf 0 is small, and near to leaf 2; it joins leaf 1."""
    n_rows = np.array([1, 9, 9, 9])
    counts = BlockCounts(n_rows, n_rows, {}, False)
    centers = np.array([[0.0], [-9.0], [0.1], [9.0]])
    demands = make_one_demand((KAnonymity(k=5),), 4)
    merged = merge_small(four_leaves(), np.zeros(4, np.int64), counts, centers, demands)
    assert merged.tolist() == [0, 0, 1, 2]


def test_a_leaf_beyond_the_cuts_joins_the_nearest_of_its_tree() -> None:
    """The leaf of a heavy tuple hangs on the root; one without a tree is left out."""
    n_rows = np.array([9, 9, 9, 9, 1, 1])
    counts = BlockCounts(n_rows, n_rows, {}, False)
    centers = np.array([[0.0], [1.0], [2.0], [9.0], [2.1], [2.0]])
    demands = make_one_demand((KAnonymity(k=5),), 6)
    root = np.array([0, 0, 0, 0, 0, -1])
    merged = merge_small(four_leaves(), root, counts, centers, demands)
    assert merged.tolist() == [0, 1, 2, 3, 2, -1]


def test_unions_are_asked_what_their_leaves_are() -> None:
    """Leaf 1 is asked k = 20: with its sibling it holds that, and so must both."""
    n_rows = np.array([12, 12, 12, 12])
    counts = BlockCounts(n_rows, n_rows, {}, False)
    asked = np.array([[1, 0], [1, 1], [1, 0], [1, 0]], np.bool_)
    demands = Demands(((KAnonymity(k=5),), (KAnonymity(k=20),)), asked)
    assert demands.holds(counts).tolist() == [True, False, True, True]
    root, centers = np.zeros(4, np.int64), np.arange(4.0)[:, None]
    assert merge_small(four_leaves(), root, counts, centers, demands).tolist() == [0, 0, 1, 2]


def test_shared_persons_are_counted_from_below() -> None:
    """Two leaves of three persons may have the same three: they join a third leaf."""
    n_rows, persons = np.array([4, 4, 8]), np.array([3, 3, 5])
    counts = BlockCounts(n_rows, persons, {}, True)
    assert counts.merge(np.array([0, 0, 1]), 2).n_persons.tolist() == [3, 5]
    apart = BlockCounts(n_rows, n_rows, {}, False)
    assert apart.merge(np.array([0, 0, 1]), 2).n_persons.tolist() == [8, 8]


BLOCK_ROWS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(-1, 2), st.integers(0, 9)),
    min_size=1,
    max_size=40,
)


def block(rows: list[tuple[int, ...]], models: tuple[PrivacyModel, ...], unit: bool) -> Block:
    """A block of (number, code, protected value, person), in canonical order."""
    table = np.array(sorted(rows))
    return Block(
        numeric=table[:, :1].astype(np.float64),
        nominal=table[:, 1:2].astype(np.int32),
        sensitive=table[:, 2:3].astype(np.int32),
        unit=table[:, 3].astype(np.int32) if unit else None,
        widths=np.array([3.0]),
        n_categories=np.array([3]),
        models=models,
        protected=("s",),
    )


@given(BLOCK_ROWS, st.integers(1, 20), st.integers(2, 4), st.booleans())
@settings(max_examples=80)
def test_bisect(rows: list[tuple[int, ...]], max_rows: int, k: int, unit: bool) -> None:
    made = block(rows, (KAnonymity(k=k), LDiversity(l=2, attribute="s")), unit)
    parts = bisect(made, max_rows)
    assert sorted(np.concatenate(parts).tolist()) == list(range(made.n))
    assert all((np.diff(rows) > 0).all() for rows in parts)
    if len(parts) > 1:
        for rows_ in parts:
            assert made.holds(np.zeros(len(rows_), np.int64), 1, rows_)[0]
            assert part(made, rows_).holds(np.zeros(len(rows_), np.int64), 1)[0]
    for rows_ in parts:
        if len(rows_) > max_rows:  # the cut that is always tried is not allowed
            late = (np.arange(len(rows_)) >= len(rows_) // 2).astype(np.int64)
            assert not made.holds(late, 2, rows_).all()


@given(BLOCK_ROWS, st.integers(2, 5))
@QUICK
def test_bisect_gets_all_parts_small_where_rows_alone_count(
    rows: list[tuple[int, ...]], k: int
) -> None:
    made = block(rows, (KAnonymity(k=k),), unit=False)
    assert max(len(rows_) for rows_ in bisect(made, 2 * k)) <= 2 * k


def test_bisect_keeps_what_is_small_enough() -> None:
    made = block([(0, 0, 0, 0)] * 3, (KAnonymity(k=2),), unit=False)
    (only,) = bisect(made, 3)
    assert only.tolist() == [0, 1, 2]
    assert part(made, only).n == 3


@pytest.mark.parametrize("n", [11, 12])
def test_one_repeated_tuple_is_halved(n: int) -> None:
    made = block([(1, 1, 0, 0)] * n, (KAnonymity(k=2),), unit=False)
    first, second = bisect(made, 6)
    assert first.tolist() == list(range(n // 2))
    assert second.tolist() == list(range(n // 2, n))


def test_bisect_cuts_between_values_near_the_median() -> None:
    made = block([(x, 0, 0, 0) for x in (0, 0, 0, 1, 1, 2, 2, 3)], (KAnonymity(k=2),), unit=False)
    assert [rows.tolist() for rows in bisect(made, 5)] == [[0, 1, 2], [3, 4, 5, 6, 7]]


def leaf_plan(
    numbers: Any, *, controller: Any = None, root: Any = None, steps: Any = (), **more: Any
) -> LeafPlan:
    """The leaves of a table of one column, all of it sampled, in blocks of 10 rows."""
    values = np.array(numbers)
    sample = Sample(replace(make_block(values[:, None]), **more), np.arange(len(values)), 1.0)
    root = np.zeros(len(values), np.int64) if root is None else np.array(root)
    own = None if controller is None else np.array(controller)
    return plan_leaves(sample, root, values, np.bincount(root), own, steps, 10, seed=0)


def test_a_frequent_tuple_has_a_leaf_of_its_own() -> None:
    """By hand: 50 of 90 rows have the value 7, more than four blocks. They are of tree 1, whose
    rows count for controller 5."""
    numbers = [*range(20, 40), *[7] * 50, *range(100, 120)]
    planned = leaf_plan(numbers, root=[0] * 20 + [1] * 70, controller=[3, 5])
    *_, own = range(len(planned.sizes))
    assert planned.heavy == {7: own}
    assert planned.leaf.tolist().count(own) == planned.sizes[own] == 50
    assert planned.leaves.heavy == (own,)
    assert planned.leaves.centers[own].tolist() == [7.0]
    assert planned.leaves.controller[own] == 5
    assert planned.leaves.controller[planned.leaf].tolist() == [3] * 20 + [5] * 70
    assert planned.pools is None
    whole = leaf_plan(numbers, steps=[Single()])
    assert (whole.heavy, whole.max_rows) == ({}, None)


def test_when_tasks_may_merge_leaves() -> None:
    numbers = np.arange(200)
    planned = leaf_plan(numbers)
    assert planned.pools is not None
    assert np.bincount(planned.pools.of_leaf, planned.sizes).min() >= 40
    assert planned.sizes.sum() == 200
    assert leaf_plan(numbers, controller=[0]).pools is None
    assert leaf_plan(numbers, joint=True).pools is None
    assert leaf_plan(numbers, models=(TCloseness(t=0.5, attribute="s"),)).pools is None
    assert leaf_plan(numbers[:5]).pools is None  # a single leaf


def as_tree(cuts: Cuts) -> CutTree:
    """The forest with cuts that can be told apart."""
    each = tuple(Below(0, float(node)) for node in range(len(cuts.threshold)))
    return CutTree(each, cuts.left, cuts.right, cuts.roots)


def leaves_below(tree: CutTree, child: int) -> list[int]:
    """From left to right."""
    if child < 0:
        return [-1 - child]
    sides = int(tree.left[child]), int(tree.right[child])
    return leaves_below(tree, sides[0]) + leaves_below(tree, sides[1])


def rows_below(tree: CutTree, child: int, sizes: Ints) -> int:
    return int(sizes[leaves_below(tree, child)].sum())


SIZES = st.lists(st.integers(0, 60), min_size=20, max_size=20)


@given(grown(most=16, n_roots=2), SIZES, st.integers(0, 200))
@QUICK
def test_a_forest_is_cut_off_at_subtrees_of_few_rows(
    cuts: Cuts, many: list[int], most: int
) -> None:
    """A walk through both finds the same cuts, down to the first nodes with few rows."""
    tree = as_tree(cuts)
    sizes = np.array(many[: tree.n_leaves])
    trunk, branch = cut_off(tree, sizes, most)
    assert np.unique(branch).tolist() == list(range(trunk.n_leaves))
    pairs = [*zip(tree.roots.tolist(), trunk.roots.tolist(), strict=True)]
    while pairs:
        child, kept = pairs.pop()
        if kept < 0:
            assert child < 0 or rows_below(tree, child, sizes) <= most
            assert {*branch[leaves_below(tree, child)].tolist()} == {-1 - kept}
        else:
            assert rows_below(tree, child, sizes) > most
            assert trunk.cuts[kept] == tree.cuts[child]
            pairs += [
                (int(tree.left[child]), int(trunk.left[kept])),
                (int(tree.right[child]), int(trunk.right[kept])),
            ]
            assert not 0 <= trunk.left[kept] <= kept
            assert not 0 <= trunk.right[kept] <= kept


@given(grown(most=16), SIZES, st.integers(1, 10), st.sampled_from([1, 300]))
@QUICK
def test_pools_are_neighbours_with_enough_rows(
    cuts: Cuts, many: list[int], max_rows: int, times: int
) -> None:
    tree = as_tree(cuts)
    sizes = np.array(many[: tree.n_leaves]) * times
    trunk, of_trunk, of_leaf = make_pools(tree, sizes, max_rows)
    least = BLOCKS_PER_POOL * max_rows
    most = max(least // 2, int(min(SUBTREE_ROWS, SUBTREE_SHARE * sizes.sum())))
    in_order = of_leaf[leaves_below(tree, int(tree.roots[0]))]
    assert in_order[0] == 0
    assert {*np.diff(in_order).tolist()} <= {0, 1}
    assert of_trunk[leaves_below(trunk, int(trunk.roots[0]))].tolist() == sorted(of_trunk.tolist())
    assert of_leaf.tolist() == of_trunk[cut_off(tree, sizes, most)[1]].tolist()
    rows = np.bincount(of_leaf, sizes)
    assert len(rows) == 1 or rows.min() >= least
    assert rows.max() <= 2 * least + max(most, int(sizes.max()))


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_tasks_send_rows_as_trees_grow(seed: int, mixed: bool) -> None:
    """So are rows of many columns that lie on a plane but for rounding."""
    random = np.random.default_rng(seed)
    n = 500
    codes = np.column_stack([random.integers(0, m, n) for m in (2, 12, 40)])
    block = make_block(np.round(random.normal(size=(n, 7)) * 2**20) / 2**20, codes)
    sample = Sample(block, np.arange(n), 1.0)
    tree = grow_on_ties(sample, random, mixed=mixed)
    sent = send_rows(flatten_tree(tree, sample), block, np.zeros(n, np.int64))
    assert sent.tolist() == send_by_sample(tree, sample).tolist()

"""Plans against a naive walk of their trees, repair and bisection against exact recounts."""

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from anonlib.block import Block, Floats, Ints, snap
from anonlib.partition import Cuts, Sample
from anonlib.partition._bisect import bisect, part
from anonlib.partition._plan import Grower, no_cuts, with_one
from anonlib.partition._repair import Counts, merge_small, size_bound
from anonlib.partition.kmeans import KMeans
from anonlib.partition.single import Single
from anonlib.privacy import PrivacyModel
from anonlib.privacy.k_anonymity import KAnonymity
from anonlib.privacy.l_diversity import LDiversity

QUICK = settings(max_examples=40)
GRIDDED = st.integers(-8, 8).map(lambda i: i / 4)


@st.composite
def grown(draw: Any, n_features: int = 2, most: int = 6) -> Cuts:
    """A tree grown by cutting leaves in any order."""
    grower, leaves = Grower(n_features), []
    leaves.append(grower.root)
    for _ in range(draw(st.integers(0, most))):
        leaf = leaves.pop(draw(st.integers(0, len(leaves) - 1)))
        weights = np.array([draw(GRIDDED) for _ in range(n_features)], np.float32)
        leaves += grower.cut(leaf, weights, draw(GRIDDED))
    return grower.cuts()


def walk(cuts: Cuts, row: Floats) -> int:
    """The leaf of one row, one cut at a time."""
    node = 0 if len(cuts.threshold) else -1
    while node >= 0:
        score = sum(w * x for w, x in zip(cuts.weights[node], row, strict=True))
        node = int((cuts.left if score < cuts.threshold[node] else cuts.right)[node])
    return -1 - node


ROWS = st.lists(st.tuples(GRIDDED, GRIDDED), min_size=1, max_size=30)


@given(grown(), ROWS)
@QUICK
def test_assign_walks_the_tree(cuts: Cuts, rows: list[tuple[float, float]]) -> None:
    features = np.array(rows, np.float32)
    assert cuts.assign(features).tolist() == [walk(cuts, row) for row in features]


@given(grown(n_features=9), st.lists(st.tuples(*[GRIDDED] * 9), min_size=1, max_size=9))
@QUICK
def test_levels_walk_to_the_same_leaves(cuts: Cuts, rows: list[tuple[float, ...]]) -> None:
    """By look-ups alone, as the JVM does, one row at a time."""
    features = np.array(rows, np.float32)
    *levels, (_, leaf) = cuts.levels()
    found = []
    for row in with_one(features):
        place = 0
        for weights, child in levels:
            score = sum(float(w) * float(x) for w, x in zip(weights[place], row, strict=True))
            place = int(child[place]) | int(score >= 0)
        found.append(int(leaf[place]))
    assert found == cuts.assign(features).tolist()
    assert sum(len(weights) for weights, _ in levels) >= len(cuts.threshold)


@given(
    st.floats(width=32, allow_nan=False, allow_infinity=False),
    st.floats(width=32, allow_nan=False, allow_infinity=False),
    st.integers(0, 9),
)
@QUICK
def test_a_cut_of_one_weight_is_exact(x: float, t: float, at: int) -> None:
    weights, features = np.zeros(10, np.float32), np.ones((1, 10), np.float32)
    weights[at], features[0, at] = 1.0, x
    grower = Grower(10)
    grower.cut(grower.root, weights, t)
    assert grower.cuts().assign(features).tolist() == [0 if x < t else 1]


@given(grown())
@QUICK
def test_trees_are_well_formed(cuts: Cuts) -> None:
    n = len(cuts.threshold)
    children = [*cuts.left.tolist(), *cuts.right.tolist()]
    assert cuts.weights.shape == (n, 2)
    assert cuts.n_leaves == n + 1
    # Every leaf and every inner node but the root is the child of one node that comes before.
    assert sorted(-1 - c for c in children if c < 0) == list(range(n + 1))[: len(children)]
    assert sorted(c for c in children if c >= 0) == list(range(1, n))
    assert all(c > j for side in (cuts.left, cuts.right) for j, c in enumerate(side) if c >= 0)

    def depth(node: int) -> int:
        return 0 if node < 0 else 1 + max(depth(cuts.left[node]), depth(cuts.right[node]))

    assert cuts.depth == (depth(0) if n else 0)


def test_a_grown_tree_by_hand() -> None:
    """Cut at 0, then the right half at 2, then the left one at -2."""
    grower = Grower(1)
    left, right = grower.cut(grower.root, np.ones(1), 0.0)
    grower.cut(right, np.ones(1), 2.0)
    grower.cut(left, np.ones(1), -2.0)
    cuts = grower.cuts()
    assert cuts.threshold.tolist() == [0, 2, -2]
    assert cuts.left.tolist() == [2, -1, -3]
    assert cuts.right.tolist() == [1, -2, -4]
    assert cuts.assign(np.array([[-3.0], [-2], [0], [2]])).tolist() == [2, 3, 0, 1]
    assert cuts.to_dict()["threshold"] == [0, 2, -2]


def test_no_cuts() -> None:
    assert no_cuts(3).n_leaves == 1
    assert no_cuts(3).depth == 0
    assert no_cuts(0).assign(np.zeros((4, 0))).tolist() == [0] * 4
    sample = Sample(np.zeros((1, 2)), np.ones(1, np.int64))
    assert Single().fit(sample, 9, 0).n_leaves == 1


def sample(n: int = 400, seed: int = 0) -> Sample:
    random = np.random.default_rng(seed)
    features = np.unique(snap(random.normal(size=(n, 3))), axis=0)
    return Sample(random.permuted(features, axis=0), random.integers(1, 4, len(features)))


def test_kmeans_is_a_function_of_its_arguments() -> None:
    points = sample()
    first = KMeans().fit(points, 9, 5)
    np.random.seed(1)  # noqa: NPY002 (the global state must not matter)
    again = KMeans().fit(Sample(points.features.copy(), points.weight.copy()), 9, 5)
    assert first.to_dict() == again.to_dict()
    assert first.n_leaves == 9
    fewer = KMeans(max_iter=1).fit(points, 2, 5)
    assert fewer.n_leaves == 2
    assert first.weights.dtype == first.threshold.dtype == np.float32


def test_kmeans_of_a_weight_is_kmeans_of_so_many_rows() -> None:
    """Two far groups: the cut lies between them, whatever the weights."""
    features = np.array([[0.0, 0], [0, 1], [10, 0], [10, 1]])
    for weight in ([1, 1, 1, 1], [9, 1, 1, 5]):
        leaf = KMeans().fit(Sample(features, np.array(weight)), 2, 0).assign(features)
        assert leaf[0] == leaf[1] != leaf[2] == leaf[3]


@pytest.mark.parametrize("seed", range(3))
def test_kmeans_leaves_are_balanced(seed: int) -> None:
    points = sample(1500, seed)
    cuts = KMeans().fit(points, 16, seed)
    sizes = np.bincount(cuts.assign(points.features), points.weight, 16)
    mean = points.weight.sum() / 16
    assert mean / 3 < sizes.min()
    assert sizes.max() < 2 * mean
    assert cuts.depth <= 7


def test_a_lopsided_split_is_moved() -> None:
    """Two far rows would be a block of their own."""
    x = np.concatenate([np.linspace(0, 1, 98), [90.0, 91.0]])
    points = Sample(x[:, None].astype(np.float32), np.ones(100, np.int64))
    for balance, smaller in ((0.0, 2), (0.35, 35), (0.5, 50)):
        sizes = np.bincount(KMeans(balance=balance).fit(points, 2, 0).assign(points.features))
        assert sizes.min() == smaller


def test_kmeans_cuts_nothing_where_all_agree() -> None:
    for features in (np.zeros((1, 2)), np.full((5, 2), 0.5)):
        points = Sample(features, np.ones(len(features), np.int64))
        assert KMeans().fit(points, 8, 0).n_leaves == 1
    two = Sample(np.array([[0.0], [1.0]]), np.array([3, 4]))
    assert KMeans().fit(two, 8, 0).n_leaves == 2  # as many as there are tuples


def rows_of_leaves(draw: Any, n_leaves: int) -> list[list[tuple[int, int]]]:
    """For each leaf its rows, as (person, value); a leaf may be empty."""
    row = st.tuples(st.integers(0, 12), st.integers(0, 63))
    return [draw(st.lists(row, max_size=8)) for _ in range(n_leaves)]


def leaf_counts(leaves: list[list[tuple[int, int]]], shared: bool) -> Counts:
    """What Spark would count of them: the sketch has one bit per value."""
    n_rows = np.array([len(leaf) for leaf in leaves], np.int64)
    persons = np.array([len({person for person, _ in leaf}) for leaf in leaves], np.int64)
    words = np.zeros((len(leaves), 1), np.uint64)
    for i, leaf in enumerate(leaves):
        for _, value in leaf:
            words[i, 0] |= np.uint64(1) << np.uint64(value)
    return Counts(n_rows, persons if shared else n_rows, {"s": words.view(np.int64)}, shared)


def recount(leaves: list[list[tuple[int, int]]], block: Ints, k: int, l: int, shared: bool) -> Any:  # noqa: E741
    """Whether each block holds the models, by its own rows."""
    holds = []
    for b in range(block.max() + 1):
        rows = [row for leaf, at in zip(leaves, block, strict=True) if at == b for row in leaf]
        persons = len({person for person, _ in rows}) if shared else len(rows)
        holds.append(persons >= k and len({value for _, value in rows}) >= l)
    return holds


@given(st.data(), st.integers(2, 6), st.integers(2, 4), st.booleans())
@settings(max_examples=80)
def test_merge_small(data: Any, k: int, l: int, shared: bool) -> None:  # noqa: E741
    cuts = data.draw(grown())
    leaves = rows_of_leaves(data.draw, cuts.n_leaves)
    assume(any(leaves))  # a source without rows is refused
    centers = np.array([[data.draw(GRIDDED), data.draw(GRIDDED)] for _ in leaves])
    models = (KAnonymity(k=k), LDiversity(l=l, attribute="s"))
    counts = leaf_counts(leaves, shared)
    block = merge_small(cuts, counts, centers, models)
    assert len(block) == cuts.n_leaves
    assert sorted(set(block.tolist())) == list(range(block.max() + 1))
    if block.max() > 0:
        assert all(recount(leaves, block, k, l, shared))
    each = np.arange(cuts.n_leaves)
    holding = recount(leaves, each, k, l, shared)
    assert counts.hold(models).tolist() == holding
    assert size_bound(counts, models).tolist() == [
        ok or not rows for ok, rows in zip(holding, leaves, strict=True)
    ]
    if all(holding):
        assert block.tolist() == each.tolist()  # nothing to merge


def test_small_leaves_join_their_sibling_first() -> None:
    """((0 | 1) | (2 | 3)): leaf 0 is small, and near to leaf 2; it joins leaf 1."""
    grower = Grower(1)
    left, right = grower.cut(grower.root, np.ones(1), 0.0)
    grower.cut(left, np.ones(1), -5.0)
    grower.cut(right, np.ones(1), 5.0)
    n_rows = np.array([1, 9, 9, 9])
    counts = Counts(n_rows, n_rows, {}, False)
    centers = np.array([[0.0], [-9.0], [0.1], [9.0]])
    assert merge_small(grower.cuts(), counts, centers, (KAnonymity(k=5),)).tolist() == [0, 0, 1, 2]


def test_shared_persons_are_counted_from_below() -> None:
    """Two leaves of three persons may have the same three: they join a third leaf."""
    n_rows, persons = np.array([4, 4, 8]), np.array([3, 3, 5])
    counts = Counts(n_rows, persons, {}, True)
    assert counts.merged(np.array([0, 0, 1]), 2).n_persons.tolist() == [3, 5]
    apart = Counts(n_rows, n_rows, {}, False)
    assert apart.merged(np.array([0, 0, 1]), 2).n_persons.tolist() == [8, 8]


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

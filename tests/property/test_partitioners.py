"""What every partitioner promises, over the registry, in memory; and each one's own oracle."""

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from anonlib import registry
from anonlib.arrays import Ints
from anonlib.partition import Among, Below, Grower, Leaf, Partitioner, Plane, Sample
from anonlib.partition.chain import cut_blocks as blocks_of
from anonlib.partition.chain import grow
from anonlib.partition.kmeans import KMeansPartitioner
from anonlib.partition.mondrian import MondrianPartitioner
from anonlib.partition.single import Single
from anonlib.table.block import Block, part
from tests.support import blocks, make_block

#: Parameters of the partitioners that need some.
PARAMETERS: dict[str, dict[str, Any]] = {"controller": {"column": "hospital"}}
SLOWLY = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def built(name: str) -> Partitioner:
    made: Partitioner = registry.plugin("partitioner", name)(**PARAMETERS.get(name, {}))
    return made


def places(block: Block, seed: int = 0) -> Ints:
    """A place for each row, as a hash of it would give."""
    return np.random.default_rng(seed).permutation(block.n)


@pytest.mark.parametrize("name", registry.plugins("partitioner"))
@given(blocks(max_columns=4), st.integers(0, 3), st.integers(8, 60))
@SLOWLY
def test_blocks_cover_the_rows_once(name: str, block: Block, seed: int, max_rows: int) -> None:
    """And are a function of the arguments."""
    found = blocks_of(block, [built(name)], max_rows, seed, places(block))
    assert sorted(np.concatenate(found).tolist()) == list(range(block.n))
    assert all((np.diff(rows) > 0).all() for rows in found)
    again = blocks_of(block, [built(name)], max_rows, seed, places(block))
    assert [rows.tolist() for rows in found] == [rows.tolist() for rows in again]


@pytest.mark.parametrize("name", registry.plugins("partitioner"))
def test_a_table_without_rows_or_variety(name: str) -> None:
    for n in (2, 50):
        block = make_block(np.zeros((n, 2)), np.zeros((n, 1)))
        found = blocks_of(block, [built(name)], 10, 0, places(block))
        assert sorted(np.concatenate(found).tolist()) == list(range(n))


@pytest.mark.parametrize("kernel", ["mdav", "mondrian"])
@pytest.mark.parametrize("name", registry.plugins("partitioner"))
@given(blocks(max_columns=4))
@SLOWLY
def test_every_kernel_can_work_on_the_blocks(name: str, kernel: str, block: Block) -> None:
    """On those that hold the models, which repair sees to."""
    chosen = registry.build("kernel", {"type": kernel})
    for rows in blocks_of(block, [built(name)], 40, 0, places(block)):
        some = part(block, rows)
        if some.holds(np.zeros(some.n, np.int64), 1)[0]:
            cell_id = chosen.cells(some)
            assert some.holds(cell_id, int(cell_id.max()) + 1).all()


@given(blocks(max_columns=5), st.integers(4, 60))
@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
def test_mondrian_goes_on_where_its_cuts_stop(block: Block, max_rows: int) -> None:
    """Its blocks and then the kernel give the cells of the kernel on the whole table."""
    assume((block.numeric.astype(np.float32) == block.numeric).all())
    kernel = registry.build("kernel", {"type": "mondrian"})
    whole = kernel.cells(block)
    cell_id = np.empty(block.n, np.int64)
    n_cells = 0
    for rows in blocks_of(block, [MondrianPartitioner()], max_rows, 0, places(block)):
        found = kernel.cells(part(block, rows))
        cell_id[rows] = found + n_cells
        n_cells += int(found.max()) + 1
    pairs = np.unique(np.column_stack([whole, cell_id]), axis=0)
    assert len(pairs) == n_cells == whole.max() + 1


def test_mondrian_of_a_part_of_the_rows_leaves_each_side_its_share() -> None:
    """20 sampled rows of 200, k = 40: 4 on each side."""
    block = make_block(np.concatenate([np.zeros((17, 1)), np.ones((3, 1))]), k=40)
    for share, n_leaves in ((0.1, 1), (0.05, 2)):
        grower = Grower()
        sample = Sample(block, np.arange(20), share)
        found = MondrianPartitioner().grow(sample, grower, Leaf(0, np.arange(20)), 2, 0)
        assert len(found) == n_leaves


def normal(n: int, d: int = 3, seed: int = 0) -> Sample:
    block = make_block(np.random.default_rng(seed).normal(size=(n, d)))
    return Sample(block, places(block), 1.0)


def leaves_of(step: Any, sample: Sample, most: float, seed: int = 0) -> tuple[Any, list[Leaf]]:
    grower = Grower()
    found = step.grow(sample, grower, Leaf(0, np.arange(sample.block.n)), most, seed)
    return grower.tree(), found


def test_kmeans_is_a_function_of_its_arguments() -> None:
    sample = normal(400)
    first, _ = leaves_of(KMeansPartitioner(), sample, 400 / 9, 5)
    np.random.seed(1)  # noqa: NPY002 (the global state must not matter)
    again, _ = leaves_of(KMeansPartitioner(), normal(400), 400 / 9, 5)
    assert len(first.cuts) == 8
    for one, two in zip(first.cuts, again.cuts, strict=True):
        assert one.weights.tolist() == two.weights.tolist()
        assert one.threshold == two.threshold
        assert one.weights.dtype == np.float32


def test_kmeans_cuts_between_far_groups() -> None:
    for weight in ([1, 1, 1, 1], [9, 1, 1, 5]):
        rows = np.repeat(np.array([[0.0, 0], [0, 1], [10, 0], [10, 1]]), weight, axis=0)
        block = make_block(rows)
        _, found = leaves_of(
            KMeansPartitioner(), Sample(block, np.arange(block.n), 1.0), block.n / 2
        )
        assert {len({*block.numeric[leaf.rows, 0]}) for leaf in found} == {1}


@pytest.mark.parametrize("seed", range(3))
def test_kmeans_leaves_are_balanced(seed: int) -> None:
    _, found = leaves_of(KMeansPartitioner(), normal(1500, seed=seed), 1500 / 16, seed)
    sizes = np.array([len(leaf.rows) for leaf in found])
    assert len(sizes) == 16
    assert sizes.mean() / 3 < sizes.min()
    assert sizes.max() < 2 * sizes.mean()


def test_a_lopsided_split_is_moved() -> None:
    """Two far rows would be a block of their own."""
    x = np.concatenate([np.linspace(0, 1, 98), [90.0, 91.0]])
    sample = Sample(make_block(x[:, None]), np.arange(100), 1.0)
    for balance, smaller in ((0.0, 2), (0.35, 35), (0.5, 50)):
        _, found = leaves_of(KMeansPartitioner(balance=balance), sample, 50)
        assert min(len(leaf.rows) for leaf in found) == smaller


def test_kmeans_cuts_nothing_where_all_agree() -> None:
    for rows in (np.zeros((2, 2)), np.full((5, 2), 0.5)):
        sample = Sample(make_block(rows), np.arange(len(rows)), 1.0)
        assert len(leaves_of(KMeansPartitioner(), sample, 1)[1]) == 1
    sample = Sample(make_block(np.array([[0.0]] * 3 + [[1.0]] * 4)), np.arange(7), 1.0)
    assert len(leaves_of(KMeansPartitioner(), sample, 1)[1]) == 2  # as many as there are tuples


def test_the_size_bound_comes_last() -> None:
    """By k-means where no step of the chain bounds leaves; not where the table is kept whole."""
    block = make_block(np.random.default_rng(0).normal(size=(300, 2)))
    sizes = [len(rows) for rows in blocks_of(block, [Single()], 20, 0, places(block))]
    assert sizes == [300]
    for steps in (
        [],
        [KMeansPartitioner()],
        [MondrianPartitioner()],
        [MondrianPartitioner(), KMeansPartitioner()],
    ):
        found = blocks_of(block, steps, 20, 0, places(block))
        assert len(found) >= 15
        assert max(len(rows) for rows in found) <= 40


def test_trees_of_a_forest_are_grown_apart() -> None:
    """Every row is in a leaf of its own root."""
    sample = normal(200)
    root = np.arange(200) % 3
    counts = np.bincount(root)
    grown = grow(sample, [KMeansPartitioner()], 20, 0, root, counts)
    cuts_of = [{*grown.leaf[root == r]} for r in range(3)]
    assert not cuts_of[0] & cuts_of[1]
    assert not cuts_of[1] & cuts_of[2]
    assert all(len(found) > 3 for found in cuts_of)


def test_the_sides_of_cuts() -> None:
    sample = Sample(make_block([[0.0], [1.0], [2.0]], [[0], [1], [2]]), np.arange(3), 1.0)
    rows = np.arange(3)
    assert sample.left(Below(0, 1.0), rows).tolist() == [True, False, False]
    assert sample.left(Below(1, 2), rows).tolist() == [True, True, False]
    assert sample.left(Among(1, np.array([0, 2])), rows).tolist() == [True, False, True]
    assert sample.tops == [(1, 0), (1, 1), (1, 2)]
    weights = np.array([0, 0, 1, 0], np.float32)
    assert sample.left(Plane(weights, 0.5), rows).tolist() == [True, False, True]


def test_many_categories_have_the_same_groups_in_all_trees() -> None:
    """The cuts of a column of 300 categories tell few sets of them apart, however many trees."""
    random = np.random.default_rng(0)
    codes = random.integers(0, 300, (6000, 1))
    block = make_block(
        np.zeros((6000, 1)), codes, target=(codes[:, 0] % 2).astype(float), n_classes=2
    )
    sample = Sample(block, np.arange(6000), 1.0)
    root = np.arange(6000) % 10
    steps = [registry.build("partitioner", {"type": "target_tree"})]
    tree = grow(sample, steps, 10_000, 0, root, np.bincount(root)).tree
    sides = np.zeros((len(tree.cuts), 300), np.bool_)
    for i, cut in enumerate(tree.cuts):
        assert isinstance(cut, Among)
        sides[i, cut.codes] = True
    assert len(tree.cuts) >= 10
    assert len(np.unique(sides, axis=1).T) <= 32

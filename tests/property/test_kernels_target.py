"""V-MDAV and the kernels that look at a target give the very cells of their plain versions."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from anonlib.arrays import GRID, snap
from anonlib.kernels.discriminant import measure_classes, score_discriminants
from anonlib.kernels.lda_mdav import LdaMdav
from anonlib.kernels.mdav import Mdav
from anonlib.kernels.mdav_sd import MdavSd
from anonlib.kernels.vmdav import VMdav
from anonlib.registry import build, spec
from anonlib.table.block import MOST_INDICATORS, Block, ClassMoments, part
from tests.oracles import mdav_plain, merge_plain, numbered, to_row
from tests.oracles_target import distortion, embedded, rotated, rotation, vmdav_plain, with_target
from tests.support import blocks, make_block


def plain(block: Block, variant: str = "figure4") -> list[int]:
    found: list[int] = numbered(merge_plain(block, mdav_plain(block, variant)), block.n).tolist()
    return found


@pytest.mark.parametrize("gamma", [0.0, 0.2, 0.9, 1.0, 1.5, 100.0])
@given(blocks())
@settings(max_examples=100)
def test_vmdav(gamma: float, block: Block) -> None:
    expected = numbered(merge_plain(block, vmdav_plain(block, gamma)), block.n)
    assert VMdav(gamma=gamma).cells(block).tolist() == expected.tolist()


@pytest.mark.parametrize("gamma", [0.2, 1.0, 1.5])
@pytest.mark.parametrize("p", [0, 1])
@pytest.mark.parametrize("seed", range(4))
def test_vmdav_of_many_categories(seed: int, p: int, gamma: float) -> None:
    """So many that boxes of leaves have none in common."""
    random = np.random.default_rng(seed)
    nominal = random.integers(0, 40, (300, 3))
    block = make_block(random.integers(-3, 3, (300, p)) / 4, nominal, k=4)
    expected = numbered(merge_plain(block, vmdav_plain(block, gamma)), block.n)
    assert VMdav(gamma=gamma).cells(block).tolist() == expected.tolist()


def test_vmdav_cells_grow_to_natural_groups() -> None:
    """4 and 5 rows, which cells of k = 3 rows would tear apart."""
    x = [0.0, 0.1, 0.2, 0.3, 10.0, 10.1, 10.2, 10.3, 10.4]
    block = make_block(np.array(x)[:, None], k=3)
    assert VMdav(gamma=0.2).cells(block).tolist() == [0, 0, 0, 0, 1, 1, 1, 1, 1]
    assert VMdav(gamma=0.0).cells(block).tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]


@pytest.mark.parametrize("variant", ["figure4", "generic"])
@pytest.mark.parametrize("lambda_", [0.0, 0.1, 0.5, 0.9, 1.0])
@given(blocks())
@settings(max_examples=50)
def test_mdav_sd(lambda_: float, variant: str, block: Block) -> None:
    found = MdavSd(variant=variant, lambda_=lambda_).cells(block)
    assert found.tolist() == plain(with_target(block, lambda_), variant)


@pytest.mark.parametrize("n_classes", [0, 2, 3])
@pytest.mark.parametrize("lambda_", [0.01, 0.5, 0.99])
def test_squared_distances_are_the_distortion(lambda_: float, n_classes: int) -> None:
    """The oracle above shares the embedding with the kernel: here it is held to the formula."""
    random = np.random.default_rng(n_classes)
    target = random.integers(0, n_classes, 30) if n_classes else random.normal(size=30)
    block = make_block(
        random.normal(size=(30, 3)),
        random.integers(0, 3, (30, 2)),
        target=target,
        n_classes=n_classes,
    )
    points = with_target(block, lambda_)
    factor = (1.0 - lambda_) / 5
    for one in range(30):
        squares = factor * to_row(points, list(range(30)), one)
        wanted = [distortion(block, other, one, lambda_) for other in range(30)]
        np.testing.assert_allclose(squares, wanted, rtol=1e-4, atol=1e-5)


@given(blocks())
@settings(max_examples=30)
def test_without_weight_the_target_does_not_matter(block: Block) -> None:
    expected = Mdav().cells(block).tolist()
    assert MdavSd(lambda_=0.0).cells(block).tolist() == expected
    if block.n_classes:
        assert LdaMdav(alpha=1.0).cells(block).tolist() == expected


def test_with_all_weight_only_the_target_matters() -> None:
    target = np.arange(40) % 2
    block = make_block(np.arange(40.0)[:, None], k=5, target=target, n_classes=2)
    ids = MdavSd(lambda_=1.0).cells(block)
    assert all(len(set(target[ids == c])) == 1 for c in range(8))


def test_lambda_has_the_name_of_the_paper() -> None:
    kernel = MdavSd.model_validate({"lambda": 0.7})
    assert kernel.lambda_ == 0.7
    assert spec(kernel) == {"type": "mdav_sd", "variant": "figure4", "lambda": 0.7}
    assert build("kernel", spec(kernel)) == kernel == MdavSd(lambda_=0.7)


@pytest.mark.parametrize("variant", ["figure4", "generic"])
@pytest.mark.parametrize("alpha", [2.0, 64.0])
@given(blocks())
@settings(max_examples=50)
def test_lda_mdav(alpha: float, variant: str, block: Block) -> None:
    """Ties and all, given the discriminants, which the tests below hold to their definition."""
    assume(block.n_classes > 0)
    added = [snap(np.sqrt(alpha**2 - 1.0) * column) for column in score_discriminants(block).T]
    stretched = replace(
        block, numeric=np.column_stack([*block.numeric.T, *added, np.zeros(block.n)])
    )
    found = LdaMdav(variant=variant, alpha=alpha).cells(block)
    assert found.tolist() == plain(stretched, variant)


def classed(seed: int, n_classes: int, n: int = 120, q: int = 1) -> Block:
    """Normal points without ties around class means, a nominal column that goes with the class."""
    random = np.random.default_rng(seed)
    target = random.integers(0, n_classes, n)
    mixed = random.normal(size=(4, 4))
    numeric = random.normal(size=(n_classes, 4))[target] + random.normal(size=(n, 4)) @ mixed
    nominal = (target[:, None] + random.integers(0, 2, (n, q))) % 3
    return make_block(numeric, nominal, k=4, target=target, n_classes=n_classes)


@pytest.mark.parametrize("alpha", [1.5, 4.0, 64.0])
@pytest.mark.parametrize("n_classes", [2, 3, 4])
@pytest.mark.parametrize("q", [0, 1, 2])
@pytest.mark.parametrize("seed", range(3))
def test_lda_mdav_is_mdav_of_the_rotated_points(
    seed: int, q: int, n_classes: int, alpha: float
) -> None:
    """The algorithm as published, by full QR, on points without ties; cells that hold k rows."""
    block = classed(seed, n_classes, q=q)
    found = LdaMdav(alpha=alpha).cells(block)
    assert found.tolist() == plain(rotated(block, alpha))
    assert found.tolist() != Mdav().cells(block).tolist()


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("seed", range(5))
def test_discriminants_span_the_leading_eigenvectors(seed: int, n_classes: int) -> None:
    block = classed(seed, n_classes)
    x = embedded(block)
    base, leading = rotation(x, block.target)
    found = score_discriminants(block)
    assert found.shape == (block.n, n_classes - 1)
    wanted = x @ base[:, :leading]
    np.testing.assert_allclose(found @ found.T, wanted @ wanted.T, atol=1e-3)


def test_discriminant_of_a_column_constant_within_classes() -> None:
    """The within-class covariance is singular, and this column all that matters."""
    random = np.random.default_rng(0)
    target = np.arange(100) % 2
    noise = random.normal(size=(100, 3))
    block = make_block(np.column_stack([noise, 0.1 * target]), k=5, target=target, n_classes=2)
    (score,) = score_discriminants(block).T
    np.testing.assert_allclose(np.abs(score), 0.1 * target, atol=1e-3)
    mixed = [
        sum(len(set(target[ids == c])) > 1 for c in range(ids.max() + 1))
        for ids in (Mdav().cells(block), LdaMdav(alpha=1024.0).cells(block))
    ]
    assert mixed[0] > 10
    assert mixed[1] == 0


def test_discriminant_of_equal_and_constant_columns() -> None:
    random = np.random.default_rng(0)
    target = np.arange(60) % 2
    x = target + random.normal(size=60)
    twice = np.column_stack([x, x, np.full(60, 4711.0)])
    once = make_block(x[:, None], target=target, n_classes=2)
    found = score_discriminants(make_block(twice, target=target, n_classes=2))
    # x along (1, 1) / sqrt(2) in the plane of the two.
    np.testing.assert_allclose(
        np.abs(found), np.sqrt(2) * np.abs(score_discriminants(once)), atol=1e-4
    )


def test_no_discriminant() -> None:
    x = np.random.default_rng(0).normal(size=(30, 2))
    alike = np.repeat(x, 2, axis=0)  # both classes have the same points
    for numeric, target in (
        (x, np.zeros(30)),
        (np.ones((30, 2)), np.arange(30) % 2),
        (alike, np.arange(60) % 2),
        (np.zeros((30, 0)), np.arange(30) % 2),
    ):
        block = make_block(numeric, target=target, n_classes=2)
        assert score_discriminants(block).shape == (len(numeric), 0)


def test_classes_along_one_line_have_one_discriminant() -> None:
    """Three means on a line: the second direction would be noise."""
    corner = np.array([[-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [1.0, 1.0]])
    x = np.concatenate([np.add(corner, [c, 2.0 * c]) for c in (0.0, 3.0, 5.0)])
    block = make_block(x, target=np.repeat([0, 1, 2], 4), n_classes=3)
    (score,) = score_discriminants(block).T
    np.testing.assert_allclose(np.ptp(score), np.ptp(x @ [1, 2]) / np.sqrt(5), rtol=1e-3)


def test_many_categories_take_no_part() -> None:
    n = 3 * MOST_INDICATORS
    target = np.arange(n) % 2
    x = np.random.default_rng(0).normal(size=(n, 2)) + target[:, None]
    codes = np.arange(n) % (MOST_INDICATORS + 1)
    block = make_block(x, np.column_stack([codes, target]), target=target, n_classes=2)
    assert measure_classes(block).products.shape == (4, 4)
    without = make_block(x, target[:, None], target=target, n_classes=2)
    assert np.array_equal(score_discriminants(block), score_discriminants(without))


def exact(block: Block) -> tuple[Any, Any, Any]:
    """Class moments by fractions, row by row."""
    x = np.column_stack([block.numeric, embedded(block)[:, block.numeric.shape[1] :] > 0])
    points = [[Fraction(float(value)) for value in row] for row in x]
    assert block.target is not None
    codes = block.target.astype(int).tolist()
    by_class = [
        [p for p, c in zip(points, codes, strict=True) if c == label]
        for label in range(block.n_classes)
    ]
    d = range(x.shape[1])
    counts = [len(of_class) for of_class in by_class]
    sums = [[sum(p[j] for p in of_class) for j in d] for of_class in by_class]
    products = [[sum(p[i] * p[j] for p in points) for j in d] for i in d]
    return counts, sums, products


@given(blocks(max_columns=4))
@settings(max_examples=50)
def test_class_moments_are_exact(block: Block) -> None:
    assume(block.n_classes > 0)
    found = measure_classes(block)
    counts, sums, products = exact(block)
    p = block.numeric.shape[1]
    unit = [Fraction(GRID) if j < p else 1 for j in range(len(products))]
    assert found.counts.tolist() == counts
    assert [[s * u for s, u in zip(row, unit, strict=True)] for row in found.sums.tolist()] == sums
    assert [
        [value * unit[i] * unit[j] for j, value in enumerate(row)]
        for i, row in enumerate(found.products.tolist())
    ] == products


def same(one: ClassMoments, other: ClassMoments) -> bool:
    return all(
        getattr(one, name).tolist() == getattr(other, name).tolist()
        for name in ("counts", "sums", "products")
    )


@given(blocks(), st.randoms(use_true_random=False))
@settings(max_examples=50)
def test_moments_of_parts_are_those_of_the_whole_in_any_order(block: Block, random: Any) -> None:
    assume(block.n_classes > 0)
    rows = list(range(block.n))
    random.shuffle(rows)
    cut = random.randint(0, block.n)
    one, other = (measure_classes(part(block, np.array(r, int))) for r in (rows[:cut], rows[cut:]))
    whole = measure_classes(block)
    assert same(one.merge(other), whole)
    assert same(ClassMoments.from_json(other.to_json()).merge(one), whole)


def test_blocks_share_the_discriminant_of_the_table() -> None:
    table = classed(0, 2, 200)
    moments = measure_classes(table)
    halves = [part(table, rows) for rows in (np.arange(100), np.arange(100, 200))]
    shared = [score_discriminants(replace(half, moments=moments)) for half in halves]
    assert np.array_equal(np.concatenate(shared), score_discriminants(table))
    own = [score_discriminants(half) for half in halves]
    assert not np.allclose(
        np.abs(np.concatenate(own)), np.abs(score_discriminants(table)), atol=1e-3
    )

"""Optimal cells: as good as the best of all ways there are, counted out."""

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from anonlib.kernels._univariate_core import find_shortest_path
from anonlib.kernels.univariate import Univariate, _principal
from anonlib.local.cell_grouping import cells
from anonlib.table.block import Block, part
from tests.oracles import merge_plain, numbered
from tests.oracles_refine import cells_of, loss, partitions, runs
from tests.support import blocks, make_block


@st.composite
def columns(draw: st.DrawFn, most: int) -> Any:
    """One column, few rows: ties, constant columns, huge and tiny values, small gaps far out."""
    n = draw(st.integers(1, most))
    whole = draw(st.sampled_from([st.just(3), st.integers(-3, 3), st.integers(-(2**33), 2**33)]))
    values = np.array(draw(st.lists(whole, min_size=n, max_size=n)), np.float64)
    scale, offset = draw(st.sampled_from([(2.0**-20, 0.0), (2.0**-20, 2.0**13), (0.5, 0.0)]))
    return values[:, None] * scale + offset


def best_runs(block: Block, order: Any, k: int) -> list[list[int]]:
    """The best cut of an order; of equal ones, that of the fewest rows in the last cell, then in
    the one before, and so on."""
    return min(
        runs(list(order), k), key=lambda ways: (loss(block, ways), [len(c) for c in ways[::-1]])
    )


@given(columns(13), st.integers(2, 5))
@settings(max_examples=300)
def test_optimal_of_all_cuts(values: Any, k: int) -> None:
    assume(len(values) >= k)
    block = make_block(values, k=k)
    order = np.argsort(block.numeric[:, 0], kind="stable")
    best = best_runs(block, order, block.min_rows)
    found = cells_of(Univariate().cells(block))
    least = loss(block, best)
    assert least <= loss(block, found) <= least * (1 + 1e-12)


@given(columns(8), st.integers(2, 3))
@settings(max_examples=100)
def test_no_other_cells_lose_less(values: Any, k: int) -> None:
    """Of one column, cells that are no runs of the sorted values don't help."""
    assume(len(values) >= k)
    block = make_block(values, k=k)
    least = min(loss(block, ways) for ways in partitions(list(range(block.n)), k))
    assert least <= loss(block, cells_of(Univariate().cells(block))) <= least * (1 + 1e-12)


@given(blocks(max_columns=6), st.integers(2, 4))
@settings(max_examples=100)
def test_optimal_along_any_order(block: Block, k: int) -> None:
    """Of several columns, nominal ones too: the cells of least loss that are runs of an order."""
    rows = np.random.default_rng(block.n).permutation(block.n)[:11]
    few = part(block, rows)
    order = np.argsort(few.numeric.sum(axis=1))
    assume(few.n >= k)
    found = cells_of(find_shortest_path(few.numeric, few.nominal, few.n_categories, order, k))
    least = loss(few, best_runs(few, order, k))
    assert least <= loss(few, found) <= least * (1 + 1e-12)


@pytest.mark.parametrize(
    ("values", "k", "expected"),
    [
        ([1, 2, 3, 11, 12, 13], 3, [0, 0, 0, 1, 1, 1]),
        ([0, 0, 0, 0, 7, 7], 3, [0, 0, 0, 1, 1, 1]),  # equal values may be cut apart
        ([0, 1, 2, 3, 4], 3, [0, 0, 0, 0, 0]),
        ([5] * 9, 3, [0, 0, 0, 1, 1, 1, 2, 2, 2]),
        ([5] * 10, 3, [0, 0, 0, 0, 1, 1, 1, 2, 2, 2]),
        ([9, 1, 9, 1], 2, [0, 1, 0, 1]),
    ],
)
def test_by_hand(values: list[float], k: int, expected: list[int]) -> None:
    block = make_block(np.array(values)[:, None], k=k)
    assert Univariate().cells(block).tolist() == expected
    assert Univariate(projection="first").cells(block).tolist() == expected


@given(blocks(max_columns=3))
@settings(max_examples=60)
def test_cells_that_fail_are_merged(block: Block) -> None:
    columns = [*block.numeric.T, *block.nominal.T]
    order = np.argsort(columns[0], kind="stable")
    path = find_shortest_path(
        block.numeric, block.nominal, block.n_categories, order, block.min_rows
    )
    expected = numbered(merge_plain(block, cells_of(path)), block.n)
    assert Univariate(projection="first").cells(block).tolist() == expected.tolist()


def component(block: Block) -> Any:
    """The first principal component of numeric columns and scaled indicators, by floats."""
    found = [*block.numeric.T]
    for codes, width in zip(block.nominal.T, block.n_categories, strict=True):
        found += [(codes == c) * 0.5**0.5 for c in range(width)]
    x = np.array(found)
    values, vectors = np.linalg.eigh(np.cov(x))
    assert values[-1] > 1.01 * values[-2], "the data must leave no choice"
    vector = vectors[:, -1]
    return (vector * np.sign(vector[np.argmax(np.abs(vector))])) @ x


@pytest.mark.parametrize("seed", range(5))
def test_principal_component(seed: int) -> None:
    random = np.random.default_rng(seed)
    x = random.normal(size=(300, 4)) @ random.normal(size=(4, 4))
    block = make_block(x, random.integers(0, 4, (300, 2)), k=3)
    np.testing.assert_allclose(_principal(block), component(block), atol=1e-5)


def test_many_categories_take_no_part_in_the_projection() -> None:
    random = np.random.default_rng(0)
    x, codes = random.normal(size=(300, 2)) * [3, 1], np.arange(300)[:, None] % 150
    many, without = make_block(x, codes, k=3), make_block(x, k=3)
    assert _principal(many).tolist() == _principal(without).tolist()


@pytest.mark.parametrize("projection", ["principal", "first"])
def test_any_order_of_rows(projection: str) -> None:
    random = np.random.default_rng(1)
    x = random.normal(size=(200, 3))
    rows = random.permutation(200)
    one, other = (cells(data, "univariate", 4, projection=projection) for data in (x, x[rows]))
    assert sorted(map(tuple, cells_of(one))) == sorted(
        tuple(sorted(rows[cell].tolist())) for cell in cells_of(other)
    )

"""Refined cells: never worse than those they start from, and no single step would better them."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from anonlib import registry
from anonlib.kernels.mdav import Mdav
from anonlib.kernels.mondrian import Mondrian
from anonlib.kernels.refine import Refine
from anonlib.kernels.refine.descent import make_batch, propose_steps, take
from anonlib.kernels.refine.near import dissolve_near, find_near_cells
from anonlib.kernels.refine.row_lists import FREE
from anonlib.kernels.refine.state import find_next_steps, make_refine_state
from anonlib.kernels.refine.step_list import make_steps
from anonlib.kernels.refine.upsets import upset_cells
from anonlib.local.cell_grouping import cells
from anonlib.table.block import Block
from tests.oracles import between, holds
from tests.oracles_refine import cells_of, gain, loss, negligible, partitions, steps
from tests.support import blocks, make_block


def check_refined(block: Block, start: Any, refined: Any) -> None:
    found = cells_of(refined)
    assert sorted(row for cell in found for row in cell) == list(range(block.n))
    assert all(holds(block, cell) for cell in found)
    assert loss(block, found) <= loss(block, cells_of(start))


@pytest.mark.parametrize("start", ["mdav", "mondrian"])
@pytest.mark.parametrize("effort", [0, 2])
@given(block=blocks())
@settings(max_examples=60)
def test_never_worse(start: str, effort: int, block: Block) -> None:
    before = registry.build("kernel", {"type": start}).cells(block)
    refined = Refine(start=start, effort=effort).cells(block)
    check_refined(block, before, refined)
    assert (Refine(start=start, effort=effort).cells(block) == refined).all()


@given(blocks(max_columns=5), st.integers(1, 3), st.integers(0, 1))
@settings(max_examples=60)
def test_never_worse_when_cut_short(block: Block, passes: int, effort: int) -> None:
    refined = Refine(passes=passes, n_neighbours=1, effort=effort).cells(block)
    check_refined(block, Mdav().cells(block), refined)


@st.composite
def few_cells(draw: st.DrawFn) -> Block:
    """Blocks of which rows only count, with few enough rows to try every step."""
    n, k = draw(st.integers(2, 24)), draw(st.integers(2, 4))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    spread = draw(st.sampled_from([1, 3, 2**20, 2**30]))
    numeric = random.integers(-spread, spread, (n, draw(st.integers(0, 4))), endpoint=True)
    scale = draw(st.sampled_from([1.0, 2.0**-10, 2.0**-20])) if spread < 2**20 else 2.0**-20
    nominal = random.integers(0, 3, (n, draw(st.integers(0, 2))))
    return make_block(numeric * scale, nominal, k=min(k, n))


@pytest.mark.parametrize("effort", [0, 3])
@given(block=few_cells())
@settings(max_examples=60)
def test_no_step_is_left(effort: int, block: Block) -> None:
    """All cells being neighbours, the descent ends where no transfer, swap or split gains."""
    found = cells_of(Refine(effort=effort).cells(block))
    assert all(len(cell) < 2 * block.min_rows for cell in found)
    for one, other in combinations(found, 2):
        least = negligible(block, one, other)
        for after in steps(block, one, other):
            assert gain(block, (one, other), after) <= least


@given(few_cells())
@settings(max_examples=100)
def test_the_best_step(block: Block) -> None:
    """The step proposed between two cells is the one that gains most, and gains what it says."""
    size = block.n // 2
    assume(size >= block.min_rows)
    ids = (np.arange(block.n) >= size).astype(np.int64)
    state = make_refine_state(block.numeric, block.nominal, block.n_categories, ids, 2)
    near, listed = find_near_cells(state, 1), make_steps(3)
    seen = np.zeros(near.shape, np.int32)
    slot = find_next_steps(state, near, seen, 0, 0, block.min_rows, listed)
    one, other = cells_of(ids)
    gains = sorted(gain(block, (one, other), each) for each in steps(block, one, other))[::-1]
    least = negligible(block, one, other)
    if slot < 0:
        assert gains[0] <= least
    else:
        for expected, found, x, y in zip(gains, *listed[:3], strict=False):
            if x >= 0 or y >= 0:
                assert found == pytest.approx(float(expected), rel=1e-6, abs=least)
    assert find_next_steps(state, near, seen, 1, 0, block.min_rows, listed) == -1, (
        "looked at before"
    )


@pytest.mark.parametrize("far", [0.0, 0.1, 3.0])
def test_a_swap_of_categories(far: float) -> None:
    """Categories alone part these cells, or most of all: their centroids are near in numbers."""
    nominal = np.array([0] * 19 + [1] * 20 + [0])[:, None]
    numeric = np.repeat([0.0, far], 20)[:, None]
    block = make_block(numeric, nominal, k=20)
    ids = np.arange(40) // 20
    state = make_refine_state(block.numeric, block.nominal, block.n_categories, ids, 2)
    near, listed = find_near_cells(state, 1), make_steps(1)
    seen = np.zeros(near.shape, np.int32)
    best = max(gain(block, tuple(cells_of(ids)), each) for each in steps(block, *cells_of(ids)))
    found = find_next_steps(state, near, seen, 0, 0, 20, listed) == 0
    assert found == (best > 0)
    if found:
        assert listed.gain[0] == pytest.approx(float(best), rel=1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_the_search_finds_the_best_cells_of_few_rows(seed: int) -> None:
    random = np.random.default_rng(seed)
    n, k = int(random.integers(6, 10)), int(random.integers(2, 4))
    block = make_block(random.normal(size=(n, 2)), random.integers(0, 2, (n, seed % 2)), k=k)
    least = min(loss(block, ways) for ways in partitions(list(range(n)), k))
    found = loss(block, cells_of(Refine(effort=30).cells(block)))
    assert float(found) == pytest.approx(float(least), rel=1e-9)


def test_models_that_look_at_more_than_rows() -> None:
    """Steps are taken where diversity allows them, in the descent and in the search."""
    random = np.random.default_rng(3)
    x, disease = random.normal(size=(300, 2)), random.integers(0, 4, 300)
    block = make_block(x, k=4, sensitive=disease, l=3)
    start, descended = Mdav().cells(block), Refine(effort=0).cells(block)
    searched = Refine(effort=20).cells(block)
    for ids in (descended, searched):
        check_refined(block, start, ids)
    before, after, last = (float(loss(block, cells_of(i))) for i in (start, descended, searched))
    assert after < 0.9 * before
    assert last < 0.99 * after


def test_after_a_search_large_cells_can_be_split() -> None:
    """A split takes a free cell, which has no group."""
    x, none = np.random.default_rng(6).normal(size=(90, 2)), np.zeros(0, np.int64)
    cell = np.arange(90) % 20  # of 30 cells
    state = make_refine_state(x, np.zeros((90, 0), np.int32), none, cell, 30)
    near, random = find_near_cells(state, 4), np.array([1], np.uint64)
    upset_cells(state, near, np.zeros(near.shape, np.int32), random, 3, 1, 0.0)
    assert ((state.group == FREE) == (state.rows == 0)).all()
    assert (state.rows == 0).any()


def test_of_the_steps_proposed_the_first_allowed_is_taken() -> None:
    random = np.random.default_rng(5)
    block = make_block(random.normal(size=(12, 2)), random.integers(0, 2, (12, 1)), k=4)
    ids = np.arange(12) % 2
    state = make_refine_state(block.numeric, block.nominal, block.n_categories, ids, 2)
    near, listed, batch = find_near_cells(state, 1), make_steps(4), make_batch(24, 2, 4)
    propose_steps(state, near, np.zeros(near.shape, np.int32), 4, listed, batch)
    assert batch.size.tolist() == [4, 48]
    one, other = cells_of(ids)
    expected = sorted(gain(block, (one, other), each) for each in steps(block, one, other))[-3]
    take(state, near, np.zeros(near.shape, np.int32), batch, np.array([False, False, True, True]))
    taken = gain(block, (one, other), tuple(cells_of(state.cell)))
    assert float(taken) == pytest.approx(float(expected), rel=1e-9)
    assert float(taken) == pytest.approx(listed.gain[2], rel=1e-9)


@pytest.mark.parametrize("effort", [0, 1])
def test_persons_with_several_rows(effort: int) -> None:
    random = np.random.default_rng(4)
    unit = np.repeat(np.arange(60), 3)
    block = make_block(random.normal(size=(180, 2)), k=3, unit=unit)
    start, refined = Mdav().cells(block), Refine(effort=effort).cells(block)
    check_refined(block, start, refined)
    assert loss(block, cells_of(refined)) < loss(block, cells_of(start))


def test_large_cells_are_split() -> None:
    """The start leaves all in one cell: no cut has 4 rows on both sides."""
    x = np.concatenate([np.zeros((40, 1)), np.ones((1, 1))])
    block = make_block(x, k=4)
    assert Mondrian().cells(block).max() + 1 == 1
    assert Refine(start="mondrian", effort=0).cells(block).max() + 1 == 10


@given(blocks(max_columns=3), st.integers(1, 5))
@settings(max_examples=60)
def test_near_cells(block: Block, room: int) -> None:
    """The cells with the nearest centroids, after one of the same tuples; each tuples' once."""
    c = block.n // 3
    ids = np.arange(block.n) % max(c, 1)
    nominal = np.zeros((block.n, 0), np.int32)
    state = make_refine_state(block.numeric, nominal, np.zeros(0, np.int64), ids, max(c, 1))
    found = find_near_cells(state, room)
    numeric = make_block(block.numeric)
    members = cells_of(ids)
    point = [(*mean, loss) for mean, loss in zip(state.mean.tolist(), state.loss, strict=True)]
    for a, near in enumerate(found):
        others = {point[b]: b for b in range(len(members)) if b != a}
        same = others.pop(point[a], None)
        far = sorted(between(numeric, members[a], members[b]) for b in others.values())
        listed = [b for b in near if b >= 0]
        if same is not None and room:
            assert point[listed.pop(0)] == point[a]
            far = far[: room - 1]
        assert len({point[b] for b in listed} - {point[a]}) == len(listed) == len(far[:room])
        distances = [between(numeric, members[a], members[b]) for b in listed]
        assert distances == pytest.approx(far[:room])


def test_each_of_many_equal_cells_is_near_another() -> None:
    """Else the rows of a few would do all exchanges."""
    x = np.repeat([0.0, 1.0, 5.0], 40)[:, None]
    ids = np.arange(120) // 4  # ten cells at each value
    state = make_refine_state(x, np.zeros((120, 0), np.int32), np.zeros(0, np.int64), ids, 30)
    found = find_near_cells(state, 3)
    assert (found >= 0).all()
    assert (np.sort(state.mean[found, 0]) == [0.0, 1.0, 5.0]).all()
    assert set(found[:10, 1].tolist()) == set(range(10, 20))


@pytest.mark.parametrize("nominal", [False, True])
@pytest.mark.parametrize("start", ["mdav", "mondrian", ["mdav", "mondrian"]])
@pytest.mark.parametrize("effort", [0, 1])
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=15)
def test_rows_that_repeat(nominal: bool, start: Any, effort: int, seed: int) -> None:
    """Where each tuple has k rows or more, none is lost."""
    random = np.random.default_rng(seed)
    n_tuples, k = int(random.integers(2, 9)), int(random.integers(2, 6))
    place = random.permutation(np.repeat(np.arange(n_tuples), random.integers(k, 30, n_tuples)))
    tuples = random.normal(size=(n_tuples, 2))
    codes = place[:, None] if nominal else np.zeros((len(place), 0), np.int64)
    block = make_block(tuples[place], codes, k=k)
    assert loss(block, cells_of(Refine(start=start, effort=effort).cells(block))) == 0


@given(few_cells())
@settings(max_examples=100)
def test_cells_that_are_dissolved(block: Block) -> None:
    """The loss falls, and all rows keep a cell of k rows or more."""
    c = max(block.n // block.min_rows, 1)
    ids = np.arange(block.n) % c
    state = make_refine_state(block.numeric, block.nominal, block.n_categories, ids, c)
    before = loss(block, cells_of(ids))
    dissolved = dissolve_near(state, find_near_cells(state, min(4, c)))
    found = cells_of(np.unique(state.cell, return_inverse=True)[1])
    assert sorted(row for cell in found for row in cell) == list(range(block.n))
    assert min(map(len, found)) >= block.min_rows
    assert (loss(block, found) < before) if dissolved else (state.cell == ids).all()
    assert float(loss(block, found)) == pytest.approx(state.loss.sum(), rel=1e-6, abs=1e-6)
    assert state.own == pytest.approx(fresh(block, state.cell, c).own, rel=1e-6, abs=1e-9)


def fresh(block: Block, ids: Any, c: int) -> Any:
    return make_refine_state(block.numeric, block.nominal, block.n_categories, ids, c)


@given(block=blocks())
@settings(max_examples=40)
def test_the_best_of_several_descents(block: Block) -> None:
    """One pass of descent, then none that is left: the starts differ most."""
    names = ("mdav", "mondrian")
    kernels = [Refine(start=name, effort=0, passes=1) for name in names]
    ends = [kernel._descend_from_starts(block).state.loss.sum() for kernel in kernels]
    found = Refine(start=names, effort=0, passes=1).cells(block).tolist()
    assert found == kernels[int(np.argmin(ends))].cells(block).tolist()


def test_any_order_of_rows() -> None:
    random = np.random.default_rng(1)
    x = random.normal(size=(200, 3))
    rows = random.permutation(200)
    one, other = (cells(data, "refine", 4, effort=3) for data in (x, x[rows]))
    assert sorted(map(tuple, cells_of(one))) == sorted(
        tuple(sorted(rows[cell].tolist())) for cell in cells_of(other)
    )


class TestStart:
    """The kernel that it starts from, as a parameter."""

    def test_by_name_and_by_spec(self) -> None:
        kernel = Refine(start="mondrian")
        assert kernel == Refine(start={"type": "mondrian"}) == Refine(start=["mondrian"])
        relaxed = Refine(start={"type": "mondrian", "mode": "relaxed"}, effort=3)
        assert registry.build("kernel", registry.spec(relaxed)) == relaxed
        assert registry.spec(relaxed)["start"] == ({"type": "mondrian", "mode": "relaxed"},)

    @pytest.mark.parametrize(
        ("start", "said"),
        [
            ("modav", "unknown kernel 'modav'"),
            ({"type": "mdav", "speed": 4711}, "speed"),
            ({"type": "mdav", "variant": "secret"}, "variant"),
            ({"variant": "generic"}, "type"),
            (7, "start"),
            ([], "name a kernel"),
            (["mdav", "modav"], "unknown kernel 'modav'"),
        ],
    )
    def test_wrong(self, start: Any, said: str) -> None:
        with pytest.raises(ValidationError) as caught:
            Refine(start=start)
        (error,) = caught.value.errors(include_input=False, include_url=False)
        text = f"{error['loc']} {error['msg']}"
        assert said in text
        assert "secret" not in text
        assert "4711" not in text

    def test_it_needs_what_its_start_needs(self) -> None:
        for name, plugin in registry.plugins("kernel").items():
            if not any(field.is_required() for field in plugin.model_fields.values()):
                refine: Any = Refine(start=name)
                assert refine.needs_target == plugin().needs_target
                assert refine.needs_classes == plugin().needs_classes

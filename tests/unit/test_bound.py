"""Lower bounds of the loss against the optimum of small tables, found by enumeration."""

from dataclasses import replace
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import anonlib
from anonlib.loss import ReleasedBlock, _bound, list_metrics
from anonlib.loss._bound import CUT_SHORT, LP, NEAREST, bound_squares, price_nearest
from anonlib.loss._bound_core import lower_prices
from anonlib.loss.sse import Sse
from anonlib.loss.sse_bound import SseBound
from anonlib.privacy.k_anonymity import KAnonymity
from anonlib.table.block import Block

QUICK = settings(max_examples=25, deadline=None)


def squares(x: Any) -> float:
    return float(((x - x.mean(axis=0)) ** 2).sum())


def optimum(x: Any, k: int) -> float:
    """The least sum of squares of all divisions into cells of at least k rows."""
    sizes = range(k, 2 * k)  # larger cells can be split at no loss

    @cache
    def least(rows: tuple[int, ...]) -> float:
        if len(rows) < 2 * k:
            return squares(x[list(rows)])
        best = np.inf
        for size in sizes:
            if size == len(rows) or len(rows) - size >= k:
                for others in combinations(rows[1:], size - 1):
                    rest = tuple(row for row in rows[1:] if row not in others)
                    best = min(best, squares(x[[rows[0], *others]]) + (least(rest) if rest else 0))
        return best

    return least(tuple(range(len(x))))


def fractional_optimum(x: Any, k: int) -> float:
    """The linear program over all sets of k to 2k - 1 rows, by enumeration."""
    sets = [rows for size in range(k, 2 * k) for rows in combinations(range(len(x)), size)]
    cover = np.zeros((len(x), len(sets)))
    for j, rows in enumerate(sets):
        cover[list(rows), j] = 1.0
    cost = [squares(x[list(rows)]) for rows in sets]
    return float(linprog(cost, A_eq=cover, b_eq=np.ones(len(x))).fun)


@st.composite
def tables(draw: Any, most: int = 10) -> tuple[Any, int]:
    """Few rows with ties and twins, and k."""
    k = draw(st.integers(2, 4))
    n, p = draw(st.integers(2 * k, most)), draw(st.integers(1, 3))
    values = st.integers(0, draw(st.sampled_from([1, 3, 50])))
    rows = draw(st.lists(st.lists(values, min_size=p, max_size=p), min_size=n, max_size=n))
    return np.array(rows, np.float64), k


def cells_in_order(n: int, k: int) -> Any:
    return np.minimum(np.arange(n) // k, n // k - 1)


@given(tables())
@QUICK
def test_bound_is_the_fractional_optimum_and_no_more_than_the_optimum(table: Any) -> None:
    x, k = table
    value, kind = bound_squares(x, k, cells_in_order(len(x), k))
    fractional = fractional_optimum(x, k)
    assert kind == LP
    assert value == pytest.approx(fractional, rel=2 * _bound.GAP, abs=1e-6)
    assert value <= fractional + 1e-9
    assert value <= optimum(x, k) + 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_bound_of_twelve_rows(seed: int) -> None:
    x = np.random.default_rng(seed).normal(size=(12, 2)).round(1)
    x[:3] = x[3]
    least = optimum(x, 4)
    value, kind = bound_squares(x, 4, cells_in_order(12, 4))
    assert kind == LP
    assert 0.5 * least < value <= least + 1e-9


@given(table=tables(), seed=st.integers(0, 99), nodes=st.sampled_from([0, 1, 3, 10_000]))
@QUICK
def test_lower_prices_are_allowed_wherever_the_search_ends(
    table: Any, seed: int, nodes: int
) -> None:
    """Prices of any k to 2k - 1 rows are at most their sum of squares, and none has risen."""
    x, k = table
    n, random = len(x), np.random.default_rng(seed)
    price = random.normal(size=n) * random.choice([0.1, 1.0, 100.0])
    share = ((x[:, None] - x) ** 2).sum(axis=2) / k
    ascending = np.sort(share + np.diag(np.full(n, np.inf)), axis=1)[:, : k - 1]
    near = np.column_stack([np.zeros(n), np.cumsum(ascending / 2, axis=1)])
    lower, found = price.copy(), np.zeros((4 * n, k), np.int64)
    n_found = lower_prices(share, near, lower, random.permutation(n), 1e-9, nodes, found)
    assert (lower <= price).all()
    for size in range(k, min(2 * k, n + 1)):
        for rows in map(list, combinations(range(n), size)):
            assert lower[rows].sum() <= squares(x[rows]) + 1e-7
    for rows in found[:n_found].tolist():
        assert len(set(rows)) == k
        assert price[rows].sum() > squares(x[rows])


@given(tables())
@QUICK
def test_nearest_prices(table: Any) -> None:
    x, k = table
    far = ((x[:, None] - x) ** 2).sum(axis=2)
    others = [np.delete(far[i], i) for i in range(len(x))]
    expected = [np.sort(row)[: k - 1].sum() / (2 * k) for row in others]
    assert price_nearest(x, k) == pytest.approx(expected)
    assert price_nearest(x, k).sum() <= optimum(x, k) + 1e-9


def test_limits_decide_the_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(0).normal(size=(60, 3))
    cells = cells_in_order(60, 3)
    value = bound_squares(x, 3, cells).value
    for limit in ("MOST_ROWS", "MOST_K"):
        with monkeypatch.context() as patch:
            patch.setattr(_bound, limit, 2)
            nearest = bound_squares(x, 3, cells)
        assert nearest.kind == NEAREST
        assert nearest.value == pytest.approx(price_nearest(x, 3).sum())
        assert nearest.value < value
    for limit, most in (("ROUNDS", 1), ("NODES", 0)):
        with monkeypatch.context() as patch:
            patch.setattr(_bound, limit, most)
            early = bound_squares(x, 3, cells)
        assert early.kind == CUT_SHORT
        assert price_nearest(x, 3).sum() * (1 - 1e-6) <= early.value < value


def test_a_solver_that_fails_leaves_a_valid_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(0).normal(size=(12, 2))
    nothing = (np.inf, np.zeros(len(x)))
    monkeypatch.setattr("anonlib.loss._bound._Program.solve", lambda program: nothing)
    found = bound_squares(x, 3, cells_in_order(12, 3))
    assert found.kind == CUT_SHORT
    assert 0 < found.value <= optimum(x, 3)


def test_what_one_cell_or_twins_lose_is_exact() -> None:
    x = np.random.default_rng(0).normal(size=(5, 2))
    assert bound_squares(x, 3, np.zeros(5, np.int64)) == (pytest.approx(squares(x)), LP)
    assert bound_squares(np.repeat(x, 3, axis=0), 3, np.zeros(15, np.int64)) == (0.0, LP)
    assert bound_squares(x, 1, np.arange(5)) == (0.0, LP)


def released(x: Any, cell_id: Any, k: int, block_start: Any = None) -> ReleasedBlock:
    block = Block(
        numeric=x,
        nominal=np.zeros((len(x), 0), np.int32),
        sensitive=np.zeros((len(x), 0), np.int32),
        unit=None,
        widths=np.ptp(x, axis=0),
        n_categories=np.zeros(0, np.int64),
        models=(KAnonymity(k=k),),
    )
    return ReleasedBlock(block, cell_id, int(cell_id.max()) + 1, block_start=block_start)


def near_in_order(x: Any) -> Any:
    """The rows along a line from which they are not far, so that cells in order lose little."""
    return x[np.argsort(x[:, 0])] * [1.0, 0.2]


def test_metric_of_one_block() -> None:
    x = near_in_order(np.random.default_rng(1).normal(size=(12, 2)))
    given = released(x, cells_in_order(12, 3), 3)
    metric, state = SseBound(), SseBound().update(given)
    loss, bound = Sse().value(Sse().update(given)), metric.value(state)
    assert loss is not None
    assert bound is not None
    assert bound == pytest.approx(fractional_optimum(x, 3) / squares(x), rel=1e-3)
    text = metric.describe(state)
    assert text is not None
    percent = float(text.removeprefix("sse: at most ").partition(" %")[0])
    assert 0 <= percent - 100 * (loss / bound - 1) < 0.0100001
    assert text.endswith("above the optimum (bound by the optimum of a linear program)")


def test_metric_of_several_blocks_is_the_sum_of_their_bounds() -> None:
    x = np.random.default_rng(2).normal(size=(20, 2))
    x = np.concatenate([near_in_order(x[:12]), near_in_order(x[12:])])
    cells = np.append(cells_in_order(12, 3), 4 + cells_in_order(8, 3))
    metric = SseBound()
    parts = [
        metric.update(released(x[:12], cells[:12], 3)),
        metric.update(released(x[12:], cells[12:] - 4, 3)),
    ]
    both = metric.update(released(x, cells, 3, np.array([0, 12])))
    assert both == pytest.approx(metric.merge(*parts))
    whole = bound_squares(x, 3, cells).value
    assert both[0] > whole  # blocks cost
    assert "% above the optimum of these 2 blocks (" in str(metric.describe(both))


@pytest.mark.parametrize("n_blocks", [1, 2])
def test_a_weak_bound_tells_nothing(n_blocks: int) -> None:
    """Above 100 %, as a state of one column with the sum of squares 10 within cells has it."""
    for bound, starts in (
        (0.003, "sse: the bound is too weak here to tell how near the optimum is ("),
        (4.9, "sse: the bound is too weak here to tell how near the optimum is ("),
        (5.0, "sse: at most 100 % above the optimum"),
    ):
        kinds = [0.0, 0.0, n_blocks, 0.0]
        text = SseBound().describe(np.array([bound, *kinds, 10.0, 10.0, 0.0, 100.0]))
        assert text is not None
        assert text.startswith(starts)
        assert "the nearest rows of each row" in text


def test_no_bound_above_nothing_is_said() -> None:
    kinds = [0.0, 0.0, 1.0, 0.0]
    text = SseBound().describe(np.array([0.0, *kinds, 10.0, 10.0, 0.0, 100.0]))
    assert text == "sse: no bound above 0 was proved"
    assert SseBound().describe(np.array([0.0, *kinds, 10.0, 0.0, 0.0, 100.0])) is None


def test_metric_is_of_the_rows_that_have_a_cell() -> None:
    x = np.random.default_rng(3).normal(size=(12, 2))
    cells = cells_in_order(12, 3)
    cells[9:] = -1
    kept = released(x[:9], cells[:9], 3)
    assert SseBound().update(released(x, cells, 3)) == pytest.approx(SseBound().update(kept))


def test_metric_has_no_value_without_the_rows_or_a_spread() -> None:
    x = np.random.default_rng(4).normal(size=(8, 2))
    cells = cells_in_order(8, 3)
    whole = released(x, cells, 3)
    block = replace(whole.block, weight=np.full(8, 2))
    state = SseBound().update(replace(whole, block=block))
    assert SseBound().value(state) is None
    assert SseBound().describe(state) is None
    assert SseBound().value(SseBound().update(released(np.zeros((8, 2)), cells, 3))) is None


def test_a_release_says_how_far_it_is_from_the_optimum() -> None:
    random = np.random.default_rng(5)
    table = pd.DataFrame({"a": random.normal(size=60), "b": random.normal(size=60)})
    config = {
        "source": {"format": "dataframe"},
        "attributes": {name: {"role": "quasi_identifier", "scale": "continuous"} for name in table},
        "one_row_per_person": True,
        "privacy": {"models": [{"type": "k_anonymity", "k": 3}]},
        "release": {"path": "out/table"},
    }
    plain = anonlib.anonymize(table, config)
    bounded = anonlib.anonymize(table, {**config, "bound": True})
    assert "sse_bound" not in plain.losses
    loss, bound = bounded.losses["sse"], bounded.losses["sse_bound"]
    assert loss == plain.losses["sse"]
    assert loss is not None
    assert bound is not None
    assert 0.5 * loss < bound <= loss
    assert any("% above the optimum (bound by" in note for note in bounded.record["notes"])
    assert bounded.record["config_sha256"] == plain.record["config_sha256"]
    assert {"type": "sse_bound"} not in list_metrics(bound=False)


def test_without_a_column_every_sum_is_zero() -> None:
    for n in (3, 100, 3000):
        assert bound_squares(np.zeros((n, 0)), 2, np.zeros(n, np.int64)) == (0.0, LP)

"""Metrics against plain pandas, and merged over blocks against the whole."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonlib import registry
from anonlib.arrays import snap
from anonlib.loss import Metric, ReleasedBlock, list_metrics
from anonlib.loss.cell_size import CellSize
from anonlib.loss.mse import Mse
from anonlib.loss.ncp import Ncp
from anonlib.loss.sse import Sse
from anonlib.table.block import Block

QUICK = settings(max_examples=60)
METRICS: list[Metric] = [registry.build("metric", spec) for spec in list_metrics(bound=False)]


@st.composite
def tables(draw: Any) -> pd.DataFrame:
    """x0, x1 numbers on the grid, c0, c1 codes, a cell in every row; cells 0..m-1 all in use."""
    n = draw(st.integers(1, 40))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    spread = draw(st.sampled_from([0.0, 1.0, 30.0]))
    table = pd.DataFrame(
        {
            "x0": snap(random.normal(size=n) * spread),
            "x1": snap(random.normal(size=n)) + 5.0,
            "c0": random.integers(0, draw(st.integers(1, 5)), n),
            "c1": random.integers(0, draw(st.integers(1, 3)), n),
            "cell": random.integers(0, draw(st.integers(1, 6)), n),
        }
    )
    return table.assign(cell=table["cell"].astype("category").cat.codes.astype(np.int64))


def released(table: pd.DataFrame, whole: pd.DataFrame) -> ReleasedBlock:
    """Some rows of a table as a block with their cells, numbered anew."""
    cell = table["cell"].astype("category").cat.codes.to_numpy(np.int64)
    made = Block(
        numeric=np.ascontiguousarray(table[["x0", "x1"]].to_numpy()),
        nominal=np.ascontiguousarray(table[["c0", "c1"]].to_numpy(np.int32)),
        sensitive=np.zeros((len(table), 0), np.int32),
        unit=None,
        widths=np.ptp(whole[["x0", "x1"]].to_numpy(), axis=0),
        n_categories=whole[["c0", "c1"]].max().to_numpy() + 1,
        models=(),
        target=(table["c0"].to_numpy() % 2).astype(np.float64),
        n_classes=2,
    )
    return ReleasedBlock(made, cell, int(cell.max()) + 1)


def value(metric: Metric, table: pd.DataFrame) -> float | None:
    return metric.value(metric.update(released(table, table)))


@given(tables())
@QUICK
def test_cell_size(table: pd.DataFrame) -> None:
    assert value(CellSize(), table) == pytest.approx(len(table) / table["cell"].nunique())


@given(tables())
@QUICK
def test_sse(table: pd.DataFrame) -> None:
    x = table[["x0", "x1"]]
    within = (x - x.groupby(table["cell"]).transform("mean")).pow(2).to_numpy().sum()
    total = (x - x.mean()).pow(2).to_numpy().sum()
    found = value(Sse(), table)
    if found is None:
        assert total == pytest.approx(0, abs=1e-9)
    elif total > 1e-9:
        assert found == pytest.approx(within / total, rel=1e-7, abs=1e-9)
        assert -1e-9 <= found <= 1 + 1e-7


@given(tables())
@QUICK
def test_mse(table: pd.DataFrame) -> None:
    x = table[["x0", "x1"]]
    far = (x - x.groupby(table["cell"]).transform("mean")).pow(2).mean()
    state = Mse().update(released(table, table))
    assert Mse().by_column(state) == pytest.approx(far.to_numpy(), rel=1e-7, abs=1e-9)
    varying = far[np.ptp(x.to_numpy(), axis=0) > 0]
    if len(varying):
        assert Mse().value(state) == pytest.approx(varying.mean(), rel=1e-7, abs=1e-9)
    else:
        assert Mse().value(state) is None
    assert Sse().by_column(Sse().update(released(table, table))) is None


@given(tables())
@QUICK
def test_ncp(table: pd.DataFrame) -> None:
    groups = table.groupby("cell")
    penalties = []
    for name in ("x0", "x1"):
        width = np.ptp(table[name])
        if width > 0:
            extent = groups[name].transform("max") - groups[name].transform("min")
            penalties.append(extent / width)
    for name in ("c0", "c1"):
        size = table[name].max() + 1
        if size > 1:
            penalties.append((groups[name].transform("nunique") - 1) / (size - 1))
    found = value(Ncp(), table)
    if not penalties:
        assert found is None
    else:
        assert found == pytest.approx(np.mean(penalties), rel=1e-9, abs=1e-12)
        assert 0 <= found <= 1


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.type)
@given(table=tables(), seed=st.integers(0, 99))
@QUICK
def test_merging_blocks_is_the_whole(metric: Metric, table: pd.DataFrame, seed: int) -> None:
    """Whole cells are dealt to blocks, whose states are merged in any order."""
    random = np.random.default_rng(seed)
    of_cell = random.integers(0, 3, int(table["cell"].max()) + 1)
    states = [
        metric.update(released(rows, table))
        for _, rows in table.groupby(of_cell[table["cell"].to_numpy()])
    ]
    merged = states[0]
    for state in states[1:]:
        merged = metric.merge(merged, state)
    whole = metric.update(released(table, table))
    assert merged.dtype == np.float64
    assert merged.shape == whole.shape
    assert merged == pytest.approx(whole, rel=1e-9, abs=1e-9)
    expected = metric.value(whole)
    if expected is not None and np.ptp(table["x1"]) > 0:
        assert metric.value(merged) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    reverse = states[-1]
    for state in states[-2::-1]:
        reverse = metric.merge(reverse, state)
    assert reverse == pytest.approx(merged, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.type)
@given(table=tables())
@settings(max_examples=20)
def test_the_numbers_of_cells_do_not_matter(metric: Metric, table: pd.DataFrame) -> None:
    renamed = table.assign(cell=table["cell"].max() - table["cell"])
    before = metric.update(released(table, table))
    assert metric.update(released(renamed, table)) == pytest.approx(before, rel=1e-12, abs=1e-12)


def test_extremes() -> None:
    table = pd.DataFrame({"x0": [0.0, 1, 2], "x1": [1.0, 0, 5], "c0": [0, 1, 2], "c1": [0, 1, 0]})
    alone, together = table.assign(cell=[0, 1, 2]), table.assign(cell=0)
    for metric in (Sse(), Ncp()):
        assert value(metric, alone) == pytest.approx(0, abs=1e-12)
        assert value(metric, together) == pytest.approx(1)
    assert value(CellSize(), alone) == 1
    assert value(CellSize(), together) == 3


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.type)
def test_none_where_undefined(metric: Metric) -> None:
    """Nothing varies; or there is nothing. Each metric that can say None says why."""
    constant = pd.DataFrame({"x0": [0.0] * 4, "x1": [1.0] * 4, "c0": 0, "c1": 0, "cell": 0})
    found = value(metric, constant)
    assert found is None or np.isfinite(found)
    if metric.type in ("sse", "mse", "ncp", "nllm", "precision", "entropy"):
        assert found is None
    assert metric.undefined
    empty = np.zeros(len(metric.update(released(constant, constant))))
    assert metric.value(empty) is None


def test_no_numeric_or_no_nominal_columns() -> None:
    """The matrices are then n rows of nothing."""
    none = np.zeros((4, 0))
    numeric = np.array([[0.0], [1], [0], [1]])
    cell = np.array([0, 0, 1, 1])
    base: dict[str, Any] = {"sensitive": none.astype(np.int32), "unit": None, "models": ()}
    nominal_only = Block(
        none, numeric.astype(np.int32), widths=np.zeros(0), n_categories=np.array([2]), **base
    )
    numeric_only = Block(
        numeric,
        none.astype(np.int32),
        widths=np.ones(1),
        n_categories=np.zeros(0, np.int64),
        **base,
    )
    assert Sse().value(Sse().update(ReleasedBlock(nominal_only, cell, 2))) is None
    assert Ncp().value(Ncp().update(ReleasedBlock(nominal_only, cell, 2))) == 1
    assert Ncp().value(Ncp().update(ReleasedBlock(numeric_only, cell, 2))) == 1
    assert Sse().value(Sse().update(ReleasedBlock(numeric_only, cell, 2))) == 1

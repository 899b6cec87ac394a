"""What samples tell of a whole table, and how leaves are grouped by what a sample tells."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonlib.partition.cuts import Cuts
from anonlib.partition.leaf_plan import group_leaves
from anonlib.run.content import estimate_distinct


def column(values: object) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(values)])


def test_all_rows_tell_all_values() -> None:
    assert estimate_distinct(column([1, 1, 2, None]), 4) == (2, 2)
    assert estimate_distinct(column([1, 1, 2, 2]), 10**9) == (2, 2)  # none is there once


@pytest.mark.parametrize("n", [1_200, 10_000, 10**9])
def test_a_key(n: int) -> None:
    """Each value is there once: there are as many as rows, however few are sampled."""
    likely, most = estimate_distinct(column(np.arange(1_000)), n)
    assert likely == pytest.approx(n)
    assert most == pytest.approx(n)


@pytest.mark.parametrize("n_values", [20, 5_000, 50_000, 300_000])
def test_values_of_like_frequency(n_values: int) -> None:
    """By hand: all values of the table, against those of a sample without replacement."""
    random = np.random.default_rng(0)
    rows = random.integers(0, n_values, 400_000)
    truth = len(np.unique(rows))
    likely, most = estimate_distinct(column(random.choice(rows, 40_000, replace=False)), 400_000)
    assert likely == pytest.approx(truth, rel=0.2)  # a lower bound, by design
    assert most >= 0.99 * truth


def test_rare_values() -> None:
    """A few rows in a thousand have a value of their own. The estimate is low, the bound is not."""
    random = np.random.default_rng(0)
    rows = np.where(random.random(2_000_000) < 0.005, np.arange(2_000_000), -1)
    truth = len(np.unique(rows))
    likely, most = estimate_distinct(column(random.choice(rows, 20_000, replace=False)), len(rows))
    assert likely == pytest.approx(truth, rel=0.3)
    assert most == pytest.approx(truth, rel=0.3)


@given(st.lists(st.integers(0, 500), min_size=1, max_size=40), st.integers(1, 900))
def test_units_have_as_many_rows_as_they_must(sizes: list[int], least: int) -> None:
    """A tree that splits off one leaf after the other, so that leaves are neighbours by number."""
    n = len(sizes) - 1
    nodes = np.arange(n, dtype=np.int32)
    left, right = -1 - nodes, np.append(nodes[1:], -1 - n)[:n].astype(np.int32)
    root = np.array([0 if n else -1], np.int32)
    none = np.zeros((n, 1), np.float32)
    cuts = Cuts(none, none[:, 0], left, right, root)
    unit = group_leaves(cuts, np.array(sizes), least)
    assert unit[0] == 0
    assert set(np.diff(unit).tolist()) <= {0, 1}
    rows = np.bincount(unit, sizes)
    assert len(rows) == 1 or rows.min() >= least

"""Blocks: the grid, distinct tuples, and what privacy models see of cells."""

from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonlib.arrays import GRID, MISSING, snap
from anonlib.privacy import PrivacyModel
from anonlib.privacy.k_anonymity import KAnonymity
from anonlib.privacy.l_diversity import LDiversity
from anonlib.table.block import Block, count_sparse

QUICK = settings(max_examples=50)


def block(
    numeric: Any,
    nominal: Any = None,
    sensitive: Any = None,
    unit: Any = None,
    models: tuple[PrivacyModel, ...] = (),
) -> Block:
    """A block of the given rows, in the order given."""
    x = matrix(numeric, len(numeric), np.float64)
    codes, values = (matrix(part, len(x), np.int32) for part in (nominal, sensitive))
    return Block(
        numeric=x,
        nominal=codes,
        sensitive=values,
        unit=None if unit is None else np.asarray(unit, np.int32),
        widths=np.ptp(x, axis=0) if len(x) else np.zeros(x.shape[1]),
        n_categories=np.full(codes.shape[1], 9, np.int64),
        models=models,
        protected=tuple(f"s{j}" for j in range(values.shape[1])),
    )


def matrix(values: Any, n: int, dtype: Any) -> Any:
    """n rows of what may be None, a single column, or a matrix."""
    found = np.zeros((n, 0)) if values is None else np.asarray(values)
    return (found if found.ndim == 2 else found.reshape(n, 1)).astype(dtype)


@given(st.lists(st.floats(-(2.0**14), 2.0**14), min_size=1, max_size=30))
@QUICK
def test_snap_gives_the_nearest_multiple(values: list[float]) -> None:
    x = np.array(values)
    snapped = snap(x)
    assert np.all(snapped / GRID == np.rint(snapped / GRID))
    assert np.all(np.abs(snapped - x) <= GRID / 2)
    assert not np.signbit(snapped[snapped == 0]).any()
    assert np.array_equal(snap(snapped), snapped)


def test_snap_is_contiguous_and_has_one_zero() -> None:
    assert snap(np.zeros((4, 6))[::2, ::3]).flags.c_contiguous
    assert not np.signbit(snap(np.array([-0.0, -1e-9]))).any()


@given(st.lists(st.floats(-100, 100), min_size=2, max_size=40), st.randoms())
@QUICK
def test_sums_on_the_grid_do_not_depend_on_order(values: list[float], random: Any) -> None:
    x = snap(np.array(values))
    shuffled = x.copy()
    random.shuffle(shuffled)
    assert float(np.cumsum(x)[-1]) == float(np.cumsum(shuffled)[-1])


TUPLES = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1), st.integers(0, 2)), max_size=40)


@given(TUPLES)
@QUICK
def test_tuples_are_those_of_python(rows: list[tuple[int, int, int]]) -> None:
    rows = sorted(rows)
    table = np.array(rows).reshape(-1, 3)
    found = block(table[:, :2], table[:, 2:]).tuples
    counts = Counter(rows)
    assert [rows[i] for i in found.first] == list(counts)
    assert found.count.tolist() == list(counts.values())
    assert [rows[found.first[t]] for t in found.id] == rows


def test_tuples_of_nominal_columns_only() -> None:
    found = block(np.zeros((3, 0)), [[1], [1], [2]]).tuples
    assert found.first.tolist() == [0, 2]
    assert found.count.tolist() == [2, 1]
    assert found.id.tolist() == [0, 0, 1]


ROWS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(-1, 3), st.integers(-1, 2), st.integers(-1, 6)),
    min_size=1,
    max_size=40,
)


@given(ROWS, st.booleans())
@QUICK
def test_counts_are_those_of_pandas(rows: list[tuple[int, ...]], with_unit: bool) -> None:
    """Columns: cell, two protected columns, unit; -1 is missing."""
    table = pd.DataFrame(rows, columns=["cell", "s0", "s1", "unit"])
    made = block(table[["cell"]], None, table[["s0", "s1"]], table["unit"] if with_unit else None)
    cells = table["cell"].to_numpy(np.int64)
    counts = made.counts(cells, 4)
    groups = table.where(table >= 0).groupby("cell")
    sizes = groups.size().reindex(range(4), fill_value=0)
    persons = groups["unit"].nunique().reindex(range(4), fill_value=0) if with_unit else sizes
    assert counts.n_rows.tolist() == sizes.tolist()
    assert counts.n_persons.tolist() == persons.tolist()
    named = table[table["unit"] >= 0] if with_unit else table.assign(unit=range(len(table)))
    for name in ("s0", "s1"):
        present = named[named[name] >= 0]
        expected = present.groupby(["cell", name])["unit"].nunique()
        found = counts.sensitive[name]
        if with_unit:
            for n, some in ((found.n_known, present), (found.n_missing, named[named[name] < 0])):
                wanted = some.groupby("cell")["unit"].nunique().reindex(range(4), fill_value=0)
                assert n is not None
                assert n.tolist() == wanted.tolist()
        pairs = list(zip(found.cell.tolist(), found.value.tolist(), strict=True))
        assert pairs == list(expected.index)  # sorted by both
        assert found.count.tolist() == expected.tolist()


@given(ROWS, st.integers(2, 4), st.integers(2, 3))
@QUICK
def test_holds_is_a_recount(rows: list[tuple[int, ...]], k: int, l: int) -> None:  # noqa: E741
    table = pd.DataFrame(rows, columns=["cell", "s0", "s1", "unit"])
    models = (KAnonymity(k=k), LDiversity(l=l, attribute="s1"))
    made = block(table[["cell"]], None, table[["s0", "s1"]], table["unit"], models)
    found = made.holds(table["cell"].to_numpy(np.int64), 4)
    for cell in range(4):
        mine = table[table["cell"] == cell]
        persons = mine.loc[mine["unit"] >= 0, "unit"].nunique()
        values = mine.loc[(mine["s1"] >= 0) & (mine["unit"] >= 0), "s1"].nunique()
        assert found[cell] == (persons >= k and values >= l)


def test_counts_of_some_rows_only() -> None:
    made = block([0, 0, 1, 1, 2], None, [0, 1, MISSING, 1, 0], [4, 4, 4, 2, 1])
    rows = np.array([1, 2, 4])
    counts = made.counts(np.array([0, 0, 1]), 2, rows)
    assert counts.n_rows.tolist() == [2, 1]
    assert counts.n_persons.tolist() == [1, 1]
    assert counts.sensitive["s0"].cell.tolist() == [0, 1]
    assert counts.sensitive["s0"].value.tolist() == [1, 0]


def test_missing_values_and_persons_count_for_nothing() -> None:
    models = (KAnonymity(k=2), LDiversity(l=2, attribute="s0"))
    rows = [0] * 4
    assert not block(rows, None, [MISSING] * 4, range(4), models).holds(np.zeros(4, int), 1)[0]
    unknown = block(rows, None, [0, 1, 0, 1], [0, MISSING, MISSING, MISSING], models)
    assert not unknown.holds(np.zeros(4, int), 1)[0]
    empty = count_sparse(np.zeros(3, np.int64), np.full(3, MISSING, np.int32))
    assert len(empty.cell) == len(empty.value) == len(empty.count) == 0


def test_sparse_keeps_large_codes_apart() -> None:
    """A pair of a late cell and a large code does not overflow 32 bits."""
    codes = np.array([2**31 - 1, 0, 2**31 - 1], np.int32)
    found = count_sparse(np.array([70_000, 70_000, 0]), codes)
    assert found.cell.tolist() == [0, 70_000, 70_000]
    assert found.value.tolist() == [2**31 - 1, 0, 2**31 - 1]


def test_min_rows_and_what_counts() -> None:
    assert block([1]).min_rows == 1
    models = (KAnonymity(k=3), LDiversity(l=5, attribute="s0"))
    assert block([1], None, [0], models=models).min_rows == 5
    assert block([1], models=models[:1]).counts_rows_only
    assert not block([1], None, [0], models=models).counts_rows_only
    assert not block([1], unit=[0]).counts_rows_only


def test_no_rows() -> None:
    empty = block(np.zeros((0, 2)))
    assert empty.n == 0
    assert len(empty.tuples.first) == len(empty.tuples.id) == 0
    with pytest.raises(AttributeError):
        empty.numeric = np.zeros((1, 2))  # type: ignore[misc]

"""What columns say about each other, against counts in plain Python."""

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonlib.guesses.sketch import (
    find_copies,
    find_equal,
    find_sources,
    rank_singling,
    rate_unique,
)

TABLES = st.integers(1, 40).flatmap(
    lambda n: st.lists(st.lists(st.integers(0, 5), min_size=n, max_size=n), min_size=1, max_size=4)
)


def unique(columns: list[list[int]]) -> float:
    """The share of rows whose tuple occurs once."""
    counts = Counter(zip(*columns, strict=True))
    return sum(n == 1 for n in counts.values()) / len(columns[0])


@given(TABLES)
def test_shares(columns: list[list[int]]) -> None:
    arrays = {f"c{i}": np.array(column, np.int64) for i, column in enumerate(columns)}
    assert rate_unique([*arrays.values()]) == unique(columns)
    ranked = [*rank_singling(arrays, 3)]
    assert len(ranked) == min(3, len(columns))
    sets = combinations(columns, len(ranked))
    assert ranked[-1][1] == max(unique([*each]) for each in sets)  # no other set does more
    chosen: list[list[int]] = []
    for name, share in ranked:
        chosen.append(columns[int(name[1:])])
        assert share == unique(chosen)


def test_columns_that_single_out_only_together() -> None:
    """No column does it alone, so the first one is no better than the others; in a large table
    each next column is the finest."""
    r = np.random.default_rng(2)
    columns = {"sex": r.integers(0, 2, 900), "married": r.integers(0, 2, 900)}
    columns |= {
        name: r.integers(0, n, 900) for name, n in (("size", 9), ("years", 15), ("age", 60))
    }
    ranked = [name for name, _ in rank_singling(columns, 3)]
    assert ranked == ["age", "years", "size"]
    wide = {f"{name} {i}": values for i in range(80) for name, values in columns.items()}
    assert next(name for name, _ in rank_singling(wide, 3)) == "age 0"


def test_nothing() -> None:
    assert rate_unique([]) == 0.0
    assert [*rank_singling({}, 3)] == []
    assert find_copies({}) == []


def test_sources_and_copies() -> None:
    r = np.random.default_rng(1)
    town = r.integers(0, 200, 5_000)
    columns = {
        "town": town,
        "code": (town * 7919) % 1_009,
        "region": town // 20,
        "half": town // 100,
        "else": r.integers(0, 3, 5_000),
        "one": np.zeros(5_000, np.int64),
        "key": np.arange(5_000),
    }
    assert find_copies(columns) == [["town", "code"]]
    # `key` tells everything, but no row repeats a value of it
    assert find_sources(columns) == {"region": "town", "half": "region"}
    columns["region"][7] = 99
    assert "region" not in find_sources(columns)


def test_equal_columns() -> None:
    columns = {"a": np.arange(50), "b": np.arange(50)[::-1].copy(), "c": np.arange(50)}
    columns |= {"one": np.ones(50, np.int64), "same": np.ones(50, np.int64)}
    assert find_equal(columns) == [["a", "c"]]
    assert find_equal({name: column[:9] for name, column in columns.items()}) == []


@pytest.mark.parametrize(("n", "believed"), [(60, True), (12, False)])
def test_a_few_rows_prove_nothing(n: int, believed: bool) -> None:
    fine = np.arange(n) // 2
    assert bool(find_sources({"fine": fine, "coarse": fine % 2})) is believed

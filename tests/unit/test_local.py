"""`anonlib.cells`: data in memory, without Spark."""

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import anonlib
from anonlib.errors import InfeasibleError, InputError
from anonlib.local import cells
from anonlib.privacy.l_diversity import LDiversity

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(60, 3))


def sizes(ids: Any) -> list[int]:
    return sorted(np.bincount(ids).tolist())


def groups(ids: Any) -> set[frozenset[int]]:
    return {frozenset(np.flatnonzero(ids == c).tolist()) for c in np.unique(ids)}


def test_is_the_public_door() -> None:
    assert anonlib.cells is cells


def test_array() -> None:
    ids = cells(X, k=7)
    assert ids.dtype == np.int64
    assert sum(sizes(ids)) == 60
    assert min(sizes(ids)) == 7
    assert (np.diff(np.unique(ids, return_index=True)[1]) > 0).all()  # numbered by first row


@pytest.mark.parametrize("kernel", ["mdav", "mondrian"])
def test_row_order_units_and_container_do_not_matter(kernel: str) -> None:
    expected = groups(cells(X, kernel, 5))
    order = RANDOM.permutation(len(X))
    moved = cells(X[order], kernel, 5)
    assert {frozenset(order[list(g)].tolist()) for g in groups(moved)} == expected
    assert groups(cells(X * [1e9, 1e-9, 1] + [5, 0, 3], kernel, 5)) == expected
    frame = pd.DataFrame(X, columns=list("abc"))
    scales = dict.fromkeys("abc", "continuous")
    assert groups(cells(frame, kernel, 5, scales=scales)) == expected
    assert groups(cells(pa.Table.from_pandas(frame), kernel, 5, scales=scales)) == expected


def test_parameters_reach_the_kernel() -> None:
    tied = np.zeros((40, 1))
    tied[0] = 1
    assert len(set(cells(tied, "mondrian", 5).tolist())) == 1
    assert len(set(cells(tied, "mondrian", 5, mode="relaxed").tolist())) == 8


def test_scales() -> None:
    frame = pd.DataFrame(
        {
            "age": [20, 21, 60, 61, None, None],
            "level": pd.Categorical(
                ["low", "low", "high", "high", "mid", "mid"], ["low", "mid", "high"], ordered=True
            ),
            "city": ["x", "x", "y", "y", None, None],
            "note": range(6),
        }
    )
    pairs = {frozenset({0, 1}), frozenset({2, 3}), frozenset({4, 5})}
    for name, scale in (("age", "continuous"), ("level", "ordinal"), ("city", "nominal")):
        assert groups(cells(frame, "mdav", 2, scales={name: scale})) == pairs, name
    declared = {"age": "continuous", "level": "ordinal", "city": "nominal"}
    assert groups(cells(frame, "mdav", 2, scales=declared)) == pairs


def test_missing_is_one_deviation_from_the_mean() -> None:
    """So a missing value is nearer to a value at the mean than to one two deviations off."""
    x = np.array([[np.nan], [np.nan], [0.1], [-0.1], [2.0], [2.0], [-2.0], [-2.0]])
    assert groups(cells(x, "mdav", 2)) >= {frozenset({0, 1}), frozenset({4, 5})}
    ids = cells(np.array([[np.nan], [0.0], [0.1], [5.0], [5.1], [-5.0], [-5.1], [-5.2]]), k=2)
    assert ids[0] in (ids[1], ids[2])


def test_models() -> None:
    frame = pd.DataFrame({"x": np.arange(40.0), "disease": np.repeat(["a", "b", "?", "A "], 10)})
    model = LDiversity(l=2, attribute="disease")
    ids = cells(frame, "mondrian", 2, scales={"x": "continuous"}, models=[model])
    folded = frame["disease"].str.strip().str.lower()
    for c in range(ids.max() + 1):
        assert len(set(folded[ids == c]) - {"?"}) >= 2


def test_no_rows() -> None:
    assert cells(np.zeros((0, 2))).tolist() == []


def test_infeasible() -> None:
    with pytest.raises(InfeasibleError):
        cells(X, k=61)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"kernel": "mdaw"}, "unknown kernel 'mdaw'; there are: mdav, mondrian"),
        ({"k": 1}, "k_anonymity: k: "),
        ({"variant": "x"}, "kernel mdav: variant: "),
        ({"gamma": 1}, "kernel mdav: gamma: "),
        ({"models": ["l_diversity"]}, "models: str is not a privacy model"),
        ({"models": [LDiversity(l=2, attribute="x")]}, "attribute must name a column of a table"),
        ({"scales": {"x": "continuous"}}, "the columns of an array are continuous"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(InputError, match=text):
        cells(X, **arguments)


@pytest.mark.parametrize(
    ("data", "scales", "text"),
    [
        (X[:, 0], None, "in 2 dimensions, not float64 in 1"),
        (X.astype(str), None, "must have numbers"),
        ([[1.0]], None, "not list"),
        (np.array([[np.inf]] * 20), None, "column 0: 20 infinite values"),
        (pd.DataFrame({"a": [1]}), None, "needs the scale of every quasi-identifier"),
        (pd.DataFrame({"a": [1]}), {"b": "nominal"}, "not in the data: b"),
        (pd.DataFrame({"a": [1]}), {"a": "interval"}, "one of continuous, ordinal, nominal"),
        (pd.DataFrame({"a": ["secret"]}), {"a": "continuous"}, "continuous, but of type string"),
        (pd.DataFrame({"a": [1, "secret"]}), {"a": "nominal"}, "not of one type"),
        (pd.DataFrame({"a": [[1], [2]]}), {"a": "nominal"}, "has no categories"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), {"a": "nominal"}, "same name"),
    ],
)
def test_wrong_data(data: Any, scales: Any, text: str) -> None:
    with pytest.raises(InputError, match=text) as caught:
        cells(data, scales=scales)
    assert "secret" not in str(caught.value)

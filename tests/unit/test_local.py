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
from anonlib.registry import plugins

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


LABEL = np.where(X[:, 0] + X[:, 1] > 0, "yes", "no")


def test_target_of_an_array_is_an_array() -> None:
    frame = pd.DataFrame(X, columns=list("abc")).assign(label=LABEL)
    scales = dict.fromkeys("abc", "continuous")
    for kernel in ("lda_mdav", "mdav_sd"):
        expected = groups(cells(X, kernel, 5, target=LABEL))
        assert groups(cells(frame, kernel, 5, scales=scales, target="label")) == expected
        assert groups(cells(X, kernel, 5, target=LABEL == "no")) == expected  # classes, not order
        assert expected != groups(cells(X, "mdav", 5))


def test_all_weight_on_the_target() -> None:
    ids = cells(X, "mdav_sd", 5, target=LABEL, **{"lambda": 1.0})
    mixed = [len(set(LABEL[ids == c])) > 1 for c in range(ids.max() + 1)]
    assert sum(mixed) <= 1  # the rows that are left of a class


def test_scale_of_a_target() -> None:
    numbers = np.repeat([0, 1, 10], 20)
    near = cells(X[:, :1] * 0, "mdav_sd", 20, target=numbers, lambda_=1.0)
    assert groups(near) == {frozenset(range(20 * i, 20 * i + 20)) for i in range(3)}
    as_classes = groups(cells(X, "mdav_sd", 5, target=numbers, target_scale="nominal"))
    assert as_classes == groups(cells(X, "mdav_sd", 5, target=numbers.astype(str)))
    assert as_classes != groups(cells(X, "mdav_sd", 5, target=numbers))
    by_class = groups(cells(X, "lda_mdav", 5, target=numbers))
    assert by_class == groups(cells(X, "lda_mdav", 5, target=numbers.astype(str)))


def test_missing_targets_are_a_class_or_the_mean() -> None:
    label = np.array(["a", None] * 30, object)
    known = np.array(["a", "b"] * 30)
    assert groups(cells(X, "lda_mdav", 5, target=label)) == groups(
        cells(X, "lda_mdav", 5, target=known)
    )
    number = np.array([-1.0, np.nan, 1.0] * 20)
    at_mean = np.array([-1.0, 0.0, 1.0] * 20)
    sd = np.sqrt(1.5)  # of the present values; that of all is smaller
    found = cells(X, "mdav_sd", 5, target=number, lambda_=0.5)
    weight = 1 / (1 + sd**2)
    assert groups(found) == groups(cells(X, "mdav_sd", 5, target=at_mean, lambda_=weight))


def test_rows_of_equal_values_are_told_apart_by_their_target() -> None:
    x = np.zeros((40, 1))
    label = np.arange(40) % 2
    expected = {frozenset(label[list(g)]) for g in groups(cells(x, "mdav_sd", 20, target=label))}
    assert expected == {frozenset({0}), frozenset({1})}


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
        ({"kernel": "mdaw"}, f"unknown kernel 'mdaw'; there are: {', '.join(plugins('kernel'))}"),
        ({"k": 1}, "k_anonymity: k: "),
        ({"variant": "x"}, "kernel mdav: variant: "),
        ({"gamma": 1}, "kernel mdav: gamma: "),
        ({"models": ["l_diversity"]}, "models: str is not a privacy model"),
        ({"models": [LDiversity(l=2, attribute="x")]}, "attribute must name a column of a table"),
        ({"scales": {"x": "continuous"}}, "the columns of an array are continuous"),
        ({"kernel": "mdav_sd"}, "target: kernel mdav_sd needs one"),
        ({"target": LABEL[:5]}, "target: must be 60 values of one type"),
        ({"target": np.array([1, "secret"] * 30, object)}, "must be 60 values of one type"),
        ({"target": LABEL, "target_scale": "ordinal"}, "must be one of continuous, nominal"),
        ({"target": LABEL, "target_scale": "continuous"}, "continuous, but of type string"),
        (
            {"kernel": "lda_mdav", "target": LABEL, "target_scale": "continuous"},
            "kernel lda_mdav needs classes",
        ),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(InputError, match=text):
        cells(X, **arguments)


@pytest.mark.parametrize("target", ["c", LABEL, ["a"], 0])
def test_target_that_is_no_column(target: Any) -> None:
    frame = pd.DataFrame({"a": np.arange(20.0), "b": LABEL[:20]})
    with pytest.raises(InputError, match="target: must name a column"):
        cells(frame, scales={"a": "continuous"}, target=target)


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

"""`anonlib.cells`: data in memory, without Spark."""

from datetime import date
from inspect import unwrap
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import anonlib
from anonlib.errors import InfeasibleError, InputError
from anonlib.hierarchy import Hierarchy, parse_csv
from anonlib.local.cell_grouping import cells
from anonlib.privacy.l_diversity import LDiversity
from anonlib.privacy.t_closeness import TCloseness

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(60, 3))


def sizes(ids: Any) -> list[int]:
    return sorted(np.bincount(ids).tolist())


def groups(ids: Any) -> set[frozenset[int]]:
    return {frozenset(np.flatnonzero(ids == c).tolist()) for c in np.unique(ids)}


def test_is_the_public_door() -> None:
    assert unwrap(anonlib.cells) is cells


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


TEXTS = [
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.dictionary(pa.int8(), pa.string()),
    pa.dictionary(pa.int64(), pa.large_string()),
    pa.dictionary(pa.int32(), pa.string(), ordered=True),
]


def text_of(type: pa.DataType, values: list[str | None]) -> pa.Array:
    """An array of one of TEXTS, whose dictionary holds more than distinct present values."""
    if not pa.types.is_dictionary(type):
        return pa.array(values).cast(type)
    known = pa.array(["unused", *values, None], type.value_type)
    places = pa.array(range(1, len(values) + 1), type.index_type)
    return pa.DictionaryArray.from_arrays(places, known, ordered=type.ordered)


@pytest.mark.parametrize("type", TEXTS, ids=str)
def test_text_is_text_whatever_its_type(type: pa.DataType) -> None:
    """As a sensitive column, a quasi-identifier, a target, and along hierarchies."""
    illness = ["Flu", "flu ", "FLU", "?", None] * 4 + ["cold"] * 2
    x = np.arange(len(illness), dtype=float)
    plain = pa.table({"x": x, "s": illness})
    other = pa.table({"x": x, "s": text_of(type, illness)})
    model = LDiversity(l=2, attribute="s")
    scale = {"x": "continuous"}
    expected = groups(cells(plain, k=2, scales=scale, models=[model]))
    assert max(map(len, expected)) > 4  # else nothing were shown
    assert groups(cells(other, k=2, scales=scale, models=[model])) == expected
    kinds = Hierarchy.of(parse_csv("flu;ill;*\ncold;ill;*\n"))
    close = TCloseness(t=0.3, distance="hierarchical", attribute="s")
    given = {"scales": scale, "models": [close], "hierarchies": {"s": kinds}}
    assert groups(cells(other, k=2, **given)) == groups(cells(plain, k=2, **given))
    tree = Hierarchy.of(parse_csv("Flu;f;*\nflu ;f;*\nFLU;f;*\n?;g;*\ncold;g;*\n"))
    for kernel in ("mdav_generic", "peel", "mondrian"):
        given = {"scales": {"s": "nominal"}, "hierarchies": {"s": tree}}
        assert groups(cells(other, kernel, 2, **given)) == groups(cells(plain, kernel, 2, **given))
    found = [cells(t, "mdav_sd", 2, scales=scale, target="s") for t in (plain, other)]
    assert groups(found[0]) == groups(found[1])


@pytest.mark.parametrize("type", ["object", "category", "string", "string[pyarrow]", "str"])
def test_text_of_pandas_is_text(type: str) -> None:
    frame = pd.DataFrame({"x": np.arange(8.0), "s": ["Flu", "flu ", "FLU", "?", "flu"] + ["a"] * 3})
    model = LDiversity(l=2, attribute="s")
    given = frame.astype({"s": type})
    expected = cells(frame, k=2, scales={"x": "continuous"}, models=[model])
    assert cells(given, k=2, scales={"x": "continuous"}, models=[model]).tolist() == [*expected]


def test_numbers_in_dictionaries() -> None:
    known = pa.array([2.0, float("nan"), 2.0, None, -1.0])
    places = pa.array([0, 1, 2, 3, 4, 0], pa.int8())
    plain = pa.table({"x": [2.0, None, 2.0, None, -1.0, 2.0]})
    for ordered in (False, True):
        column = pa.DictionaryArray.from_arrays(places, known, ordered=ordered)
        table = pa.table({"x": column})
        for scale in ("continuous", "nominal"):
            found, expected = (cells(t, k=2, scales={"x": scale}) for t in (table, plain))
            assert groups(found) == groups(expected)
        table = table.append_column("y", pa.array(range(6)))
        model = LDiversity(l=3, attribute="x")
        with pytest.raises(InfeasibleError):  # there are two
            cells(table, k=2, scales={"y": "continuous"}, models=[model])


DAYS = [date(2000, 1, 1 + i % 4) for i in range(20)]


def test_dates_in_milliseconds_are_dates() -> None:
    plain = pa.table({"x": np.arange(20.0), "day": pa.array(DAYS)})
    other = plain.set_column(1, "day", pa.array(DAYS, pa.date64()))
    model = LDiversity(l=3, attribute="day")
    for scale in ("continuous", "ordinal", "nominal"):
        found = [groups(cells(t, k=3, scales={"day": scale})) for t in (plain, other)]
        assert found[0] == found[1]
    found = [
        groups(cells(t, k=3, scales={"x": "continuous"}, models=[model])) for t in (plain, other)
    ]
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "column",
    [
        pa.array(np.arange(6, dtype=np.float16)),
        pa.array([[1], [2], [3]] * 2),
        pa.array([b"Flu", b"flu "] * 3),
        pa.array([b"Flu", b"flu "] * 3, pa.large_binary()),
        pa.array([{"secret": 1}] * 6),
        pa.array(["secret"] * 6).dictionary_encode().cast(pa.dictionary(pa.int8(), pa.binary())),
        pc.run_end_encode(pa.array(["secret"] * 6)),
        pa.DictionaryArray.from_arrays(pa.array([0] * 6), pa.array([["secret"]])),
    ],
    ids=lambda column: str(column.type),
)
def test_types_that_can_not_be_protected(column: Any) -> None:
    table = pa.table({"x": range(6), "s": column})
    with pytest.raises(InputError, match="column s") as caught:
        cells(table, k=2, scales={"x": "continuous"}, models=[LDiversity(l=2, attribute="s")])
    assert str(column.type).removeprefix("dictionary<values=").split(",")[0] in str(caught.value)
    assert "secret" not in str(caught.value).replace(str(column.type), "")


def test_no_rows() -> None:
    assert cells(np.zeros((0, 2))).tolist() == []


def test_infeasible() -> None:
    with pytest.raises(InfeasibleError):
        cells(X, k=61)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            {"kernel": "mdaw"},
            r"unknown kernel 'mdaw'; did you mean mdav\? there are: full_domain, ",
        ),
        ({"kernel": 3}, "unknown kernel 3; there are: full_domain, "),
        ({"k": 1}, "k_anonymity.k: must be greater"),
        ({"variant": "x"}, r"kernel mdav\.variant: "),
        ({"gamma": 1}, r"kernel mdav\.gamma: "),
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
        (pd.DataFrame({"a": [1]}), {"a": "ordnal"}, "nominal; did you mean ordinal"),
        (pd.DataFrame({"a": ["secret"]}), {"a": "continuous"}, "continuous, but of type string"),
        (pd.DataFrame({"a": [1, "secret"]}), {"a": "nominal"}, "not of one type"),
        (pd.DataFrame({"a": [[1], [2]]}), {"a": "nominal"}, "has no categories"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), {"a": "nominal"}, "same name: a; rename"),
    ],
)
def test_wrong_data(data: Any, scales: Any, text: str) -> None:
    with pytest.raises(InputError, match=text) as caught:
        cells(data, scales=scales)
    assert "secret" not in str(caught.value)

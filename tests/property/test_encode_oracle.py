"""Every encoding against an oracle, one value at a time; whole tables; what is refused."""

import json
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from anonlib import registry
from anonlib.encode import EncoderDomain, encode, read_categories, read_published_hierarchies
from anonlib.encode._published import read_parents
from anonlib.encode.fill_parent import FillParent
from anonlib.encode.midpoint import Midpoint
from anonlib.encode.multi_hot import MultiHot
from anonlib.encode.one_hot import OneHot
from anonlib.encode.proportional import ProportionalEncoder
from anonlib.errors import InputError
from anonlib.recode import Cells
from anonlib.recode import Domain as Known
from anonlib.recode.arrow import write_iso
from anonlib.recode.interval import Interval
from anonlib.recode.lca import Lca
from anonlib.recode.proportional import Proportional as Shares
from anonlib.recode.set import Set
from tests.oracles_nodes import cells_of, hierarchies, hierarchy_of, lineage, lowest_common, shares

MARKER = "MARKER-of-a-raw-value"
QUICK = settings(max_examples=40, deadline=None)
TREE = hierarchy_of([[None, None, None], [None, None], None])

#: which nodes (missing is None) a released node exhibits
EXHIBITED: dict[str, Callable[[Any, Any, Any], bool]] = {
    "one_class": lambda tree, released, node: released == node,
    "fill_parent": lambda tree, released, node: node in lineage(tree, released),
    "fill_child": lambda tree, released, node: released in lineage(tree, node),
}


def built(type: str, **parameters: Any) -> Any:
    return registry.build("encoding", {"type": type, **parameters})


@pytest.mark.parametrize("type", EXHIBITED)
@QUICK
@given(data=st.data(), hierarchy=hierarchies(), level=st.integers(0, 3), missing=st.booleans())
def test_nodes(type: str, data: Any, hierarchy: Any, level: int, missing: bool) -> None:
    values, cells, lists = data.draw(cells_of(hierarchy))
    released = Lca(level=level).recode(pa.array(values, pa.string()), cells, Known(None, hierarchy))
    encoder, domain = built(type, missing=missing), EncoderDomain(hierarchy)
    found = encoder.features(released, domain)
    nodes = [*hierarchy.names, *[None] * missing]
    right = [
        [
            float(EXHIBITED[type](hierarchy, lowest_common(hierarchy, each, level), node))
            for node in nodes
        ]
        for each in lists
    ]
    assert isinstance(found, csr_matrix)
    assert found.dtype == np.float64
    assert found.toarray().tolist() == right
    labels = [f"x={name}" for name in hierarchy.names] + ["x is missing"] * missing
    assert encoder.names("x", domain) == tuple(labels)


@QUICK
@given(st.data(), hierarchies(), st.none() | st.integers(1, 9), st.booleans())
def test_proportions(data: Any, hierarchy: Any, steps: Any, missing: bool) -> None:
    values, cells, lists = data.draw(cells_of(hierarchy))
    column = pa.array(values, pa.string())
    released = Shares(steps=steps).recode(column, cells, Known(None, hierarchy))
    encoder = ProportionalEncoder(missing=missing)
    found = encoder.features(released, EncoderDomain(hierarchy)).toarray()
    nodes = [*hierarchy.names, *[None] * missing]
    assert (
        found.shape
        == (len(lists), len(nodes))
        == (
            len(lists),
            len(encoder.names("x", EncoderDomain(hierarchy))),
        )
    )
    for row, each in zip(found, lists, strict=True):
        share = shares(each, steps)
        right = [
            sum(s for v, s in share.items() if node in lineage(hierarchy, v)) for node in nodes
        ]
        assert np.allclose(row, np.array(right, float), rtol=0, atol=1e-15 * len(each))


@QUICK
@given(st.data(), hierarchies())
def test_proportions_of_single_rows_are_fill_parent(data: Any, hierarchy: Any) -> None:
    values, _, _ = data.draw(cells_of(hierarchy))
    column = pa.array(values, pa.string())
    alone = Cells(np.arange(len(values)), len(values))
    released = Shares().recode(column, alone, Known(None, hierarchy))
    raw = FillParent(missing=True).features(column, EncoderDomain(hierarchy))
    shared = ProportionalEncoder(missing=True).features(released, EncoderDomain(hierarchy))
    assert (raw.toarray() == shared.toarray()).all()


@pytest.mark.parametrize("type", ["one_hot", "multi_hot"])
def test_unknown_categories_have_no_feature_if_asked(type: str) -> None:
    values = ["b", "z", None, "a"]
    column = pa.array(values if type == "one_hot" else [[v, "z"] if v else None for v in values])
    domain = EncoderDomain(None, ("a", "b"))
    encoder = built(type, unknown="none", missing=True)
    found = encoder.features(column, domain).toarray().tolist()
    assert found == [[0, 1, 0], [0, 0, 0], [0, 0, 1], [1, 0, 0]]
    with pytest.raises(InputError, match="are not among its 2 categories"):
        built(type, missing=True).features(column, domain)


@QUICK
@given(st.lists(st.sampled_from([3, 10, -2]) | st.none(), max_size=8), st.booleans())
def test_one_hot(values: list[Any], missing: bool) -> None:
    categories = ("-2", "10", "3", "unseen")
    columns: list[Any] = [*categories, *[None] * missing]
    right = [[float(name == (None if v is None else str(v))) for name in columns] for v in values]
    encoder, domain = OneHot(missing=missing), EncoderDomain(None, categories)
    for type in (pa.int64(), pa.string()):
        column = pa.array(values, pa.int64()).cast(type)
        found = encoder.features(column, domain)
        assert found.shape == (len(values), len(columns))
        assert found.toarray().tolist() == right
        assert encoder.found(column) == {str(v) for v in values if v is not None}


ELEMENTS: dict[Any, Any] = {
    pa.string(): st.text(st.sampled_from('a,"\\[] \n'), max_size=2),
    pa.int64(): st.integers(-(2**63), 2**63 - 1) | st.integers(0, 3),
    pa.float64(): st.floats(allow_nan=False) | st.sampled_from([-0.0, 0.0, 1.0, 1e300]),
    pa.bool_(): st.booleans(),
    pa.date32(): st.dates(),
    pa.decimal128(9, 2): st.integers(-999, 999).map(lambda n: Decimal(n).scaleb(-2)),
}


@pytest.mark.parametrize("type", ELEMENTS, ids=str)
@QUICK
@given(data=st.data())
def test_multi_hot_is_the_same_of_arrays_and_of_texts(type: Any, data: Any) -> None:
    value = st.none() | ELEMENTS[type]
    lists = data.draw(st.lists(st.lists(value, min_size=1, max_size=4), max_size=5))
    cells = Cells(np.repeat(np.arange(len(lists)), [len(x) for x in lists]), len(lists))
    column = pa.array([each for values in lists for each in values], type)
    arrays = Set().recode(column, cells, Known())
    encoder = MultiHot(missing=True)
    categories = tuple(sorted(encoder.found(arrays)))
    found = encoder.features(arrays, EncoderDomain(None, categories)).toarray()
    in_text = Set(form="text").recode(column, cells, Known())
    assert encoder.found(in_text) == set(categories)
    assert (encoder.features(in_text, EncoderDomain(None, categories)).toarray() == found).all()
    for row, each in zip(found, arrays.to_pylist(), strict=True):
        members = {None} if each is None else set(write_iso(pa.array(each, type)).to_pylist())
        assert row.tolist() == [float(name in members) for name in (*categories, None)]


EPOCH = datetime.fromisoformat("1970-01-01")
BOUNDS = [
    (pa.array([1, 4, None, 7], pa.int64()), lambda v: v),
    (pa.array([0.5, 2.0, None, 1e308]), lambda v: v),
    (pa.array([Decimal("1.25"), Decimal("3.75"), None, Decimal(5)], pa.decimal128(9, 2)), float),
    (
        pa.array([date(2000, 1, 1), date(2000, 1, 4), None, date(1960, 2, 1)]),
        lambda v: v.toordinal() - date(1970, 1, 1).toordinal(),
    ),
    (
        pa.array(
            [EPOCH, EPOCH + timedelta(days=3), None, EPOCH - timedelta(hours=5)],
            pa.timestamp("us"),
        ),
        lambda v: (v - EPOCH) / timedelta(microseconds=1),
    ),
]


@pytest.mark.parametrize(("column", "number"), BOUNDS, ids=lambda x: str(getattr(x, "type", "")))
def test_midpoint_is_the_same_of_intervals_and_of_texts(column: Any, number: Any) -> None:
    cells = Cells(np.array([0, 0, 1, 2]), 3)
    low, high, alone = (float(number(column[i].as_py())) for i in (0, 1, 3))
    right = [[(low + high) / 2, 0.0], [0.0, 1.0], [alone, 0.0]]
    encoder = Midpoint(missing=True)
    for form in ("struct", "text"):
        released = Interval(form=form).recode(column, cells, Known())
        assert encoder.features(released, EncoderDomain()).toarray().tolist() == right
    raw = encoder.features(column, EncoderDomain()).toarray()
    assert raw.tolist() == [[low, 0.0], [high, 0.0], [0.0, 1.0], [alone, 0.0]]
    assert encoder.names("age", EncoderDomain()) == ("age", "age is missing")
    assert Midpoint().names("age", EncoderDomain()) == ("age",)


def test_missing_values_have_no_midpoint_of_their_own() -> None:
    with pytest.raises(
        InputError, match="1 missing values; give encoding midpoint `missing: true`"
    ):
        Midpoint().features(pa.array([1, None]), EncoderDomain())


TABLE = pa.table(
    {
        "race": ["v0", "g1", None],
        "shares": pa.array(
            [
                [{"node": 0, "share": 0.25}, {"node": 3, "share": 0.75}],
                None,
                [{"node": 9, "share": 1.0}],
            ],
            Shares().output(pa.string()),
        ),
        "sets": [["b", "a"], ["c"], None],
        "job": ["y", "x", "y"],
        "age": [{"lower": 1, "upper": 2}, {"lower": 3, "upper": 3}, {"lower": 4, "upper": 8}],
        "other": [1, 2, 3],
    }
)
COLUMNS = {
    "age": "midpoint",
    "race": {"type": "fill_parent", "missing": True},
    "shares": "proportional",
    "sets": {"type": "multi_hot", "missing": True},
    "job": "one_hot",
}


def test_a_table_is_its_columns_side_by_side() -> None:
    trees = {"race": TREE, "shares": TREE}
    found = encode(TABLE, COLUMNS, trees)
    nodes = [*TREE.names]
    assert found.names == (
        "age",
        *(f"race={name}" for name in nodes),
        "race is missing",
        *(f"shares={name}" for name in nodes),
        *("sets=a", "sets=b", "sets=c", "sets is missing", "job=x", "job=y"),
    )
    assert isinstance(found.features, csr_matrix)
    rows = found.features.toarray()
    assert rows.shape == (3, len(found.names))
    shown = [{n: v for n, v in zip(found.names, row, strict=True) if v} for row in rows.tolist()]
    assert nodes == ["v0", "v1", "v2", "v3", "v4", "v5", "g2", "g1", "*"]
    first = {"age": 1.5, "race=v0": 1.0, "race=g1": 1.0, "race=*": 1.0}
    first |= {"shares=v0": 0.25, "shares=g1": 0.25, "shares=v3": 0.75, "shares=g2": 0.75}
    first |= {"shares=*": 1.0, "sets=a": 1.0, "sets=b": 1.0, "job=y": 1.0}
    assert shown[0] == first
    last = {"age": 6.0, "race=*": 1.0, "race is missing": 1.0, "shares=*": 1.0}
    assert shown[2] == {**last, "sets is missing": 1.0, "job=y": 1.0}


def test_pandas_gives_the_same() -> None:
    trees = {"race": TREE, "shares": TREE}
    one, other = (encode(t, COLUMNS, trees) for t in (TABLE, TABLE.to_pandas()))
    assert one.names == other.names
    assert (one.features.toarray() == other.features.toarray()).all()


def test_another_table_has_the_same_features() -> None:
    columns = {"sets": "multi_hot", "job": "one_hot"}
    known = read_categories(TABLE, columns)
    assert known == {"sets": ("a", "b", "c"), "job": ("x", "y")}
    part = encode(TABLE.slice(1, 1), columns, categories=known)
    whole = encode(TABLE, columns)
    assert part.names == whole.names
    assert (part.features.toarray() == whole.features.toarray()[1:2]).all()


def test_no_rows_and_no_columns() -> None:
    found = encode(TABLE.slice(0, 0), COLUMNS, {"race": TREE, "shares": TREE})
    assert found.features.shape == (0, len(found.names))
    assert encode(TABLE, {}).features.shape == (3, 0)


def test_hierarchies_of_a_manifest() -> None:
    part = {"names": list(TREE.names), "parents": TREE.tree.parent.tolist()}
    found = read_published_hierarchies(json.dumps({"hierarchies": {"race": part}}))["race"]
    assert found.names == TREE.names
    for field in ("parent", "low", "high", "loss"):
        assert (getattr(found.tree, field) == getattr(TREE.tree, field)).all()
    assert read_published_hierarchies("{}") == {}


@pytest.mark.parametrize(
    ("names", "parents"),
    [
        (["a", "*"], [1]),
        (["*"], [0]),
        (["a", "a", "*"], [2, 2, 2]),
        (["a", "b", "*"], [2, 2, 0]),
        (["a", "g", "b", "*"], [1, 3, 3, 3]),  # an inner node before a leaf
        (["a", "b", "h", "g", "*"], [2, 2, 3, 2, 4]),  # a circle
        (["a", "b", "c", "g", "*"], [3, 4, 3, 4, 4]),  # not depth first
        (["a", "b", "*"], [2, 9, 2]),
        (["a", "b", "*"], [-1, 2, 2]),
    ],
)
def test_what_is_no_tree_is_refused(names: list[str], parents: list[int]) -> None:
    with pytest.raises(InputError, match="a hierarchy of nodes"):
        read_parents(names, parents)


def refused(column: Any, spec: Any, **more: Any) -> str:
    with pytest.raises(InputError) as caught:
        encode(pa.table({"race": column}), {"race": spec}, **more)
    text = str(caught.value)
    assert text.startswith("column race: ")
    assert MARKER not in text
    return text


def test_what_is_refused() -> None:
    nodes, trees = pa.array(["v0", MARKER]), {"race": TREE}
    assert "proportional needs its hierarchy" in refused(nodes, "proportional")
    text = refused(nodes, "proportional", hierarchies=trees)
    assert "has the type string, not the shares" in text
    assert "one of: one_class, fill_parent, fill_child" in text
    text = refused(TABLE.column("shares"), "fill_parent", hierarchies=trees)
    assert "encoding proportional takes" in text
    text = refused(nodes, "one_class", hierarchies=trees)
    assert "1 rows have a value that is no node" in text
    wrong = pa.array([[{"node": 7, "share": 1.0}]])
    assert "nodes that are not leaves" in refused(wrong, "proportional", hierarchies=trees)
    assert "1 values are not among its 1 cat" in refused(
        nodes, "one_hot", categories={"race": ("v0",)}
    )
    assert "no JSON arrays" in refused(nodes, "multi_hot")
    assert "something else" in refused(pa.array([f'[["{MARKER}"]]']), "multi_hot")
    assert "not sets" in refused(pa.array([1]), "multi_hot")
    assert "no intervals" in refused(nodes, "midpoint")
    assert "neither of numbers" in refused(pa.array([f"[1, {MARKER}]"]), "midpoint")
    assert "neither intervals nor numbers" in refused(pa.array([True]), "midpoint")
    text = refused(pa.array([{"lower": MARKER, "upper": "b"}]), "midpoint")
    assert "intervals of type string" in text
    assert "not of categories" in refused(TABLE.column("sets"), "one_hot")
    assert "unknown encoding 'one_shot'; did you mean one_hot? there are: fill_child" in refused(
        nodes, "one_shot"
    )
    assert "unknown field" in refused(nodes, {"type": "one_hot", "steps": 1}).lower()
    mixed = pd.DataFrame({"race": [1, MARKER]})
    with pytest.raises(InputError, match="column race: its values are not of one type"):
        encode(mixed, {"race": "one_hot"})
    with pytest.raises(InputError, match="column town: not in the table"):
        encode(TABLE, {"town": "one_hot"})


@pytest.mark.parametrize("type", registry.plugins("encoding"))
def test_parameters_are_described(type: str) -> None:
    fields = registry.plugins("encoding")[type].model_fields
    assert fields
    assert all(field.description for field in fields.values())

"""Distance-based record linkage against a plain search, one pair of a row and a tuple at a time."""

import json
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonlib import registry
from anonlib.errors import InputError
from anonlib.hierarchy import Hierarchy
from anonlib.hierarchy.files import parse_csv
from anonlib.measure.nearest import CHUNK
from anonlib.measure.risk._compared import match_column
from anonlib.measure.risk.linkage import _attack
from anonlib.recode import Cells, Domain
from anonlib.table.encoding import Encoding
from anonlib.table.schema import Column, Role, Scale

LEVELS = ("low", "some, more", 'hi"gh')
PATHS = {"a": ["AB"], "b": ["AB"], "c": ["CD", "CDE"], "d": ["CD", "CDE"], "e": ["CDE"]}
#: the leaves under each inner node
UNDER = {"AB": {"a", "b"}, "CD": {"c", "d"}, "CDE": {"c", "d", "e"}, "*": {*PATHS}}
TREE = Hierarchy.of(parse_csv("".join(";".join([v, *up, "*"]) + "\n" for v, up in PATHS.items())))
NUMBERS, TEXTS, LETTERS = [-7, 0, 3, 4, 250, None], [*LEVELS, None], [*PATHS, None]
INT = pa.int64()
#: scale, recoder, hierarchy, type, values
CASES: list[tuple[str, dict[str, Any], Hierarchy | None, pa.DataType, list[Any]]] = [
    ("continuous", {"type": "centroid"}, None, INT, NUMBERS),
    ("continuous", {"type": "median"}, None, INT, NUMBERS),
    ("continuous", {"type": "interval"}, None, INT, NUMBERS),
    ("continuous", {"type": "interval", "form": "text"}, None, INT, NUMBERS),
    ("continuous", {"type": "suppress"}, None, INT, NUMBERS),
    ("ordinal", {"type": "median"}, None, pa.string(), TEXTS),
    ("ordinal", {"type": "interval"}, None, pa.string(), TEXTS),
    ("ordinal", {"type": "interval", "form": "text"}, None, pa.string(), TEXTS),
    ("ordinal", {"type": "set"}, None, pa.string(), TEXTS),
    ("ordinal", {"type": "set", "form": "text"}, None, INT, NUMBERS),
    ("nominal", {"type": "mode"}, None, pa.string(), TEXTS),
    ("nominal", {"type": "set"}, None, pa.string(), TEXTS),
    ("nominal", {"type": "set", "form": "text"}, None, pa.string(), TEXTS),
    ("nominal", {"type": "set", "form": "text"}, None, INT, NUMBERS),
    ("nominal", {"type": "set", "form": "text"}, None, pa.bool_(), [True, False, None]),
    ("nominal", {"type": "lca"}, None, pa.string(), TEXTS),
    ("nominal", {"type": "lca"}, TREE, pa.string(), LETTERS),
    ("nominal", {"type": "proportional"}, TREE, pa.string(), LETTERS),
]


def column_of(i: int, case: Any) -> Column:
    scale, recoder, hierarchy, type, _ = case
    order = LEVELS if scale == "ordinal" and type == pa.string() else None
    built = registry.build("recoder", recoder)
    role, name = Role.QUASI_IDENTIFIER, f"column {i}"
    return Column(
        name,
        f"c{i}",
        role,
        type,
        str(type),
        scale=Scale(scale),
        order=order,
        recoder=built,
        hierarchy=hierarchy,
    )


def encoding_of(column: Column, case: Any) -> Encoding:
    """As a scan that saw all values, and missing ones, would make it."""
    scale, _, hierarchy, type, values = case
    present = [value for value in values if value is not None]
    if scale == "continuous":
        return Encoding(column.id, Scale(scale), True, mean=20.5, sd=31.25, low=-7, high=250)
    categories = pa.array(present if column.order or hierarchy else sorted(present), type)
    if scale == "ordinal":
        return Encoding(column.id, Scale(scale), True, 0.9, 1.1, 0, len(present) - 1, categories)
    return Encoding(column.id, Scale(scale), True, categories=categories)


def away(case: Any, encoding: Encoding, value: Any, released: Any) -> Fraction | float:
    """The squared distance of one value from one released value, as Python has them."""
    scale, recoder, hierarchy = case[:3]
    kind, text = recoder["type"], recoder.get("form") == "text"
    if kind == "suppress":
        return 0.0
    if scale != "nominal":
        if kind == "interval" and released is not None:
            ends = json.loads(released) if text else [released["lower"], released["upper"]]
        elif kind == "set" and released is not None:
            found = json.loads(released) if text else released
            ends = [each for each in found if each is not None]
            ends = sorted(ends, key=encoding.categories.to_pylist().index)
        else:
            ends = [] if released is None else [released]
        spot, ends = standard(encoding, [value])[0], standard(encoding, ends or [None])
        gap = max(ends[0] - spot, spot - ends[-1], Fraction(0))
        return gap**2 + ((value is None) != (released is None))
    if kind == "proportional":
        names = [*TREE.names, None]
        shares = {names[each["node"]]: each["share"] for each in released}
        return (1 - shares.get(value, 0.0)) ** 2
    if kind == "lca":
        if value == released or released == "*":
            return 0.0
        if hierarchy is None or None in (value, released):
            return 1.0
        both = UNDER.get(released, {released}) | {value}
        common = min(len(leaves) for leaves in UNDER.values() if both <= leaves)
        return 0.0 if value in UNDER.get(released, {}) else ((common - 1) / 4) ** 2
    if kind == "set":
        found = [None] if released is None else json.loads(released) if text else released
        return float(value not in found)
    return float(value != released)


def standard(encoding: Encoding, values: list[Any]) -> list[Fraction]:
    """Exact: values that are equally far from another one stay so."""
    if encoding.categories is not None:
        order = encoding.categories.to_pylist()
        values = [None if value is None else order.index(value) for value in values]
    mean, sd = Fraction(encoding.mean), Fraction(encoding.sd)
    return [Fraction(0) if value is None else (Fraction(value) - mean) / sd for value in values]


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_links_are_those_of_a_plain_search(data: Any) -> None:
    chosen = data.draw(st.lists(st.sampled_from(CASES), min_size=1, max_size=4))
    n, m = data.draw(st.integers(1, 25)), data.draw(st.integers(1, 6))
    cell = np.array(data.draw(st.lists(st.integers(0, m - 1), min_size=n, max_size=n)))
    _, cell = np.unique(cell, return_inverse=True)
    columns = [column_of(i, case) for i, case in enumerate(chosen)]
    encodings = {c.id: encoding_of(c, case) for c, case in zip(columns, chosen, strict=True)}
    original, released = {}, {}
    for column, case in zip(columns, chosen, strict=True):
        values = data.draw(st.lists(st.sampled_from(case[4]), min_size=n, max_size=n))
        original[column.id] = pa.array(values, case[3])
        cells = Cells(cell, int(cell.max()) + 1)
        domain = Domain(column.order, column.hierarchy)
        found = column.recoder.recode(original[column.id], cells, domain)
        released[column.id] = found.take(pa.array(cell))
    rows = list(zip(*(original[c.id].to_pylist() for c in columns), strict=True))
    tuples = list(zip(*(released[c.id].to_pylist() for c in columns), strict=True))
    names = [repr(each) for each in tuples]
    count = {name: names.count(name) for name in names}
    first = [names.index(name) for name in count]

    case = SimpleNamespace(
        schema=SimpleNamespace(quasi_identifiers=columns), encodings=encodings, k=3
    )
    table = pa.table(released)
    given_tuples = pa.concat_tables([table.take(first), table])
    n_rows = np.array([count[names[i]] for i in first])
    attack = _attack(case, pa.table(original), given_tuples, n_rows)
    alone = _attack(case, pa.table(original), table, np.zeros(0, np.int64))
    found, half = attack.linked(slice(0, n)), attack.linked(slice(n // 2, n))
    less = alone.linked(slice(0, n))
    for i, row in enumerate(rows):
        near = {
            j: sum(
                Fraction(away(case, encodings[c.id], value, each))
                for c, case, value, each in zip(columns, chosen, row, tuples[j], strict=True)
            )
            for j in first
        }
        best = [j for j in first if near[j] <= min(near.values()) * (1 + Fraction(1, 10**12))]
        own = any(names[j] == names[i] for j in best)
        assert (bool(found.own[i]), found.n_tuples[i]) == (own, len(best))
        assert found.n_rows[i] == sum(count[names[j]] for j in best)
        assert (less.own[i], less.n_tuples[i]) == (found.own[i], found.n_tuples[i])
        assert less.n_rows[i] == 3 * len(best)
    assert half.own.tolist() == found.own[n // 2 :].tolist()
    assert (found.own / found.n_rows).mean() <= 1 / min(count.values())
    assert attack.chunk == CHUNK // len(first)


def test_what_has_no_distance_is_told_without_values() -> None:
    """Texts that are no intervals, in a column that should have some."""
    column = column_of(0, CASES[3])
    values = pa.array([1, 2], INT)
    with pytest.raises(InputError) as caught:
        match_column(column, encoding_of(column, CASES[3]), values, pa.array(["[MARKER, 3]"]))
    assert str(caught.value) == "column column 0: released as string, which has no distance here"
    assert caught.value.__cause__ is None


def test_equally_near_numbers_are_tied() -> None:
    """Not on the grid of kernels, which moves them by up to a millionth of a deviation."""
    case = ("continuous", {"type": "centroid"}, None, INT, NUMBERS)
    column = column_of(0, case)
    encoding = Encoding(column.id, Scale.CONTINUOUS, False, mean=39.7, sd=11.6, low=20, high=59)
    released = pa.array([*range(20, 60, 2)], INT)
    between = pa.array([*range(21, 58, 2)], INT)
    given_case = SimpleNamespace(
        schema=SimpleNamespace(quasi_identifiers=[column]), encodings={column.id: encoding}, k=3
    )
    attack = _attack(
        given_case,
        pa.table({column.id: between}),
        pa.table({column.id: released}),
        np.zeros(0, int),
    )
    assert attack.linked(slice(0, 19)).n_tuples.tolist() == [2] * 19

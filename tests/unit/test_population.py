"""Persons of a population in the regions of a release, against plain looking."""

from datetime import date
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import anonlib
from anonlib.errors import ConfigError
from anonlib.hierarchy import Hierarchy
from anonlib.hierarchy.tree import Tree
from anonlib.measure import Findings
from anonlib.measure.case import PersonRows
from anonlib.measure.regions import IN_ALL, IN_REGION, IN_SEVERAL, N_ROWS, RegionCounts
from anonlib.measure.risk.population import MANY, ROWS, Population, make_regions
from anonlib.recode import Cells, Domain
from anonlib.recode.centroid import Centroid
from anonlib.recode.interval import Interval
from anonlib.recode.lca import Lca
from anonlib.recode.set import Set
from anonlib.recode.suppress import Suppress
from anonlib.table.encoding import Encoding
from anonlib.table.schema import Column, Role, Scale, Schema

# Leaves 0..3, then what is above them: names in the order of nodes.
TREE = Hierarchy(
    ("a", "b", "c", "d", "ab", "cd", "*"),
    Tree(
        parent=np.array([4, 4, 5, 5, 6, 6, 6]),
        low=np.array([0, 1, 2, 3, 0, 2, 0]),
        high=np.array([1, 2, 3, 4, 2, 4, 4]),
        loss=np.array([0, 0, 0, 0, 1 / 3, 1 / 3, 1]),
    ),
)
BELOW = {"ab": "ab", "cd": "cd", "*": "abcd", **{leaf: leaf for leaf in "abcd"}}
GRADES = ("low", "middle", "high")

AGE = Column("age", "c0", Role.QUASI_IDENTIFIER, pa.int64(), "bigint", scale=Scale.CONTINUOUS)
GRADE = Column(
    "grade", "c1", Role.QUASI_IDENTIFIER, pa.string(), "string", scale=Scale.ORDINAL, order=GRADES
)
TOWN = Column("town", "c2", Role.QUASI_IDENTIFIER, pa.string(), "string", scale=Scale.NOMINAL)
CAR = Column("car", "c3", Role.QUASI_IDENTIFIER, pa.string(), "string", scale=Scale.NOMINAL)


def columns(text: bool) -> list[Column]:
    form = "text" if text else "struct"
    how: dict[str, Any] = {"c0": Interval(form=form), "c1": Interval(form=form), "c2": Lca()}
    how["c3"] = Set(form="text" if text else "array")
    changed = []
    for column in (AGE, GRADE, TOWN, CAR):
        tree = TREE if column.id == "c2" else None
        fields = {**vars(column), "recoder": how[column.id], "hierarchy": tree}
        changed.append(Column(**fields))
    return changed


ENCODINGS = {
    "c0": Encoding("c0", Scale.CONTINUOUS, True, 0.0, 1.0, 0.0, 9.0),
    "c1": Encoding("c1", Scale.ORDINAL, True, categories=pa.array(GRADES)),
    "c2": Encoding("c2", Scale.NOMINAL, True, categories=pa.array([*"abcd"])),
    "c3": Encoding("c3", Scale.NOMINAL, True, categories=pa.array(["blue", "red"])),
}

Person = tuple[int | None, str | None, str | None, str | None]
PERSONS = st.tuples(
    st.none() | st.integers(0, 9),
    st.none() | st.sampled_from(GRADES),
    st.none() | st.sampled_from([*"abcd"]),
    st.none() | st.sampled_from(["red", "blue"]),
)
#: Of the population: with values that the release does not know.
OTHERS = st.tuples(
    st.none() | st.integers(-2, 12),
    st.none() | st.sampled_from([*GRADES, "best"]),
    st.none() | st.sampled_from([*"abcde"]),
    st.none() | st.sampled_from(["red", "blue", "green"]),
)


def table(rows: list[Any], schema: list[Column]) -> pa.Table:
    arrays = [pa.array([row[i] for row in rows], c.type) for i, c in enumerate(schema)]
    return pa.table(dict(zip([c.id for c in schema], arrays, strict=True)))


def released(rows: list[Any], cell: Any, schema: list[Column]) -> pa.Table:
    """One row for each cell."""
    cells = Cells(cell, int(cell.max()) + 1)
    source = table(rows, schema)
    return pa.table(
        {
            c.id: c.recoder.recode(
                source.column(c.id).combine_chunks(), cells, Domain(c.order, c.hierarchy)
            )
            for c in schema
        }
    )


def lies_in(person: Any, region: dict[str, Any]) -> bool:
    """Whether a person is in a region, as arrays and structs have it."""
    age, grade, town, car = person
    inside = []
    for value, span, order in (
        (age, region["c0"], range(-2, 13)),
        (grade, region["c1"], GRADES),
    ):
        if span is None or span["lower"] is None:
            inside.append(True)
        else:
            low, high = (order.index(span[end]) for end in ("lower", "upper"))
            inside.append(value in order[low : high + 1])
    node = region["c2"]
    inside.append(node == "*" or (town is None if node is None else (town or "-") in BELOW[node]))
    inside.append(region["c3"] is None or car in region["c3"])
    return all(inside)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(PERSONS, st.integers(0, 4)), min_size=1, max_size=20),
    st.lists(OTHERS, max_size=40),
    st.booleans(),
)
def test_regions_count_who_lies_in_them(
    rows: list[tuple[Person, int]], others: list[Any], text: bool
) -> None:
    _, cell = np.unique([row[1] for row in rows], return_inverse=True)
    persons = [row[0] for row in rows]
    plain, schema = released(persons, cell, columns(False)), columns(text)
    regions = make_regions(schema, ENCODINGS, released(persons, cell, schema))
    population = table(others, schema)
    population = population.append_column(N_ROWS, pa.array([2] * len(others), pa.int64()))
    found = regions.count([population.slice(0, 7), population.slice(7)])
    expected = [sum(lies_in(o, region) for o in others) for region in plain.to_pylist()]
    assert found[IN_REGION].tolist() == [2 * n for n in expected]
    assert found[IN_ALL].tolist() == [2 * len(others)]
    several = [sum(lies_in(o, region) for region in plain.to_pylist()) > 1 for o in others]
    assert found[IN_SEVERAL].tolist() == [2 * sum(several)]


def value(found: Findings, name: str) -> float | None:
    (figure,) = [each for each in found.figures if each.name == name]
    return figure.value


def find(schema: list[Column], classes: Any, counted: Any, **changes: Any) -> Findings:
    given = {"unit": (), **changes}
    case: Any = SimpleNamespace(
        schema=Schema(tuple(schema), unit=given["unit"]),
        encodings=ENCODINGS,
        person_rows=lambda: PersonRows(4, given.get("of_nobody", 0)),
        tuples=lambda ids, most, released: classes,
        count_population=lambda source, columns, regions: RegionCounts(*counted),
    )
    named = {column.name: column.name.upper() for column in schema}
    return Population(source={"format": "delta", "path": "p"}, columns=named).measure(case)


def test_figures_are_those_of_the_counts() -> None:
    (age, *_) = columns(False)
    spans = [{"lower": 0, "upper": 3}, {"lower": 4, "upper": 5}, {"lower": 6, "upper": 9}]
    type = pa.struct([("lower", pa.int64()), ("upper", pa.int64())])
    classes = pa.table({"c0": pa.array(spans, type)}), np.array([3, 5, 2])
    found = find([age], classes, (np.array([12, 4, 8]), 30, 0))
    assert value(found, "k_map") == 5  # five were released, so five at least are there
    assert value(found, "journalist_max") == 1 / 5
    assert value(found, "journalist_mean") == pytest.approx((3 / 12 + 5 / 5 + 2 / 8) / 10)
    assert (value(found, "presence_min"), value(found, "presence_max")) == (0.25, 1.0)
    notes = {figure.note for figure in found.figures}
    assert notes == {"of 30 persons; 1 class has fewer persons there"}


def test_presence_is_not_told_where_regions_overlap() -> None:
    """All eight persons are released, and a class's share of its region is no presence."""
    (age, *_) = columns(False)
    spans = [{"lower": 0, "upper": 5}, {"lower": 3, "upper": 9}]
    type = pa.struct([("lower", pa.int64()), ("upper", pa.int64())])
    classes = pa.table({"c0": pa.array(spans, type)}), np.array([4, 4])
    found = find([age], classes, (np.array([6, 6]), 8, 4))
    assert value(found, "k_map") == 6
    assert value(found, "presence_min") is value(found, "presence_max") is None
    assert found.figures[-1].note == "4 persons are in the regions of several classes"


def test_rows_of_a_person_are_no_persons() -> None:
    """Nobody has more than four rows: 3, 5 and 9 rows are of 1, 2 and 3 persons at least."""
    (age, *_) = columns(False)
    spans = [{"lower": 0, "upper": 3}, {"lower": 4, "upper": 5}, {"lower": 6, "upper": 9}]
    type = pa.struct([("lower", pa.int64()), ("upper", pa.int64())])
    classes = pa.table({"c0": pa.array(spans, type)}), np.array([3, 5, 9])
    found = find([age], classes, (np.array([12, 1, 4]), 30, 0), unit=("c9",))
    assert value(found, "k_map") == 2
    assert value(found, "journalist_max") == 1 / 2
    assert value(found, "journalist_mean") == pytest.approx((3 / 12 + 5 / 2 + 9 / 4) / 17)
    assert (value(found, "presence_min"), value(found, "presence_max")) == (0.25, 1.0)
    assert [figure.name for figure in found.figures if figure.by_rows] == ["journalist_mean"]
    (note,) = {figure.note for figure in found.figures}
    assert note == f"of 30 persons; 1 class has fewer persons there; {ROWS}"
    found = find([age], classes, (np.array([0, 0, 0]), 30, 0), unit=("c9",))
    assert (value(found, "k_map"), value(found, "journalist_max")) == (1, 1.0)


def test_points_are_no_regions() -> None:
    point = Column(**{**vars(AGE), "recoder": Centroid()})
    found = find([point], None, None)
    notes = {(figure.value, figure.note) for figure in found.figures}
    assert notes == {(None, "age: released values are no regions")}
    (age, *_) = columns(False)
    assert {figure.note for figure in find([age], None, None).figures} == {MANY}


def test_a_suppressed_column_contains_everybody() -> None:
    nothing = Column(**{**vars(TOWN), "recoder": Suppress()})
    classes = pa.table({}), np.array([7])
    found = find([nothing], classes, (np.array([100]), 100, 0))
    assert value(found, "k_map") == 100


def test_dates_are_in_their_intervals() -> None:
    day = Column(**{**vars(AGE), "type": pa.date32(), "recoder": Interval()})
    days = [date(2020, 1, i) for i in (1, 5, 9)]
    cells = Cells(np.array([0, 0, 1]), 2)
    spans = day.recoder.recode(pa.array(days, pa.date32()), cells, Domain())
    regions = make_regions([day], ENCODINGS, pa.table({"c0": spans}))
    rows = pa.table({"c0": pa.array([*days, date(2020, 1, 3)], pa.date32()), N_ROWS: [1] * 4})
    assert regions.count([rows])[IN_REGION].tolist() == [3, 1]


@pytest.mark.parametrize("form", ["struct", "text"])
def test_ends_at_bottom_and_top_contain_all_beyond(form: Any) -> None:
    age = Column(**{**vars(AGE), "recoder": Interval(form=form, bottom=20, top=90)})
    cells = Cells(np.array([0, 0, 1, 1, 2, 2]), 3)
    spans = age.recoder.recode(pa.array([5, 30, 40, 50, 85, 95]), cells, Domain())
    regions = make_regions([age], ENCODINGS, pa.table({"c0": spans}))
    rows = pa.table({"c0": pa.array([-1, 5, 20, 35, 84, 90, 95, 120, None]), N_ROWS: [1] * 9})
    assert regions.count([rows])[IN_REGION].tolist() == [3, 0, 3]


@pytest.mark.parametrize(
    ("changes", "where", "text"),
    [
        ({"source": {"path": "p"}}, "source.format", "required"),
        ({"source": {"format": "delta"}}, "source.path", "required"),
        ({"source": {"format": "jdbc"}}, "source.format", "must be a table or files"),
        ({"source": {"format": "csv", "path": "p", "sheet": 1}}, "source.sheet", "unknown field"),
        ({"columns": {"agee": "AGE"}}, "columns", "did you mean age?"),
        ({"columns": {}}, "columns", ""),
    ],
)
def test_problems_of_a_population_are_told_before_a_run(
    changes: dict[str, Any], where: str, text: str
) -> None:
    measure = {
        "type": "population",
        "source": {"format": "delta", "path": "p"},
        "columns": {"age": "AGE"},
    }
    config = {
        "source": {"format": "parquet", "path": "people"},
        "attributes": {"age": {"role": "quasi_identifier", "scale": "continuous"}},
        "one_row_per_person": True,
        "privacy": {"models": [{"type": "k_anonymity", "k": 3}]},
        "release": {"path": "out"},
        "evaluate": {"measures": [measure]},
    }
    anonlib.parse(config)
    with pytest.raises(ConfigError) as caught:
        anonlib.parse({**config, "evaluate": {"measures": [{**measure, **changes}]}})
    (problem,) = caught.value.problems
    assert problem.where == f"evaluate.measures.0.{where}"
    assert text in problem.text


def test_rows_of_nobody_are_no_persons() -> None:
    """All three rows of nobody may be in any class: 3, 5 and 12 rows are of 1, 1 and 3 persons at
    least, since no class is without a person."""
    (age, *_) = columns(False)
    spans = [{"lower": 0, "upper": 3}, {"lower": 4, "upper": 5}, {"lower": 6, "upper": 9}]
    type = pa.struct([("lower", pa.int64()), ("upper", pa.int64())])
    classes = pa.table({"c0": pa.array(spans, type)}), np.array([3, 5, 12])
    found = find([age], classes, (np.array([0, 1, 2]), 30, 0), unit=("c9",), of_nobody=3)
    assert value(found, "k_map") == 1
    assert value(found, "journalist_mean") == pytest.approx((3 / 1 + 5 / 1 + 12 / 3) / 20)

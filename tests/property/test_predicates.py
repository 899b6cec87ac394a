"""Counts by predicates, against a look at every row."""

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonlib.measure.attack_tables import OUT, ROW
from anonlib.measure.risk import _passes
from anonlib.measure.risk._predicates import Predicates, are_single, merge_matches
from anonlib.measure.risk._regions import ABSENT, EVERYTHING, Range, Region, read_regions
from anonlib.recode import Cells, Domain
from anonlib.recode.interval import Interval
from anonlib.recode.set import Set
from anonlib.table.schema import Column, Role, Scale

QUASI, NOMINAL, NUMBER = Role.QUASI_IDENTIFIER, pa.string(), pa.float64()
#: Released as numbers, as intervals, as texts, and as sets.
COLUMNS = (
    Column("a", "c0", QUASI, NUMBER, "double", scale=Scale.CONTINUOUS),
    Column("b", "c1", QUASI, NUMBER, "double", scale=Scale.CONTINUOUS, recoder=Interval()),
    Column("c", "c2", QUASI, NOMINAL, "string", scale=Scale.NOMINAL),
    Column("d", "c3", QUASI, NOMINAL, "string", scale=Scale.NOMINAL, recoder=Set()),
)
NUMBERS = st.none() | st.sampled_from([-1.5, -0.0, 0.0, 1.0, 2.0, 3.25])
TEXTS = st.none() | st.sampled_from([*"vwxyz"])
SPANS = st.none() | st.tuples(NUMBERS, NUMBERS).filter(lambda ends: None not in ends).map(
    lambda ends: {"lower": min(ends), "upper": max(ends)}
)
SETS = st.none() | st.lists(TEXTS, max_size=3, unique=True)
SPAN = pa.struct([("lower", NUMBER), ("upper", NUMBER)])
#: The values of released and of original rows, and their types.
RELEASED = (NUMBERS, SPANS, TEXTS, SETS), (NUMBER, SPAN, NOMINAL, pa.list_(NOMINAL))
ORIGINAL = (NUMBERS, NUMBERS, TEXTS, TEXTS), (NUMBER, NUMBER, NOMINAL, NOMINAL)

ENDS = st.sampled_from([-np.inf, -1.5, 0.0, 0.5, 2.0, np.inf])
RANGES = st.just(ABSENT) | st.tuples(ENDS, ENDS).map(lambda ends: Range(min(ends), max(ends)))
MEMBERS = st.frozensets(TEXTS | st.just("unseen"), min_size=1, max_size=4)
CONDITIONS = [(0, RANGES), (1, RANGES), (2, MEMBERS), (3, MEMBERS)]
CONDITION = st.one_of(*(st.tuples(st.just(i), each) for i, each in CONDITIONS))
CONJUNCTION = st.lists(CONDITION, min_size=1, max_size=3, unique_by=lambda each: each[0])
PREDICATES = st.lists(CONJUNCTION.map(tuple), max_size=8)


def make_tables(draw: Any, released: bool, numbered: bool) -> list[pa.Table]:
    """Rows in some tables, with OUT, and with ROW if they are numbered."""
    values, types = RELEASED if released else ORIGINAL
    row, n = st.tuples(*values, st.integers(0, 3), st.booleans()), draw(st.integers(0, 30))
    rows = draw(st.lists(row, min_size=n, max_size=n))
    columns = {c.id: pa.array([row[i] for row in rows], types[i]) for i, c in enumerate(COLUMNS)}
    columns[OUT] = pa.array([row[5] for row in rows], pa.bool_())
    if numbered:
        columns[ROW] = pa.array([row[4] for row in rows], pa.int64())
    table, cut = pa.table(columns), draw(st.integers(0, 30))
    return [table.slice(0, cut), table.slice(cut)]


def holds(region: Region, condition: Region) -> bool:
    """Whether a region lies in a condition."""
    if condition is ABSENT or region is ABSENT:
        return condition is region
    if region == EVERYTHING:
        return False
    if isinstance(condition, Range):
        assert isinstance(region, Range)
        return condition.low <= region.low and region.high <= condition.high
    assert not isinstance(region, Range)
    return region <= condition


def count_slowly(
    tables: list[pa.Table], predicates: list[Any], released: bool, side: bool | None
) -> list[list[int | None]]:
    """By predicate: the numbers of the rows of a side for which it holds."""
    found: list[list[int | None]] = [[] for _ in predicates]
    for table in tables:
        regions = [
            read_regions(column, table.column(column.id), released=released).regions()
            for column in COLUMNS
        ]
        for j, row in enumerate(table.to_pylist()):
            for its, conditions in zip(found, predicates, strict=True):
                if side in (None, row[OUT]) and all(holds(regions[i][j], c) for i, c in conditions):
                    its.append(row.get(ROW))
    return found


def check(state: Any, numbers: list[list[Any]], n_rows: int, several: bool, numbered: bool) -> None:
    """Checks a state by the slow count. several: Whether it counts rows beyond two numbers."""
    assert state[-1] == n_rows
    for its, (n, least, most) in zip(numbers, state[:-1].reshape(-1, 3).tolist(), strict=True):
        present = {each for each in its if each is not None}
        if numbered and not several and len(present) > 1:
            assert least < most
            assert {least, most} <= present
            assert 2 <= n <= len(its)
            continue
        ends = (min(present), max(present)) if present else (np.inf, -np.inf)
        assert (n, least, most) == (len(its), *ends)
    single = [len({*its}) == 1 if numbered else len(its) == 1 for its in numbers]
    assert are_single(state, numbered=numbered).tolist() == single


@settings(max_examples=100)
@given(st.data(), st.booleans(), PREDICATES, st.sampled_from([1, 100]))
def test_predicates_hold_for_the_rows_of_a_slow_count(
    data: Any, numbered: bool, predicates: list[Any], most: int
) -> None:
    every = Predicates.of(COLUMNS, predicates)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_passes, "ROWS", most)
        for released in (False, True):
            tables = make_tables(data.draw, released, numbered)
            slow = count_slowly(tables, predicates, released, None)
            state = every.count(tables, ROW, released=released)
            check(state, slow, sum(map(len, tables)), not released, numbered)
            merged = [every.count([table], ROW, released=released) for table in tables]
            check(merge_matches("", *merged), slow, sum(map(len, tables)), not released, numbered)
            if not released:
                for side, of_side in enumerate(every.count_apart(tables, ROW, OUT)):
                    slow = count_slowly(tables, predicates, False, bool(side))
                    n_rows = sum(
                        table.column(OUT).to_pylist().count(bool(side)) for table in tables
                    )
                    check(of_side, slow, n_rows, True, numbered)


def test_what_contains_the_root_says_nothing() -> None:
    values = pa.array([["a", "b"], None, ["a"], ["a", None]])
    regions = read_regions(COLUMNS[3], values, released=True).regions()
    assert regions[1] is EVERYTHING  # most of the class are missing, others anything
    conditions = [frozenset(["a", "b"]), EVERYTHING, frozenset(["a", None])]
    assert find_rows(COLUMNS[3], values, conditions, released=True) == [[0, 2], [], [2, 3]]


@pytest.mark.parametrize("form", ["struct", "text"])
def test_a_null_interval_says_nothing(form: Any) -> None:
    column = replace(COLUMNS[1], recoder=Interval(form=form))
    cells = Cells(np.array([0, 0, 1, 1, 1]), 2)
    values = Interval(form=form).recode(pa.array([3.0, 5, 4, None, None]), cells, Domain())
    regions = read_regions(column, values, released=True).regions()
    assert regions == [Range(3, 5), EVERYTHING]
    conditions = [Range(-np.inf, np.inf), ABSENT]
    assert find_rows(column, values, conditions, released=True) == [[0], []]
    missing = pa.array([None, 4], NUMBER)
    assert read_regions(column, missing, released=False).regions() == [ABSENT, Range(4, 4)]
    assert find_rows(column, missing, conditions, released=False) == [[1], [0]]


def find_rows(
    column: Column, values: Any, conditions: list[Region], *, released: bool
) -> list[list[int]]:
    """The rows for which each condition holds, by a count of each row."""
    predicates = Predicates.of((column,), [((0, each),) for each in conditions])
    rows = [pa.table({column.id: values.slice(i, 1)}) for i in range(len(values))]
    n = np.array([predicates.count([row], ROW, released=released)[:-1:3] for row in rows])
    return [np.flatnonzero(each).tolist() for each in n.T]

"""Special uniques against plain counting, and against the figures of sdcMicro."""

from itertools import combinations
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonlib.arrays import Ints
from anonlib.measure import Findings
from anonlib.measure.alike import count_alike, count_others, list_combinations
from anonlib.measure.risk import special_uniques
from anonlib.measure.risk.special_uniques import Special, SpecialUniques, score_suda
from anonlib.table.schema import Column, Role, Schema

Rows = list[tuple[int, ...]]


def hashes(rows: Rows) -> Ints:
    """By row and column: a number that no two values or columns share."""
    random, known = np.random.default_rng(1), {}
    for row in rows:
        for at in enumerate(row):
            known.setdefault(at, int(random.integers(-(2**63), 2**63 - 1)))
    return np.array([[known[at] for at in enumerate(row)] for row in rows], np.int64)


def counts(rows: Rows, sample: Rows, chosen: Any) -> Ints:
    """As they are counted in two tasks."""
    keys = hashes([*rows, *sample])
    table, size = keys[: len(rows)], len(sample)
    tables = [pa.table({f"h{i}": column for i, column in enumerate(table.T)})]
    halves = [[tables[0][:3]], [tables[0][3:5], tables[0][5:]]]
    found = [count_alike(keys[len(rows) :], chosen, half) for half in halves]
    total = [found[0][str(i)] + found[1][str(i)] for i in range(len(chosen))]
    return np.array(total).astype(np.int64).reshape(len(chosen), size)


def find(before: Rows, after: Rows, max_size: int) -> Findings:
    """The findings on tables of whole numbers, each row of which is sampled."""
    tables = {False: before, True: after}
    schema = [
        Column(name, name, Role.QUASI_IDENTIFIER, pa.int64(), "bigint")
        for name in "abcdef"[: len(before[0])]
    ]
    case: Any = SimpleNamespace(
        schema=Schema(tuple(schema)),
        n_source=len(before),
        n_released=len(after),
        count_alike=lambda chosen, size, released: counts(
            tables[released], tables[released], chosen
        ),
    )
    return SpecialUniques(max_size=max_size).measure(case)


def value(found: Findings, name: str, of: str = "") -> float | None:
    (figure,) = [each for each in found.figures if (each.name, each.of) == (name, of)]
    return figure.value


def minimal(rows: Rows, max_size: int) -> list[list[tuple[int, ...]]]:
    """The minimal unique combinations of each row, by their definition."""
    d = len(rows[0])
    found: list[list[tuple[int, ...]]] = []
    for row in rows:

        def alone(columns: tuple[int, ...], row: Any = row) -> bool:
            return sum(all(each[j] == row[j] for j in columns) for each in rows) == 1

        every = [c for k in range(1, max_size + 1) for c in combinations(range(d), k) if alone(c)]
        found.append([c for c in every if not any({*o} < {*c} for o in every)])
    return found


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(*[st.integers(0, 2)] * 3, st.integers(0, 6)), min_size=1, max_size=25))
def test_rows_of_the_same_person_do_not_count(rows: Rows) -> None:
    """The last number is the person."""
    choices = list_combinations(3, 2)
    found = count_others(lambda chosen: counts(rows, rows, chosen), choices, 3)
    for count, places in zip(found.tolist(), choices, strict=True):
        assert count == [
            1 + sum(o[3] != row[3] and all(o[j] == row[j] for j in places) for o in rows)
            for row in rows
        ]


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 5).flatmap(
        lambda d: st.lists(st.tuples(*[st.integers(0, 3)] * d), min_size=1, max_size=25)
    ),
    st.integers(1, 4),
)
def test_special_uniques_are_those_of_the_definition(rows: Rows, max_size: int) -> None:
    d, most = len(rows[0]), min(max_size, len(rows[0]))
    of_rows = minimal(rows, most)
    chosen = list_combinations(d, max_size)
    found = Special.of(counts(rows, rows, chosen), chosen, d)
    for i, expected in enumerate(of_rows):
        assert [chosen[j] for j in np.flatnonzero(found.minimal[:, i])] == sorted(
            expected, key=lambda each: (len(each), each)
        )
    told = find(rows, rows, max_size)
    assert value(told, "singled_out") == pytest.approx(np.mean([bool(each) for each in of_rows]))
    scores = [score_suda(len(each), most, d) for found_of in of_rows for each in found_of]
    assert value(told, "score") == pytest.approx(sum(scores) / len(rows))
    for j, name in enumerate("abcdef"[:d]):
        own = [score_suda(len(each), most, d) for of in of_rows for each in of if j in each]
        if scores:
            assert value(told, "contribution", name) == pytest.approx(sum(own) / sum(scores))
        else:
            assert value(told, "contribution", name) is None


@pytest.mark.parametrize("order", [(0, 1, 2), (0, 2, 1), (2, 1, 0)])
def test_contributions_are_those_of_sdcmicro(order: tuple[int, ...]) -> None:
    """The example in its tests: columns (2, 1, 1), (0, 3, 0), (0, 6, 0); 50, 37.5 and 37.5 %."""
    rows = [(2, 0, 0), (1, 3, 6), (1, 0, 0)]
    moved = [tuple(row[i] for i in order) for row in rows]
    found = find(moved, moved, 3)
    expected = (0.5, 0.375, 0.375)
    assert [value(found, "contribution", name) for name in "abc"] == [expected[i] for i in order]


def test_scores_are_factorials_up_to_the_largest_size() -> None:
    assert [score_suda(k, 3, 4) for k in (1, 2, 3)] == [6, 2, 1]
    assert [score_suda(k, 2, 6) for k in (1, 2)] == [20, 4]
    assert [score_suda(k, 3, 3) for k in (1, 2, 3)] == [2, 1, 1]


def test_a_report_tells_combinations_and_chances() -> None:
    before = [(1, 1, 1), (1, 2, 1), (2, 1, 1), (2, 2, 1), (3, 3, 1)]
    found = find(before, [(0, 0, 1)] * 5, 2)
    assert value(found, "singled_out") == 1
    assert value(found, "singled_out_after") == value(found, "score_after") == 0
    (series,) = found.series
    assert series.rows == (
        ("a × b", 0.8, pytest.approx(4 / 8), 1.0, 0.2),
        ("a", 0.2, pytest.approx(2 / 8), 0.6, 0.2),
        ("b", 0.2, pytest.approx(2 / 8), 0.6, 0.2),
    )


def test_too_many_combinations_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(special_uniques, "MOST_COMBINATIONS", 5)
    found = find([(1, 2, 3)], [(1, 2, 3)], 2)
    assert {figure.value for figure in found.figures} == {None}
    assert "6 combinations of columns, 5 at most; lower max_size" in found.figures[0].note


def test_a_sample_is_compared_with_the_whole_table() -> None:
    rows = [(1, 1), (1, 1), (1, 2), (2, 2), (3, 1), (3, 1), (3, 1)]
    chosen = list_combinations(2, 2)
    assert counts(rows, [(1, 2), (3, 1)], chosen).tolist() == [[3, 3], [2, 5], [1, 3]]

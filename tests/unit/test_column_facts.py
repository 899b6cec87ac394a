"""Facts of columns: those of parts add up to those of the whole, in any order."""

import itertools
import math
from functools import reduce

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonlib.guesses.guess import ColumnProfile
from anonlib.local.column_facts import MOST_VALUES, ColumnFacts, find_facts, make_profile
from tests.missing_cases import CASES, Case

TEXTS = st.sampled_from(
    ["", "?", "NA", " none", "flu", "1", "2.5", "-9", "-3", "2024-01-02", "a@b.example", None]
)
NUMBERS = st.sampled_from([-999, -9, -1, 0, 1, 2, 999, None])
FLOATS = st.sampled_from([-999.0, -9.0000001, -0.0, 0.0, 2.5, math.nan, math.inf, None])


def profile_of(parts: list[pa.Array]) -> ColumnProfile:
    facts = [ColumnFacts.from_json(find_facts(part).to_json()) for part in parts]
    return make_profile("c", parts[0].type, reduce(ColumnFacts.merge, facts))


@given(
    values=st.builds(pa.array, st.lists(TEXTS), st.just(pa.string()))
    | st.builds(pa.array, st.lists(NUMBERS), st.just(pa.int64()))
    | st.builds(pa.array, st.lists(FLOATS), st.just(pa.float64())),
    cuts=st.lists(st.integers(0, 60)),
)
def test_parts_are_as_the_whole(values: pa.Array, cuts: list[int]) -> None:
    whole = values
    ends = [0, *sorted(min(cut, len(values)) for cut in cuts), len(values)]
    parts = [whole[a:b] for a, b in itertools.pairwise(ends)]
    expected = make_profile("c", whole.type, find_facts(whole))
    assert profile_of(parts) == profile_of(parts[::-1]) == expected
    backward = whole.take(pa.array(range(len(whole))[::-1], pa.int64()))
    assert make_profile("c", whole.type, find_facts(backward)) == expected


def test_many_values() -> None:
    """The least values are those of the least hashes; their number is estimated."""
    values = pa.array([f"u{i}@mail.example" for i in range(20_000)])
    parts = [values[i : i + 5_000] for i in range(0, 17_500, 2_500)]  # half of them twice
    found = profile_of(parts)
    assert found.kind == "e-mail addresses"
    assert found.n_distinct == pytest.approx(20_000, rel=0.1)
    facts = [find_facts(part) for part in parts]
    merged = reduce(ColumnFacts.merge, facts)
    assert merged.least == find_facts(values).least
    assert len(merged.least) == MOST_VALUES


@pytest.mark.parametrize(
    ("values", "doubt"),
    [
        (pa.array([20240131, 20231231]), "days written as yyyyMMdd"),
        (pa.array([20240131.0, math.nan]), "days written as yyyyMMdd"),
        (pa.array([20240131, 20240132]), "codes of 8 digits"),
        (pa.array([123456, 654321]), "codes of 6 digits"),
        (pa.array([123456, 7]), None),
        (pa.array([123456.5]), None),
        (pa.array(["12 %", "7 %"]), "numbers with a unit or a currency"),
        (pa.array(["20240131"]), None),
    ],
)
def test_what_values_look_like(values: pa.Array, doubt: str | None) -> None:
    assert profile_of([values, values[:1]]).doubt == doubt


def test_the_profile() -> None:
    found = profile_of([pa.array(["flu", "NA", None]), pa.array(["none", "cold", "cold"])])
    assert (found.n_present, found.n_distinct) == (3, 2)
    assert found.tokens == {"NA": 1, "none": 1}
    one = profile_of([pa.array([1, -999, 2]), pa.array([-999, 3])])
    assert one.tokens == {"-999": 2}
    assert profile_of([pa.array([1, -999]), pa.array([-1])]).tokens == {}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_stands_for_a_missing_value(case: Case) -> None:
    half = len(case.values) // 2
    for parts in ([case.values], [case.values[half:], case.values[:half]]):
        found = profile_of(parts)
        assert (found.n_present, found.n_distinct) == (case.n_present, case.n_distinct)
        assert (found.tokens, found.far) == (case.tokens, case.far)


@pytest.mark.parametrize("values", [[[1]], [{"a": 1}], [b"x"]])
def test_other_types_are_not_looked_at(values: list[object]) -> None:
    assert profile_of([pa.array(values)]).n_distinct == 0

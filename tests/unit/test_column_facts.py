"""Facts of columns: those of parts add up to those of the whole, in any order."""

import itertools
import math
from functools import reduce

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonlib.guesses.guess import ColumnProfile
from anonlib.local.column_facts import (
    MOST_VALUES,
    ColumnFacts,
    find_facts,
    list_token_hashes,
    look_at_rows,
    make_profile,
)
from anonlib.table.hashes import hash_text, hash_values
from anonlib.text import NUMBER_TOKENS, NUMBERS_MISSING
from tests.missing_cases import CASES, Case

TEXTS = st.sampled_from(
    ["", "?", "NA", " none", "flu", "1", "2.5", "-9", "-3", "2024-01-02", "a@b.example", None]
)
#: Those of a column that can be read as something: one value may end that.
LIKE = st.sampled_from(["1", "-9", "7\t", "1,5", "3.5", "4000000000"]) | st.sampled_from(
    ["2024-01-02", "2023-02-30", "31.12.2023"]
)
NUMBERS = st.sampled_from([-999, -9, -1, 0, 1, 2, 999, None])
FLOATS = st.sampled_from([-999.0, -9.0000001, -0.0, 0.0, 2.5, math.nan, math.inf, None])


def profile_of(parts: list[pa.Array]) -> ColumnProfile:
    facts = [ColumnFacts.from_json(find_facts(part).to_json()) for part in parts]
    return make_profile("c", parts[0].type, reduce(ColumnFacts.merge, facts))


@given(
    values=st.builds(pa.array, st.lists(TEXTS) | st.lists(LIKE), st.just(pa.string()))
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
    """The least values are those of the least hashes; so many tell that there may be more."""
    values = pa.array([f"u{i}@mail.example" for i in range(20_000)])
    parts = [values[i : i + 5_000] for i in range(0, 17_500, 2_500)]  # half of them twice
    found = profile_of(parts)
    assert found.kind == "e-mail addresses"
    assert found.n_distinct == MOST_VALUES
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


def test_all_texts_tell_what_they_are_read_as() -> None:
    """Also those that are not kept, of whatever part."""
    numbers = [str(i) for i in range(2 * MOST_VALUES)]
    assert profile_of([pa.array(numbers)]).parses_as == "int"
    assert profile_of([pa.array([*numbers, "flu"])]).parses_as is None
    assert profile_of([pa.array(numbers), pa.array(["?", "NA", None])]).parses_as == "int"
    assert profile_of([pa.array(numbers), pa.array(["4000000000"])]).parses_as == "bigint"
    assert profile_of([pa.array([*numbers, "0.5"])]).parses_as == "double"
    decimals = [pa.array(["1", "2"]), pa.array(["1,5"])]
    assert profile_of(decimals).layout == profile_of(decimals[::-1]).layout == "1.234,5"


def test_unique_values() -> None:
    """Every row has one of its own."""
    assert look(*range(20)).unique
    assert not look(*range(19)).unique
    assert not look(*range(20), 7).unique
    assert not look(*range(20), math.nan).unique


def test_hashes_of_rows() -> None:
    """They are those of the values; of what is missing, 0."""
    facts, hashes = look_at_rows(pa.array(["a", None, "?", "b", "a", "NA"]))
    assert hashes.tolist() == [
        hash_text(each) if each else 0 for each in ("a", "", "", "b", "a", "NA")
    ]
    assert list_token_hashes(pa.string(), facts) == [hash_text("NA")]
    assert look_at_rows(pa.array([-0.0, 0.0, math.nan]))[1].tolist() == [
        *[int(hash_values(pa.array([0.0]))[0])] * 2,
        0,
    ]
    assert look_at_rows(pa.array([[1], None]))[1].tolist() == [0, 0]


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
    found = profile_of([pa.array(values)])
    assert (found.n_distinct, found.is_seen) == (0, False)


def look(*numbers: float) -> ColumnProfile:
    return profile_of([pa.array(numbers, pa.float64())])


@pytest.mark.parametrize(
    ("numbers", "far"),
    [
        ((*range(18, 90), 999), ("999",)),
        ((*range(333), 999, 9999), ("999", "9999")),
        ((*range(0, 900, 10), 999), ()),  # 890 is near
        ((*range(0, 90_000, 500), 999, 9999), ()),
        ((*range(1900, 2020), 9999), ("9999",)),
        ((*range(20_000, 30_000, 10), 99999), ("99999",)),
        ((*range(-20, -10), *range(40), 999), ()),  # nobody knows how far negative ones go
        ((999, 999), ()),
        ((*range(1, 800, 7), -1), ("-1",)),
        ((*range(40), -1), ()),  # 0 is near
        ((*range(-5, 40),), ()),
        ((-1, 1, 2, 3, 4), ()),  # codes
        ((*range(18, 90), -1, 999), ("-1", "999")),
    ],
)
def test_far_numbers(numbers: tuple[float, ...], far: tuple[str, ...]) -> None:
    found = look(*numbers)
    assert found.far == far
    assert found.tokens == {}
    assert found.n_present == len(numbers)  # they are asked about, and stay values


def test_negative_numbers_that_mean_missing() -> None:
    assert look(*range(18, 90), -999, -999).tokens == {"-999": 2}
    assert look(*range(18, 90), -9, -1).tokens == {"-9": 1}
    assert look(*range(40), -9, -1).tokens == {}
    assert look(*range(18, 90), -999, -3).tokens == {}


def test_spellings() -> None:
    assert {"-999", "-999.0", "-999.00"} <= {*NUMBER_TOKENS}
    assert NUMBER_TOKENS[: len(NUMBERS_MISSING)] == tuple(map(str, NUMBERS_MISSING))

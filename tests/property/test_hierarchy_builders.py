"""Builders of hierarchies: trees over exactly the given values, against what is obvious."""

import re
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonlib.hierarchy import Hierarchy
from anonlib.hierarchy.build import dates, equal_frequency, intervals, mask, ordered_groups
from anonlib.hierarchy.learn import frequency, information, target_aware
from tests.oracles_builders import due_bounds, groups_of, huffman, target_tree, widened

WHOLE = st.integers(-50, 200)
HUNDREDTHS = st.integers(-9_999, 9_999).map(lambda i: float(Decimal(i) / 100))
TEXTS = st.text("ab{}, ()2", min_size=1, max_size=4)
COUNTS = st.integers(0, 20)


def texts(values: pa.Array) -> set[str]:
    return set(values.cast(pa.string()).drop_null().to_pylist())


def array(draw: st.DrawFn, elements: st.SearchStrategy[Any], most: int = 30) -> pa.Array:
    """Values as they come: repeated ones, missing ones, in any order."""
    values = draw(st.lists(elements, min_size=1, max_size=most))
    return pa.array([*values, None] if draw(st.booleans()) else values)


@st.composite
def arrays(draw: st.DrawFn, elements: st.SearchStrategy[Any]) -> pa.Array:
    return array(draw, elements)


@st.composite
def built(draw: st.DrawFn) -> tuple[pa.Array, Callable[[pa.Array, Any], Hierarchy], Any]:
    """Values, a builder of two arguments, and how often each value is there."""
    kind = draw(st.sampled_from(["intervals", "parts", "mask", "dates", "groups", "rare"]))
    if kind in ("intervals", "parts"):
        values = array(draw, draw(st.sampled_from([WHOLE, HUNDREDTHS])))
    elif kind == "mask":
        values = array(draw, st.text("12 -", max_size=6))
    elif kind == "dates":
        values = array(draw, st.dates())
    else:
        values = array(draw, TEXTS)
    counts = np.array([draw(COUNTS) for _ in values], np.int64)
    pad = draw(st.sampled_from(["", "0"]))
    return (
        values,
        {
            "intervals": lambda values, _: intervals(values, [5, 10, 40], 3),
            "parts": lambda values, counts: equal_frequency(values, counts, [12, 4, 2]),
            "mask": lambda values, _: mask(values, pad=pad),
            "dates": lambda values, _: dates(values, ["month", "year", "decade"]),
            "groups": lambda values, _: ordered_groups(pa.array(sorted(texts(values))), [2, 3]),
            "rare": lambda values, counts: frequency(values, counts, 3),
        }[kind],
        counts,
    )


@given(built())
def test_a_tree_over_exactly_the_values(given: tuple[pa.Array, Any, Any]) -> None:
    values, build, counts = given
    hierarchy = build(values, counts)
    assert groups_of(hierarchy)[hierarchy.names[-1]] == texts(values)
    assert hierarchy.names[-1] == "*"
    assert len(set(hierarchy.names)) == len(hierarchy.names)
    places = hierarchy.places(values)
    missing = values.is_null().to_numpy(zero_copy_only=False)
    assert ((places < 0) == missing).all()


@given(built(), st.randoms())
def test_the_order_of_the_values_does_not_matter(given: Any, random: Any) -> None:
    values, build, counts = given
    order = list(range(len(values)))
    random.shuffle(order)
    one, other = build(values, counts), build(values.take(pa.array(order)), counts[order])
    assert one.names == other.names
    assert (one.tree.parent == other.tree.parent).all()


@pytest.mark.parametrize("whole", [True, False])
@given(data=st.data())
def test_intervals(whole: bool, data: st.DataObject) -> None:
    values = data.draw(arrays(st.integers(0, 300) if whole else HUNDREDTHS))
    step = data.draw(st.integers(2, 6) if whole else st.sampled_from(["0.25", "1", "2.5"]))
    factors = data.draw(st.lists(st.integers(2, 4), max_size=2))
    widths = [Fraction(step)]
    for factor in factors:
        widths.append(widths[-1] * factor)
    origin = data.draw(st.integers(-3, 0) if whole else st.sampled_from(["0", "-0.5", "7.25"]))
    given = [str(float(width)) for width in widths]
    hierarchy = intervals(values, given, origin)
    found = set(groups_of(hierarchy).values())
    numbers = {text: Fraction(text) for text in texts(values)}
    expected = {frozenset([text]) for text in numbers} | {frozenset(numbers)}
    for width in widths:
        of: dict[int, set[str]] = {}
        for text, number in numbers.items():
            of.setdefault((number - Fraction(origin)) // width, set()).add(text)
        expected |= set(map(frozenset, of.values()))
    assert found == expected
    for name, group in groups_of(hierarchy).items():
        bounds = re.fullmatch(r"\[(.*), (.*)\[|(\d+)-(\d+)", name)
        if bounds and bounds[1]:
            assert all(Fraction(bounds[1]) <= numbers[text] < Fraction(bounds[2]) for text in group)
        elif bounds:
            assert all(int(bounds[3]) <= numbers[text] <= int(bounds[4]) for text in group)
        else:
            assert name == "*" or name in numbers


@given(
    arrays(st.integers(0, 60) | HUNDREDTHS),
    st.sampled_from([[2], [3], [8, 4], [12, 6, 2]]),
    st.data(),
)
def test_equal_frequency(values: pa.Array, parts: list[int], data: st.DataObject) -> None:
    counts = np.array([data.draw(COUNTS) for _ in values])
    numbers = {text: Fraction(text) for text in texts(values)}
    rows: dict[Fraction, int] = dict.fromkeys(numbers.values(), 0)
    for text, count in zip(values.cast(pa.string()).to_pylist(), counts.tolist(), strict=True):
        if text is not None:
            rows[numbers[text]] += count
    expected = {frozenset([text]) for text in numbers} | {frozenset(numbers)}
    for n in parts:
        bounds = sorted(due_bounds(rows, n))
        of: dict[int, set[str]] = {}
        for text, number in numbers.items():
            of.setdefault(sum(bound <= number for bound in bounds), set()).add(text)
        expected |= set(map(frozenset, of.values()))
    assert set(groups_of(equal_frequency(values, counts, parts)).values()) == expected


@given(arrays(st.text("12 -", max_size=6)), st.data())
def test_masks_are_prefixes(values: pa.Array, data: st.DataObject) -> None:
    given = texts(values)
    length = max(map(len, given))
    masked = data.draw(st.none() | st.sets(st.integers(1, 6), min_size=1).map(sorted))
    hierarchy = mask(values, masked)
    levels = range(1, length) if masked is None else masked
    expected = {frozenset([text]) for text in given} | {frozenset(given)}
    for kept in (max(length - stars, 0) for stars in levels):
        for prefix in {text[:kept] for text in given if len(text) >= kept}:
            expected.add(frozenset(text for text in given if text[:kept] == prefix))
    assert set(groups_of(hierarchy).values()) == expected
    for name, group in groups_of(hierarchy).items():
        if name.endswith("*") and name != "*":
            assert len(name) == length
            assert all(text.startswith(name.rstrip("*")) for text in group)


@given(st.lists(st.dates(), min_size=1, max_size=40), st.booleans())
def test_dates(days: list[date], as_text: bool) -> None:
    values = pa.array([day.isoformat() for day in days]) if as_text else pa.array(days)
    found = set(groups_of(dates(values)).values())
    expected = {frozenset(day.isoformat() for day in days)}
    for key in (
        lambda day: day,
        lambda day: (day.year, day.month),
        lambda day: (day.year, (day.month - 1) // 3),
        lambda day: day.year,
        lambda day: day.year // 10,
    ):
        of: dict[Any, set[str]] = {}
        for day in days:
            of.setdefault(key(day), set()).add(day.isoformat())
        expected |= set(map(frozenset, of.values()))
    assert found == expected


@given(st.dictionaries(TEXTS, COUNTS, min_size=1, max_size=20), st.integers(2, 5))
def test_frequency_is_huffmans(rows: dict[str, int], fan_out: int) -> None:
    counts = np.array(list(rows.values()))
    hierarchy = frequency(pa.array(list(rows)), counts, fan_out)
    assert set(groups_of(hierarchy).values()) == huffman(rows, fan_out)
    below = np.bincount(hierarchy.tree.parent[:-1])
    assert below.max() <= fan_out


@st.composite
def cross_tables(draw: st.DrawFn) -> dict[str, list[int]]:
    """Rows by value and class, many of them alike."""
    n_classes = draw(st.integers(1, 3))
    row = st.lists(st.sampled_from([0, 0, 1, 2, 7]), min_size=n_classes, max_size=n_classes)
    rows = draw(st.lists(row, min_size=1, max_size=4))
    return draw(st.dictionaries(TEXTS, st.sampled_from(rows), min_size=1, max_size=12))


def long(rows: dict[str, list[int]]) -> tuple[pa.Array, pa.Array, Any]:
    """A cross table as counts of its cells; the last class is a missing one."""
    cells = [(text, i, n) for text, row in rows.items() for i, n in enumerate(row)]
    last = len(next(iter(rows.values()))) - 1
    classes = [None if i == last else f"class {i}" for _, i, _ in cells]
    counts = np.array([n for _, _, n in cells], np.int64)
    return pa.array([text for text, _, _ in cells]), pa.array(classes, pa.string()), counts


@given(cross_tables(), st.integers(2, 4))
def test_target_aware(rows: dict[str, list[int]], fan_out: int) -> None:
    hierarchy = target_aware(*long(rows), fan_out)
    merged = target_tree(rows)
    expected = widened(merged, fan_out) | {frozenset([text]) for text in rows}
    assert set(groups_of(hierarchy).values()) == expected
    assert np.bincount(hierarchy.tree.parent[:-1]).max() <= fan_out


@given(cross_tables(), st.randoms())
def test_target_aware_in_any_order(rows: dict[str, list[int]], random: Any) -> None:
    values, classes, counts = long(rows)
    order = list(range(len(values)))
    random.shuffle(order)
    indices = pa.array(order)
    one = target_aware(values, classes, counts)
    other = target_aware(values.take(indices), classes.take(indices), counts[order])
    assert one.names == other.names
    assert (one.tree.parent == other.tree.parent).all()


@given(st.lists(st.integers(0, 2**40), min_size=1))
def test_information(counts: list[int]) -> None:
    found = information(np.array(counts))
    for count, units in zip(counts, found.tolist(), strict=True):
        exact = count * np.log2(count) * 1024 if count else 0
        assert abs(units - exact) <= 0.5 + exact * 1e-15

"""Re-identification and uniqueness from the sizes of classes, against one person at a time."""

from collections import Counter
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonlib.arrays import average_ratio
from anonlib.auditing.arrow_values import combine, number_keys
from anonlib.evaluation.memory_classes import count_released_sizes
from anonlib.measure.case import Sizes
from anonlib.measure.risk._population import predict_risk
from anonlib.measure.risk.reidentification import Reidentification
from anonlib.measure.risk.uniqueness import Uniqueness
from anonlib.table.columns import TOKEN

many = st.lists(st.integers(1, 40) | st.integers(1, 5000), min_size=1, max_size=60)


def sizes_of(classes: list[int], *, persons: bool = True) -> Sizes:
    size, n_classes = np.unique(np.array(classes, np.int64), return_counts=True)
    return Sizes.of_rows(size, n_classes, persons=persons)


def measured(classes: list[int], k: int, **parameters: Any) -> Any:
    case: Any = SimpleNamespace(sizes=sizes_of(classes), k=k)
    found = Reidentification(**parameters).measure(case)
    return {figure.name: figure.value for figure in found.figures}, found.series


@given(many, st.sampled_from([0.05, 0.1, 0.2, 0.5]), st.none() | st.integers(1, 100))
def test_risks_are_those_of_the_persons(
    classes: list[int], threshold: float, times: int | None
) -> None:
    n = sum(classes)
    population = None if times is None else n * times
    found, _ = measured(classes, 1, threshold=threshold, population=population)
    assert [*found] == [*Reidentification.names]
    persons = np.repeat(classes, classes)
    prosecutor = 1 / persons
    journalist = prosecutor if times is None else predict_risk(persons, 1 / times)
    assert found["prosecutor_max"] == prosecutor.max()
    assert found["prosecutor_mean"] == pytest.approx(prosecutor.mean())
    assert found["prosecutor_mean"] == pytest.approx(len(classes) / n)
    assert found["prosecutor_at_risk"] == pytest.approx((prosecutor > threshold).mean())
    assert found["journalist_max"] == pytest.approx(journalist.max())
    assert found["journalist_at_risk"] == pytest.approx((journalist > threshold).mean())
    assert found["marketer"] == pytest.approx(journalist.mean())
    assert found["marketer"] <= found["prosecutor_mean"] + 1e-12


@given(many, st.integers(1, 100))
def test_shares_are_divided_once(classes: list[int], percent: int) -> None:
    """As a gate and the record of a release count them, so that none is beyond its own value."""
    threshold, n = min(percent, 99) / 100, sum(classes)
    found, _ = measured(classes, 1, threshold=threshold)
    assert found["prosecutor_mean"] == found["marketer"] == len(classes) / n
    above = sum(size for size in classes if 1 / size > threshold)
    assert found["prosecutor_at_risk"] == found["journalist_at_risk"] == above / n


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(1, 300)), min_size=1, max_size=40))
def test_a_mean_of_ratios_is_rounded_once(pairs: list[tuple[int, int]]) -> None:
    above, below = np.array(pairs, np.int64).T
    exact = sum(Fraction(a, b) for a, b in pairs) / len(pairs)
    assert average_ratio(above, below, len(pairs)) == float(exact)


def test_twelve_of_eighty_are_fifteen_percent() -> None:
    """7 classes of 5 persons, 5 of 9: a sum of shares is 0.15000000000000002."""
    assert measured([5] * 7 + [9] * 5, 1)[0]["prosecutor_mean"] == 0.15


@given(many)
def test_series_tell_of_whole_classes_and_only_of_released_ones(classes: list[int]) -> None:
    smallest = min(classes)
    _, (histogram, risks) = measured(classes, smallest)
    for low, high, n_classes, n_persons in histogram.rows:
        inside = [size for size in classes if low <= size <= high]
        assert (n_classes, n_persons) == (len(inside), sum(inside))
        assert n_persons >= smallest
    assert sum(row[3] for row in histogram.rows) == sum(classes)
    assert len(histogram.rows) <= 20
    for level, prosecutor, _ in risks.rows:
        above = sum(size for size in classes if 1 / size > level)
        assert prosecutor == pytest.approx(above / sum(classes))
    assert measured(classes, smallest + 1)[1] == ()
    assert measured(classes, 0)[1] == ()


rows_of_persons = st.lists(
    st.tuples(st.integers(0, 6), st.none() | st.integers(0, 30)), max_size=80
)


def sizes_by_hand(rows: list[tuple[int, int | None]]) -> tuple[dict[int, int], dict[int, int]]:
    """By size: the classes, and the persons whose smallest class has it."""
    classes: dict[int, set[int]] = {}
    for place, person in rows:
        if person is not None:
            classes.setdefault(place, set()).add(person)
    persons = {person for members in classes.values() for person in members}
    smallest = [min(len(c) for c in classes.values() if person in c) for person in persons]
    return Counter(map(len, classes.values())), Counter(smallest)


@given(rows_of_persons)
def test_a_person_counts_once_by_the_smallest_class(rows: list[tuple[int, int | None]]) -> None:
    classes, persons = sizes_by_hand(rows)
    table = pa.table(
        {
            "place": pa.array([place for place, _ in rows], pa.int64()),
            TOKEN: pa.array([person for _, person in rows], pa.int64()),
        }
    )
    numbers = combine([number_keys(table.column("place"))], table.num_rows)
    schema: Any = None
    spec: Any = SimpleNamespace(token=None, persons="unknown")
    sizes = count_released_sizes(table, numbers, schema, spec)
    assert sizes.persons
    assert dict(zip(sizes.size.tolist(), sizes.n_classes.tolist(), strict=True)) == classes
    assert [persons[size] for size in sizes.size.tolist()] == sizes.n_persons.tolist()
    assert sizes.n == persons.total()
    pairs = {(place, person) for place, person in rows if person is not None}
    assert sizes.overlap == (len(pairs) > sizes.n)

    case: Any = SimpleNamespace(sizes=sizes, k=sizes.smallest)
    found = Reidentification(threshold=0.2).measure(case)
    values = {figure.name: figure.value for figure in found.figures}
    if not persons:
        assert {*values.values()} == {None}
        return
    chances = [1 / size for size in persons.elements()]
    assert values["prosecutor_max"] == max(chances)
    assert values["prosecutor_mean"] == values["marketer"] == pytest.approx(np.mean(chances))
    above = sum(chance > 0.2 for chance in chances) / sizes.n
    assert values["prosecutor_at_risk"] == values["journalist_at_risk"] == above
    histogram, _ = found.series
    assert sum(row[2] for row in histogram.rows) == classes.total()
    assert sum(row[3] for row in histogram.rows) == sizes.n
    assert all(row[3] == 0 or row[3] >= sizes.smallest for row in histogram.rows)


@pytest.mark.parametrize(("classes", "population"), [([], None), ([3, 4], 6)])
def test_what_can_not_be_told(classes: list[int], population: int | None) -> None:
    case: Any = SimpleNamespace(sizes=sizes_of(classes), k=3)
    found = Reidentification(population=population).measure(case)
    assert [figure.name for figure in found.figures] == [*Reidentification.names]
    assert all(figure.value is None and figure.note for figure in found.figures)


@given(many, st.none() | st.floats(1.0, 200.0))
def test_estimates_of_uniqueness(classes: list[int], times: float | None) -> None:
    sizes = sizes_of(classes)
    population = None if times is None else int(sizes.n * times)
    unique = classes.count(1) / sum(classes)
    pitman, zayatz = Uniqueness(population=population)._estimates(sizes)
    assert (pitman.of, zayatz.of) == ("Pitman", "Zayatz")
    assert pitman.value is not None
    assert zayatz.value is not None
    assert 0 <= zayatz.value <= unique + 1e-12
    assert 0 <= pitman.value <= 1
    if population in (None, sizes.n) or not unique:
        assert pitman.value == zayatz.value == unique
    (first, second) = Uniqueness(population=max(sizes.n - 1, 1))._estimates(sizes)
    if sizes.n > 1:
        assert first.value is second.value is None

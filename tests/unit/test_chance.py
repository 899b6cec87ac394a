"""What chance lets two columns share, and what it does not."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonlib.arrays import Floats
from anonlib.content.content_rules import Overlap, expect_by_chance


def line(values: object) -> Floats:
    return np.unique(np.asarray(values, np.float64))


def shows(values: Floats, others: Floats, n_rows: int = 0) -> bool:
    n_values = len(np.intersect1d(values, others))
    return Overlap("x", "id", n_values, expect_by_chance(values, others), n_rows, 1.0).shows


@given(st.integers(0, 2**32 - 1), st.integers(30, 3000), st.integers(30, 3000))
@settings(max_examples=100)
def test_random_numbers_show_nobody(seed: int, n: int, m: int) -> None:
    """Both drawn from one range, thinly or densely, or from clusters."""
    random = np.random.default_rng(seed)
    top = int(random.choice([100, 1000, 10**4, 10**6]))
    assert not shows(line(random.integers(0, top, n)), line(random.integers(0, top, m)))


@given(st.integers(0, 2**32 - 1), st.integers(30, 3000), st.sampled_from([10**7, 10**9, 10**12]))
@settings(max_examples=100)
def test_copies_of_numbers_that_lie_apart_are_seen(seed: int, n: int, top: int) -> None:
    random = np.random.default_rng(seed)
    persons = line(random.integers(0, top, 3000))
    assert shows(line(random.choice(persons, max(n // 10, 12))), persons)


def test_dense_numbers_are_seen_by_their_rows() -> None:
    serial, ages = line(range(1000)), line(range(18, 90))
    assert expect_by_chance(ages, serial) == pytest.approx(len(ages), rel=0.05)
    assert not shows(ages, serial)
    assert not shows(serial, serial)
    assert shows(serial, serial, n_rows=1000)


def test_clusters_are_as_dense_as_they_are_near() -> None:
    """A number far away does not make the others look rare."""
    persons = line([*range(1, 1000), 10**9])
    assert not shows(line(range(18, 90)), persons)


def test_texts_are_never_equal_by_chance() -> None:
    none = line([])
    assert expect_by_chance(none, line([1, 2])) == 0
    assert Overlap("x", "id", 6, 0.0, 0, 1.0).shows
    assert not Overlap("x", "id", 5, 0.0, 0, 1.0).shows

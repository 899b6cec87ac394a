"""Notes on tables in hand: what `anonlib init` would ask of their columns."""

from datetime import date

import numpy as np
import pandas as pd
import pytest

import anonlib


def test_what_init_would_ask_is_told() -> None:
    """Numbers far from the others, and a number of its own in every row, whatever their role."""
    random = np.random.default_rng(1)
    n = 2000
    table = pd.DataFrame(
        {
            "age": random.integers(20, 60, n),
            "score": np.where(random.random(n) < 0.05, 9999, random.integers(1, 60, n)),
            "nr": random.permutation(n) + 100_000,
            "pulse": np.where(random.random(n) < 0.05, 999, random.integers(50, 90, n)),
            "until": np.where(random.random(n) < 0.05, date(9999, 12, 31), date(2021, 5, 1)),
        }
    )
    notes = anonlib.anonymize(
        table,
        quasi_identifiers=["age", "score", "until"],
        sensitive=["nr", "pulse"],
        one_row_per_person=True,
        k=5,
        l=2,
    ).notes
    assert "column score: does 9999 mean missing? Then make it null" in notes
    end = "column until: does 9999-12-31 mean missing, or no end? Then make it null"
    assert end in notes
    assert "column pulse: does 999 mean missing? Then make it null" in notes
    assert (
        "column nr: every row has a whole number of its own; it is published as it is: if it is an "
        "identifier, name it in `identifiers`"
    ) in notes
    assert not any("column age" in note for note in notes)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("Kundennummer", "as persons do"),
        ("K", "and 2 other columns follow from it"),
    ],
)
def test_a_key_of_persons_that_repeats_is_asked_about(name: str, why: str) -> None:
    """Whatever its name, where each row is said to be another person; not where a unit is named."""
    random = np.random.default_rng(1)
    of_person = random.integers(0, 200, 600)
    table = pd.DataFrame(
        {
            name: of_person + 1000,
            "sex": random.integers(0, 2, 200)[of_person],
            "town": random.integers(0, 9, 200)[of_person],
            "visit": random.integers(0, 50, 600),
        }
    )

    def notes(**persons: object) -> str:
        found = anonlib.anonymize(table, quasi_identifiers=[*table], k=5, **persons)
        return "\n".join(found.notes)

    told = f"column {name}: repeats, {why}; if it stands for a person who has several rows"
    assert told in notes(one_row_per_person=True)
    plain = table.assign(**{name: np.arange(600) // 2 % 7})
    found = anonlib.anonymize(plain, quasi_identifiers=[*plain], k=5, one_row_per_person=True)
    assert "name it in `unit`" not in "\n".join(found.notes)

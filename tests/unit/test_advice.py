"""Notes on tables in hand: what `anonlib init` would ask of their columns."""

import numpy as np
import pandas as pd

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
        }
    )
    notes = anonlib.anonymize(
        table,
        quasi_identifiers=["age", "score"],
        sensitive=["nr", "pulse"],
        one_row_per_person=True,
        k=5,
        l=2,
    ).notes
    assert "column score: does 9999 mean missing? Then make it null" in notes
    assert "column pulse: does 999 mean missing? Then make it null" in notes
    assert (
        "column nr: every row has a whole number of its own; it is published as it is: if it is an "
        "identifier, name it in `identifiers`"
    ) in notes
    assert not any("column age" in note for note in notes)

"""Losses of columns that don't vary: they have nothing to lose, so they don't count."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import anonlib

#: Twelve numbers in cells of three: each loses a range of 2 of 11.
AGES = pd.DataFrame({"age": np.arange(12.0)})
NCP = 2 / 11
#: Each cell has squares 1, 0, 1 about its mean; the variance of 0..11 is 143/12.
MSE = 2 / 3 / (143 / 12)
CONTINUOUS: dict[str, Any] = {"role": "quasi_identifier", "scale": "continuous"}
GRADES = {"role": "quasi_identifier", "scale": "ordinal", "order": ["low", "middle", "high"]}


@pytest.mark.parametrize("recoder", ["centroid", "suppress"])
@pytest.mark.parametrize(
    "others",
    [
        {"empty": np.nan},
        {"empty": np.nan, "blank": np.nan, "void": np.nan},
        {"constant": 7.0},
        {"constant": 7.0, "empty": np.nan},
    ],
    ids="-".join,
)
def test_columns_without_two_values_do_not_count(others: dict[str, float], recoder: str) -> None:
    table = AGES.assign(**others)
    config = {
        "attributes": dict.fromkeys(table, CONTINUOUS),
        "one_row_per_person": True,
        "privacy": {"models": [{"type": "k_anonymity", "k": 3}]},
        "recode": {"columns": dict.fromkeys(others, recoder)},
    }
    losses = anonlib.anonymize(table, config).losses
    assert losses["ncp"] == pytest.approx(NCP, rel=1e-5)
    assert losses["mse"] == pytest.approx(MSE, rel=1e-5)


def test_an_empty_ordinal_column_does_not_count() -> None:
    """Also with a declared order, of which no grade occurs."""
    table = AGES.assign(grade=pd.Series([None] * 12, dtype="object"))
    config = {
        "attributes": {"age": CONTINUOUS, "grade": GRADES},
        "one_row_per_person": True,
        "privacy": {"models": [{"type": "k_anonymity", "k": 3}]},
    }
    losses = anonlib.anonymize(table, config).losses
    assert losses["ncp"] == pytest.approx(NCP, rel=1e-5)


def test_the_flag_of_missing_values_counts_where_some_are_there() -> None:
    """Ages in four cells by a column that has half of its values: cells are of one half."""
    table = AGES.assign(halves=[1.0] * 6 + [np.nan] * 6)
    config = {
        "attributes": dict.fromkeys(table, CONTINUOUS),
        "one_row_per_person": True,
        "privacy": {"models": [{"type": "k_anonymity", "k": 3}]},
    }
    losses = anonlib.anonymize(table, config).losses
    assert losses["ncp"] == pytest.approx(NCP / 2, rel=1e-5)


def test_numbers_beyond_floats_are_told() -> None:
    table = pd.DataFrame({"number": [2**53 + i for i in range(12)]})
    config = {
        "attributes": {"number": CONTINUOUS},
        "one_row_per_person": True,
        "privacy": {"models": [{"type": "k_anonymity", "k": 3}], "acknowledge_unique": True},
    }
    notes = anonlib.anonymize(table, config).notes
    assert sum("numbers of 2^53 or more" in note for note in notes) == 1

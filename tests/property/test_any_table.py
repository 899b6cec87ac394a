"""Releases of any small table in memory. `test_in_memory_as_spark`: Spark does the same."""

import math
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import anonlib


@st.composite
def tables(draw: st.DrawFn) -> tuple[pd.DataFrame, int]:
    """A small table with duplicates, missing values and a constant column, and a k for it."""
    n, k = draw(st.integers(12, 260)), draw(st.integers(2, 6))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_kinds = draw(st.integers(1, 6))
    reals = random.normal(0, 10.0 ** draw(st.integers(-3, 9)), n)
    frame = pd.DataFrame(
        {
            "real": np.where(random.random(n) < 0.5, np.round(reals, 1), reals),
            "some": np.where(random.random(n) < 0.3, np.nan, random.integers(-9, 9, n)),
            "whole": pd.array(random.integers(0, n_kinds, n), "Int64"),
            "same": np.ones(n),
            "kind": random.choice([None, *"abcdef"[:n_kinds]], n),
            "illness": random.choice(["flu", " Flu", "cold", "?", None, "gout"], n),
        }
    )
    frame.loc[random.random(n) < 0.1, "whole"] = pd.NA
    frame.loc[:1, "illness"] = ["flu", "cold"]
    copies = frame.sample(n // 3, replace=True, random_state=random)
    return pd.concat([frame, copies], ignore_index=True), k


@settings(max_examples=30)
@given(table=tables(), kernel=st.sampled_from(["mdav", "mondrian"]))
def test_any_small_table(table: tuple[pd.DataFrame, int], kernel: str) -> None:
    """As many rows as before, every class holds every model, and means keep sums."""
    frame, k = table
    continuous = {"role": "quasi_identifier", "scale": "continuous"}
    quasi = ["real", "some", "whole", "same", "kind"]
    models = [
        {"type": "k_anonymity", "k": k},
        {"type": "l_diversity", "l": 2, "attribute": "illness"},
    ]
    raw = {
        "source": {"format": "dataframe"},
        "attributes": {
            **dict.fromkeys(quasi, continuous),
            "kind": {"role": "quasi_identifier", "scale": "nominal"},
            "illness": {"role": "sensitive"},
        },
        "one_row_per_person": True,
        "privacy": {"models": models},
        "partition": {"steps": [{"type": "kmeans"}], "max_rows": 100},
        "kernel": kernel,
        "release": {"path": "not used"},
    }
    published = anonlib.anonymize(frame, raw).table
    assert len(published) == len(frame)
    assert Counter(published["illness"].fillna("-")) == Counter(frame["illness"].fillna("-"))
    folded = published["illness"].str.strip().str.casefold()
    released = published.assign(illness=folded.where(folded != "?"))
    classes = released.astype(dict.fromkeys(quasi, str)).groupby(quasi)
    assert classes.size().min() >= k
    assert classes["illness"].nunique().min() >= 2
    total = math.fsum(np.abs(frame["real"]))
    assert math.fsum(published["real"]) == pytest.approx(math.fsum(frame["real"]), abs=1e-9 * total)
    assert set(published["same"]) == {1.0}

"""The cells of `anonlib.cells` do not depend on the order of rows, whatever models look at."""

from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import anonlib
from anonlib.errors import InfeasibleError
from anonlib.local.cell_grouping import _encoding
from anonlib.privacy import PrivacyModel
from anonlib.privacy.l_diversity import LDiversity
from anonlib.privacy.t_closeness import TCloseness
from anonlib.registry import plugins
from anonlib.table.schema import Scale

MODELS: list[list[PrivacyModel]] = [
    [LDiversity(l=2, attribute="s")],
    [TCloseness(t=0.3, attribute="s")],
    [LDiversity(l=2, attribute="s"), LDiversity(l=2, attribute="t")],
]


def cells_of(frame: pd.DataFrame, kernel: str, joint: bool, models: list[PrivacyModel]) -> Any:
    """The cells as a multiset of multisets of rows, by what kernels and models see of them; None
    where there are none."""
    chosen = plugins("kernel")[kernel]()
    scales = {"x": "nominal" if chosen.needs_hierarchies else "continuous"}
    target = {"target": "y"} if chosen.needs_target else {}
    try:
        ids = anonlib.cells(frame, kernel, 2, scales=scales, models=models, joint=joint, **target)
    except InfeasibleError:
        return None
    seen = frame[["x", *{str(model.column) for model in models}, *target.values()]].copy()
    seen["s"] = seen["s"].str.strip().str.lower()
    rows = seen.fillna("missing").astype(str).agg("|".join, axis=1)
    return Counter(tuple(sorted(rows[ids == c])) for c in range(ids.max() + 1))


@pytest.mark.parametrize("kernel", list(plugins("kernel")))
@given(st.integers(0, 2**32 - 1), st.integers(0, len(MODELS) - 1), st.booleans())
@settings(max_examples=25)
def test_cells_whatever_the_order_of_rows(kernel: str, seed: int, which: int, joint: bool) -> None:
    """Few values, so that many rows are equal but for what models look at."""
    random = np.random.default_rng(seed)
    n = int(random.integers(6, 40))
    frame = pd.DataFrame(
        {
            "x": random.integers(0, 3, n),
            "s": random.choice(np.array(["a", "b", "B ", None], object), n),
            "t": random.choice([1.5, 2.5, np.nan], n),
            "y": random.choice(["u", "v"], n),
        }
    )
    expected = cells_of(frame, kernel, joint, MODELS[which])
    for _ in range(3):
        moved = frame.iloc[random.permutation(n)].reset_index(drop=True)
        assert cells_of(moved, kernel, joint, MODELS[which]) == expected


def test_encodings_whatever_the_order_of_rows() -> None:
    """Sums of floats do depend on it."""
    random = np.random.default_rng(0)
    values = random.normal(size=999)
    orders = [random.permutation(values) for _ in range(20)]
    assert len({float(each.mean()) for each in orders}) > 1
    found = [_encoding("c0", "x", pa.array(v), Scale.CONTINUOUS, None)[0] for v in orders]
    assert len({(each.mean, each.sd) for each in found}) == 1

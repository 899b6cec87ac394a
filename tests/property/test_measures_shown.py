"""What measures that compare columns show of a table: enough rows, and names that tell no value."""

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonlib.measure.fidelity._axes import Axis
from anonlib.measure.fidelity._bins import make_category_bins, round_edges
from anonlib.measure.fidelity.marginals import Marginals
from anonlib.measure.fidelity.moments import Moments
from anonlib.table.encoding import Encoding
from anonlib.table.schema import Scale
from tests.compared import SCALES, Pair, made, pairs

QUICK = settings(max_examples=40)


@given(pairs(), st.integers(0, 9))
@QUICK
def test_distributions_show_enough_rows_and_released_names(pair: Pair, seed: int) -> None:
    found = pair.findings(Marginals(), seed)
    for series in found.series:
        shares = np.array([row[1:] for row in series.rows])
        assert shares.sum(axis=0) == pytest.approx([1, 1])
        is_line = SCALES[series.of] is SCALES["age"]
        rows = [pair.rows(series.of, released=each) for each in (False, True)]
        total = [
            sum(w for r in each for v, w in r.items() if not (is_line and v is None))
            for each in rows
        ]
        counts = shares * np.array(total)
        assert ((counts > pair.view.least - 1e-5) | (counts < 1e-5)).all()
        if is_line:  # the least and the greatest value do not show
            assert str(series.rows[0][0]).startswith("below ")
            assert str(series.rows[-1][0]).endswith(" and above")
            continue
        told = repr(pair.released.column(series.of).to_pylist())
        for label in [str(row[0]) for row in series.rows]:
            if label not in ("other", "missing") and "node" not in told:
                assert repr(label) in told or f'"{label}"' in told


def test_few_suppressed_rows_can_not_be_computed() -> None:
    """Sums are kept by centroids: means side by side would tell the one row that is not there."""
    source = pa.table({"age": [20.0, 30, 40, 50, 90, 91]})
    pair = made(source, np.array([0, 0, 1, 1, 2, 2]), {"age": {"type": "centroid"}})
    for n_kept, there in ((6, True), (5, False), (4, True)):
        view = replace(pair.view, n_released=n_kept)
        found = replace(pair, released=pair.released[:n_kept], view=view).findings(Moments())
        assert bool(found.series[0].rows) is there


@pytest.mark.parametrize(
    ("values", "first"),
    [
        (pa.array(1e9 + np.arange(64) / 64), "below 1000000000.1"),
        (pa.array(1.7e12 + np.arange(640) * 5.0), "below 1700000000200"),
        (pa.array(np.arange(18000, 18003).repeat(20), pa.int32()).cast(pa.date32()), "below 2019-"),
    ],
)
def test_ranges_have_names_of_their_own(values: Any, first: str) -> None:
    pair = made(pa.table({"wage": values}), np.zeros(len(values), np.int64), {})
    view = replace(pair.view, n_quasi=1)
    (series,) = replace(pair, view=view).findings(Marginals()).series
    names = [str(row[0]) for row in series.rows]
    assert len(set(names)) == len(names) > 1
    assert names[0].startswith(first)
    assert all(low != high for low, high in (n.split(" to ") for n in names if " to " in n))


def test_equal_shares_come_in_the_order_of_names() -> None:
    """However they were summed: of thirds in another order the last digits differ."""
    source = pa.table({"town": list("abcd") * 3})
    axis = made(source, np.zeros(12, np.int64), {}).view.axes[0]
    third = 1 / 3
    masses = [0.7 + 0.2 + 0.1, third + third + third, 0.1 + 0.2 + 0.7, 1.0]
    assert len(set(masses)) > 1
    counts = 9 * np.array([[*masses, 0.0]] * 2)  # the last one: of missing values
    labels, _ = make_category_bins(axis, counts, np.array([1.0] * 4 + [0.0] * 2), least=2)
    assert labels == ["a", "b", "c", "d"]


@given(st.integers(-(2**52), 2**52).map(float), st.integers(20 * 10**6, 8 * 10**15).map(float))
def test_ranges_of_timestamps_end_at_round_times(low: float, width: float) -> None:
    """At midnight if they are about a day long or longer, else at round parts of it. In
    microseconds."""
    ends = low, low + width
    encoding = Encoding("c0", Scale.CONTINUOUS, False, low + width / 2, width / 2, *ends)
    edges = round_edges(Axis("c0", "t", encoding, pa.timestamp("us")))
    steps = np.unique(np.diff(edges))
    assert len(steps) <= 1
    assert len(edges) <= 17
    assert (edges > ends[0]).all()
    assert (edges < ends[1]).all()
    for step in steps.tolist():
        assert step % 86_400e6 == 0 or 86_400e6 % step == 0
        assert (edges % step == 0).all()

"""How far the distributions of columns are from the source's."""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from anonlib.arrays import GRID, Floats
from anonlib.measure import Figure, Findings, Series, Subjects
from anonlib.measure.fidelity._axes import Axes, Axis
from anonlib.measure.fidelity._bins import NOTHING, make_category_bins, make_line_bins
from anonlib.measure.fidelity._distribution import measure_wasserstein
from anonlib.measure.fidelity._tally import (
    ColumnMeasure,
    Counter,
    LineDistribution,
    Mass,
    Sums,
    TableStates,
    round_stably,
)
from anonlib.measure.fidelity.moments import explain_undefined, read_moments


class Marginals(ColumnMeasure):
    """How far the distribution of each quasi-identifier is from the source's.

    For continuous columns and the ranks of ordinal columns:

    - `wasserstein`: the Wasserstein-1 distance of present values, in standard deviations of the
      source. It is exact to 2^-20 deviations for up to 4,096 distinct values. More values are
      counted in at most that many cells. Intervals are exact to 1/1024 of the range.
    - `missing`: the difference of the shares of missing values. If a table has missing values, but
      fewer than may be shown, the least number that may be shown counts.

    For nominal columns, with missing as a category:

    - `total_variation`: half the sum of the absolute differences of all shares.

    `_reading` defines how to read values that stand for several values.

    Series `distribution`, for each column: the shares of rows by range or category. For continuous
    columns, these are shares of the rows with a value. Rare bins are merged, and so are categories
    that the release does not name.

    Cost: one pass over each table, shared with other measures of columns.
    """

    type: ClassVar[str] = "marginals"
    subjects: ClassVar[Subjects] = "columns"
    names: ClassVar[Mapping[str, str]] = {
        "wasserstein": "how far values would have to move to be distributed as in the source, on "
        "average; in standard deviations of the source, 0 is best, more is worse",
        "total_variation": "share of rows that would have to change category to be distributed as "
        "in the source; 0 to 1, more is worse",
        "missing": "difference of the shares of missing values; 0 to 1, more is worse",
    }

    def parts(self, view: Axes) -> dict[str, Counter]:
        counters: dict[str, Counter] = {}
        for axis in view.quasi:
            counters[f"marginal {axis.id}"] = LineDistribution(axis) if axis.is_line else Mass(axis)
            if axis.is_numeric:
                counters[f"sums {axis.id}"] = Sums(axis.id)
        return counters

    def findings(self, states: TableStates) -> Findings:
        figures, series = [], []
        for axis in states.view.quasi:
            figures += _figures(axis, states)
            rows = _distribution(axis, states)
            if rows:
                heads = ("range" if axis.is_line else "category", "source", "release")
                series.append(Series("distribution", axis.name, heads, rows))
        return Findings(tuple(figures), tuple(series))


def _figures(axis: Axis, table_states: TableStates) -> list[Figure]:
    marginals = [
        states[f"marginal {axis.id}"] for states in (table_states.source, table_states.released)
    ]
    if not axis.is_numeric:
        p, q = (Mass(axis).split(state)[0] for state in marginals)
        distance = np.abs(p / p.sum() - q / q.sum()).sum() / 2
        return [Figure("total_variation", round_stably(float(distance)), axis.name)]
    ours, theirs = (
        read_moments(states[f"sums {axis.id}"])
        for states in (table_states.source, table_states.released)
    )
    totals = table_states.view.n_source, table_states.view.n_released
    shares = [
        find_missing_share(total - moment.n, total, table_states.view.least)
        for total, moment in zip(totals, (ours, theirs), strict=True)
    ]
    missing = Figure("missing", round_stably(abs(shares[0] - shares[1])), axis.name)
    if note := explain_undefined(axis, ours, theirs):
        return [Figure("wasserstein", None, axis.name, note), missing]
    part = LineDistribution(axis) if axis.is_line else Mass(axis)
    far = measure_wasserstein(*map(part.distribution, marginals)) / float(np.sqrt(ours.variance))
    return [Figure("wasserstein", round_stably(far), axis.name), missing]


def find_missing_share(n: float, total: int, least: int) -> float:
    """The share of missing values. If there are any, they count as `least` or more."""
    return (n if n < NOTHING else max(n, min(least, total))) / total


def _distribution(axis: Axis, table_states: TableStates) -> tuple[tuple[str, float, float], ...]:
    marginals = [
        states[f"marginal {axis.id}"] for states in (table_states.source, table_states.released)
    ]
    if axis.is_line:
        source, released = map(LineDistribution(axis).distribution, marginals)
        labels, counts = make_line_bins(axis, source, released, table_states.view.least)
    else:
        (ours, _), (theirs, names) = map(Mass(axis).split, marginals)
        labels, counts = make_category_bins(
            axis, np.stack([ours, theirs]), names, table_states.view.least
        )
    return _rows(labels, counts)


def _rows(labels: list[str], counts: Floats) -> tuple[tuple[str, float, float], ...]:
    """The rows of the series: label, share in the source, share in the release. counts:
    float64[2, bins]."""
    # A side without a value in any range has none of its rows there.
    whole = np.maximum(counts.sum(axis=1, keepdims=True), GRID)
    shares = (counts / whole).T.tolist() if labels else []
    return tuple(
        (label, round_stably(ours), round_stably(theirs))
        for label, (ours, theirs) in zip(labels, shares, strict=True)
    )

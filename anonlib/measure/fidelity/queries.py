"""The error of counts in a release."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from pydantic import Field

from anonlib.arrays import Floats
from anonlib.measure import Figure, Findings, Subjects
from anonlib.measure.fidelity._axes import Axes, Axis
from anonlib.measure.fidelity._tally import (
    ColumnMeasure,
    Counter,
    ReadRows,
    TableStates,
    round_stably,
)
from anonlib.table.schema import Scale

#: Ranges of continuous columns lie within this many deviations of the mean. Outside, columns with
#: long tails are nearly empty.
REACH = 3.0


class Queries(ColumnMeasure):
    """How wrong the release answers when it is asked how many rows have certain values.

    Each random query counts the rows whose values are in given ranges of some columns. Figures are
    the `mean` and the `median` of the relative errors: |count in the release - count in the source|
    / the count in the source, or / the share `sanity` of its rows, if that is more.

    A query has at least one quasi-identifier. Its other columns are quasi-identifiers, sensitive
    columns or the target. Columns are left out, and named in a note, if they have more than 100
    values that are not numbers, or an unsupported type. If values are uniform and independent, the
    ranges of a query together select a share `selectivity` of the rows. So each range is a share
    `selectivity`^(1 / columns) of the range of a continuous column, or of the ranks of an ordinal
    one. For a nominal column, it is a random set with this share of the categories.

    Released values that stand for several values count by their share in the range (`_reading`).
    Missing values are in no range.

    Reference: X. Xiao, Y. Tao, Anatomy, VLDB 2006, section 6, for the queries; X. Xiao, G. Wang, J.
    Gehrke, Differential privacy via wavelet transforms, IEEE TKDE 23(8), 2011, section 7, for the
    bound of 0.1 % of the rows. Both cited from memory.

    Cost: one pass over each table, shared with other measures of columns; O(n n_queries columns).
    """

    type: ClassVar[str] = "queries"
    subjects: ClassVar[Subjects] = "table"
    names: ClassVar[Mapping[str, str]] = {
        "mean": "mean error of the counts; as a share of the right one or of `sanity`, 0 is best, "
        "more is worse",
        "median": "error that half of the counts stay within; as `mean`, 0 is best, more is worse",
    }
    n_queries: int = Field(default=200, ge=1, le=10_000, description="how many are asked")
    columns: int = Field(default=2, ge=1, description="columns that a query is about, at most")
    selectivity: float = Field(
        default=0.05, gt=0, le=1, description="the share of rows that a query is to count"
    )
    sanity: float = Field(
        default=0.001, gt=0, le=1, description="errors are relative to this share of rows at least"
    )

    def parts(self, view: Axes) -> dict[str, Counter]:
        return {"queries": QueryCounts(self._draw_queries(view))}

    def findings(self, table_states: TableStates) -> Findings:
        ours, theirs = (
            states["queries"] for states in (table_states.source, table_states.released)
        )
        errors = np.abs(theirs - ours) / np.maximum(ours, self.sanity * table_states.view.n_source)
        note = table_states.view.note
        return Findings(
            (
                Figure("mean", round_stably(float(errors.mean())), note=note),
                Figure("median", round_stably(float(np.median(errors))), note=note),
            )
        )

    def _draw_queries(self, view: Axes) -> tuple["Query", ...]:
        random = np.random.default_rng(view.seed)
        queries = []
        for _ in range(self.n_queries):
            first = int(random.integers(view.n_quasi))
            others = np.delete(np.arange(len(view.axes)), first)
            others = random.permutation(others)[: self.columns - 1]
            axes = [view.axes[i] for i in (first, *others.tolist())]
            share = self.selectivity ** (1 / len(axes))
            queries.append(tuple(Condition(axis, _draw(axis, share, random)) for axis in axes))
        return tuple(queries)


@dataclass(frozen=True, eq=False)
class Condition:
    """A range of a column.

    Attributes:
        axis: The column.
        bounds: For a continuous column, float64[2]: both ends, which are in the range. For others,
            float64[n_categories + 1]: 1 for categories in the range, else 0.
    """

    axis: Axis
    bounds: Floats

    def holds(self, rows: ReadRows) -> Floats:
        """float64[n]. The share of each value that is in the range."""
        if not self.axis.is_line:
            return rows.codes(self.axis.id).of(self.bounds)
        low, high = self.bounds.tolist()
        return rows.line(self.axis.id).within(low, high)


Query = tuple[Condition, ...]


def _draw(axis: Axis, share: float, random: np.random.Generator) -> Floats:
    """The bounds of a random range that is a share of the column's range."""
    if axis.is_line:
        least, greatest = axis.ends.tolist()
        low, high = max(least, -REACH), min(greatest, REACH)
        start = low + random.random() * (1 - share) * (high - low)
        return np.array([start, start + share * (high - low)])
    c = axis.n_categories
    n = max(1, round(share * c))
    inside = np.zeros(c + 1)
    if axis.encoding.scale is Scale.NOMINAL:
        inside[random.permutation(c)[:n]] = 1.0
    else:
        start = int(random.integers(c - n + 1)) if c else 0
        inside[start : min(start + n, c)] = 1.0
    return inside


@dataclass(frozen=True, eq=False)
class QueryCounts(Counter):
    """Counts rows for queries. State: the count of each query."""

    queries: tuple[Query, ...]

    def update(self, rows: ReadRows) -> Floats:
        counts = np.zeros(len(self.queries))
        for i, query in enumerate(self.queries):
            shares = query[0].holds(rows)
            for condition in query[1:]:
                shares = shares * condition.holds(rows)
            counts[i] = shares.sum()
        return counts

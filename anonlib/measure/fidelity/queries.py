"""How wrong counts are that are asked of a release."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from pydantic import Field

from anonlib.arrays import Floats
from anonlib.measure import Figure, Findings, Subjects
from anonlib.measure.fidelity._axes import Axes, Axis
from anonlib.measure.fidelity._tally import ColumnMeasure, Counter, ReadRows, TableStates, stable
from anonlib.table.schema import Scale

#: Ranges of continuous columns lie within this many deviations of the mean, since most of the range
#: of a column with a long tail is empty.
REACH = 3.0


class Queries(ColumnMeasure):
    """How wrong the release answers when it is asked how many rows have certain values.

    `mean` and `median` relative error of random queries for the number of rows whose values of
    some columns are in a range each: |count in the release - count in the source| over the count in
    the source, or over a share `sanity` of the rows, if that is more.

    The columns of a query, one quasi-identifier at least, are drawn from these, sensitive columns
    and the target; a note names those of them that are left out, for more than 100 values that are
    no numbers, or an odd type. Ranges have the selectivity that they all would have together if
    values were even and independent: each a share `selectivity`^(1 / columns) of the range of a
    continuous column, of the ranks of an ordinal one; of a nominal one so many categories, in no
    order.
    Released values that stand for several count by the share that is in the range (`_reading`).
    Rows without a value are in no range.

    Reference: X. Xiao, Y. Tao, Anatomy, VLDB 2006, section 6, for the queries; X. Xiao, G. Wang, J.
    Gehrke, Differential privacy via wavelet transforms, IEEE TKDE 23(8), 2011, section 7, for the
    bound of 0.1 % of the rows. Both from memory.

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
        return {"queries": QueryCounts(self._drawn(view))}

    def findings(self, found: TableStates) -> Findings:
        ours, theirs = (states["queries"] for states in (found.source, found.released))
        errors = np.abs(theirs - ours) / np.maximum(ours, self.sanity * found.view.n_source)
        note = found.view.note
        return Findings(
            (
                Figure("mean", stable(float(errors.mean())), note=note),
                Figure("median", stable(float(np.median(errors))), note=note),
            )
        )

    def _drawn(self, view: Axes) -> tuple["Query", ...]:
        random = np.random.default_rng(view.seed)
        queries = []
        for _ in range(self.n_queries):
            first = int(random.integers(view.n_quasi))
            others = np.delete(np.arange(len(view.axes)), first)
            others = random.permutation(others)[: self.columns - 1]
            axes = [view.axes[i] for i in (first, *others.tolist())]
            share = self.selectivity ** (1 / len(axes))
            queries.append(tuple(Condition(axis, _drawn(axis, share, random)) for axis in axes))
        return tuple(queries)


@dataclass(frozen=True, eq=False)
class Condition:
    """A range. bounds: of a continuous column float64[2], both included; of others
    float64[n_categories + 1], 1 for each category in it, else 0."""

    axis: Axis
    bounds: Floats

    def holds(self, rows: ReadRows) -> Floats:
        """float64[n]: the share of each value that is in the range."""
        if not self.axis.is_line:
            return rows.codes(self.axis.id).of(self.bounds)
        low, high = self.bounds.tolist()
        return rows.line(self.axis.id).within(low, high)


Query = tuple[Condition, ...]


def _drawn(axis: Axis, share: float, random: np.random.Generator) -> Floats:
    """A range of a share of the column's."""
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
    """State: what each query counts."""

    queries: tuple[Query, ...]

    def update(self, rows: ReadRows) -> Floats:
        counts = np.zeros(len(self.queries))
        for i, query in enumerate(self.queries):
            shares = query[0].holds(rows)
            for condition in query[1:]:
                shares = shares * condition.holds(rows)
            counts[i] = shares.sum()
        return counts

"""How far associations of columns are from the source's."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

import numpy as np

from anonlib.arrays import Floats, Ints
from anonlib.measure import Figure, Findings, Series, Subjects
from anonlib.measure.fidelity._axes import Axes, Axis
from anonlib.measure.fidelity._reading import CategoryShares
from anonlib.measure.fidelity._tally import (
    ColumnMeasure,
    Counter,
    ReadRows,
    TableStates,
    round_stably,
)
from anonlib.measure.states import States

#: If a column has more categories, neighbours are counted together, in this many groups.
MOST_GROUPS = 100
#: A variance or sum of squares counts as 0 if it is at most this share of the terms it is computed
#: from.
ALIKE = 1e-12


class Associations(ColumnMeasure):
    """How far the associations between columns are from the source's.

    Measures the association of every pair of columns. One of the two is a quasi-identifier; the
    other may be sensitive or the target. `mean` and `largest` are taken over the absolute
    differences between the release and the source. Measures of association:

    - Two numeric columns (continuous, or ranks of ordinal columns): Pearson's correlation, over
      rows that have both values.
    - Two nominal columns: Cramer's V, the root of chi2 / (n min(r - 1, c - 1)), without correction
      of bias; missing is a category.
    - A numeric and a nominal column: the correlation ratio, the root of the sum of squares between
      categories over the total sum of squares.

    An association is 0 if one of the two columns does not vary in the release. If one does not vary
    in the source, the pair is left out. If values stand for several values (`_reading`), all
    combinations in a row count, as if columns were independent within the row.

    If a nominal quasi-identifier has more than 100 categories, they are counted in 100 groups of
    neighbours: siblings in the hierarchy, else neighbours by value. Sensitive columns and targets
    are left out, and named in a note, if they have more than 100 values that are not numbers, or an
    unsupported type.

    Series `associations`: all pairs.
    Cost: one pass over each table, shared with other measures of columns; a count of every pair of
    columns.
    Reference: H. Cramer, Mathematical methods of statistics, 1946.
    """

    type: ClassVar[str] = "associations"
    subjects: ClassVar[Subjects] = "table"
    names: ClassVar[Mapping[str, str]] = {
        "mean": "mean change of the association of two columns, over all pairs; 0 (none) to 2, "
        "more is worse",
        "largest": "change of the association of those two columns where it is the largest; 0 "
        "(none) to 2, more is worse",
    }

    def parts(self, view: Axes) -> dict[str, Counter]:
        counters: dict[str, Counter] = {}
        numeric = tuple(axis.id for axis in view.axes if axis.is_numeric)
        if numeric:
            counters["products"] = Products(numeric)
        for a, b in _pairs(view):
            if not (a.is_numeric and b.is_numeric):
                counters[f"pair {a.id} {b.id}"] = Ratio(a, b) if a.is_numeric else Contingency(a, b)
        return counters

    def findings(self, states: TableStates) -> Findings:
        view, rows, differences = states.view, [], []
        for a, b in _pairs(view):
            source, n = _association(a, b, view, states.source)
            if source is None:
                continue
            released = _association(a, b, view, states.released)[0] or 0.0
            differences.append(abs(released - source))
            if n >= view.least:
                name = f"{_first(a, b, view)} × {_second(a, b, view)}"
                ours, theirs, far = map(round_stably, (source, released, differences[-1]))
                rows.append((name, _kind(a, b), ours, theirs, far))
        if not differences:
            note = "; ".join(filter(None, ["no two columns of the source vary", view.note]))
            return Findings(tuple(Figure(name, None, note=note) for name in self.names))
        figures = (
            Figure("mean", round_stably(float(np.mean(differences))), note=view.note),
            Figure("largest", round_stably(max(differences)), note=view.note),
        )
        heads = ("columns", "measure", "source", "release", "difference")
        return Findings(figures, (Series("associations", "", heads, tuple(rows)),))


def _pairs(view: Axes) -> list[tuple[Axis, Axis]]:
    """The pairs of columns. If one of the two is numeric, it is the first."""
    quasi = {axis.id for axis in view.quasi}
    return [
        (b, a) if b.is_numeric and not a.is_numeric else (a, b)
        for a, b in combinations(view.axes, 2)
        if a.id in quasi or b.id in quasi
    ]


@dataclass(frozen=True)
class Products(Counter):
    """Sums of pairs of p continuous and ordinal columns.

    State: four float64[p, p]. Each is a sum over the rows with values in columns i and j: of 1, of
    value i, of its square, and of value i times value j.
    """

    ids: tuple[str, ...]

    def update(self, rows: ReadRows) -> Floats:
        parts = zip(*(rows.numbers(id) for id in self.ids), strict=True)
        present, first, second = map(np.column_stack, parts)
        sums = present.T @ present, first.T @ present, second.T @ present, first.T @ first
        return np.stack(sums).ravel()

    def correlation(self, state: Floats, a: str, b: str) -> tuple[float | None, float]:
        """Pearson's correlation (None if a column does not vary), and the rows with both values."""
        p, i, j = len(self.ids), self.ids.index(a), self.ids.index(b)
        count, first, second, product = state.reshape(4, p, p)
        n = float(count[i, j])
        if n <= 0:
            return None, 0.0
        x, y = first[i, j] / n, first[j, i] / n
        xx, yy = second[i, j] / n - x * x, second[j, i] / n - y * y
        if xx <= ALIKE * (second[i, j] / n + 1) or yy <= ALIKE * (second[j, i] / n + 1):
            return None, n
        return float((product[i, j] / n - x * y) / np.sqrt(xx * yy)), n


@dataclass(frozen=True, eq=False)
class Ratio(Counter):
    """Counts a numeric column by the g groups of a nominal column.

    State: float64[2 g + 1]. The number of values in each group, their sums, then the sum of the
    squares of all values.
    """

    number: Axis
    nominal: Axis

    def update(self, rows: ReadRows) -> Floats:
        present, first, second = rows.numbers(self.number.id)
        groups = _group_codes(rows, self.nominal)
        return np.concatenate([groups.sums(present), groups.sums(first), [second.sum()]])

    def ratio(self, state: Floats) -> tuple[float | None, float]:
        """The correlation ratio (None if a column does not vary), and the rows with a number."""
        count, first = np.split(state[:-1], 2)
        n, total = float(count.sum()), float(state[-1])
        there = count > ALIKE * n
        if n <= 0 or there.sum() < 2:
            return None, n
        mean = first[there].sum() / n
        if total / n - mean**2 <= ALIKE * (total / n + 1):
            return None, n
        between = float(count[there] @ (first[there] / count[there] - mean) ** 2)
        return float(np.sqrt(between / (total - n * mean**2))), n


@dataclass(frozen=True, eq=False)
class Contingency(Counter):
    """Counts two nominal columns. State: their contingency table."""

    first: Axis
    second: Axis

    def update(self, rows: ReadRows) -> Floats:
        return _group_codes(rows, self.first).joint(_group_codes(rows, self.second)).ravel()

    def cramer(self, state: Floats) -> tuple[float | None, float]:
        """Cramer's V (None if a column does not vary), and the number of rows."""
        table = state.reshape(int(_groups(self.first)[-1]) + 1, -1)
        n = float(table.sum())
        table = table[table.sum(axis=1) > ALIKE * n][:, table.sum(axis=0) > ALIKE * n]
        if min(table.shape) < 2:
            return None, n
        expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / n
        chi2 = float(((table - expected) ** 2 / expected).sum())
        return float(np.sqrt(chi2 / (n * (min(table.shape) - 1)))), n


def _group_codes(rows: ReadRows, axis: Axis) -> CategoryShares:
    codes = rows.codes(axis.id)
    return codes if axis.n_categories <= MOST_GROUPS else codes.merge(_groups(axis))


def _groups(axis: Axis) -> Ints:
    """int64[n_categories + 1]. The group of each category; missing has its own."""
    c = axis.n_categories
    n = min(c, MOST_GROUPS)
    return np.append(np.arange(c) * n // max(c, 1), n)


def _association(a: Axis, b: Axis, view: Axes, states: States) -> tuple[float | None, float]:
    """The association of two columns (None if one does not vary), and the number of rows used."""
    if b.is_numeric:
        numeric = tuple(axis.id for axis in view.axes if axis.is_numeric)
        return Products(numeric).correlation(states["products"], a.id, b.id)
    state = states[f"pair {a.id} {b.id}"]
    return Ratio(a, b).ratio(state) if a.is_numeric else Contingency(a, b).cramer(state)


def _kind(a: Axis, b: Axis) -> str:
    if b.is_numeric:
        return "correlation"
    return "correlation ratio" if a.is_numeric else "Cramer's V"


def _first(a: Axis, b: Axis, view: Axes) -> str:
    return min(a, b, key=view.axes.index).name


def _second(a: Axis, b: Axis, view: Axes) -> str:
    return max(a, b, key=view.axes.index).name

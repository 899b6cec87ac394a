"""The distribution of every column before and after, counted while cells are made."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonlib.arrays import GRID, Floats, Ints, snap
from anonlib.encode.texts import texts
from anonlib.errors import AnonlibError
from anonlib.measure import DeclaredColumn, Figure, Findings, Series, Subjects
from anonlib.measure.case import CellSums
from anonlib.measure.cell_sums import CellMeasure, CellParts, OriginalCells, name_of
from anonlib.measure.features import as_one_array
from anonlib.measure.fidelity._axes import Axis, make_axis
from anonlib.measure.fidelity._bins import make_category_bins, merge_bins, round_edges
from anonlib.measure.fidelity._reading import CategoryShares, Spans, read_column
from anonlib.measure.states import States
from anonlib.table.encoding import Encoding, find_moments, to_float
from anonlib.table.schema import Column, Role, Scale, Schema, is_atomic, may_be_continuous

if TYPE_CHECKING:
    from anonlib.measure.case import Case

#: The most categories of a column. What a task counts is small: the driver gets it of every task.
MOST_CATEGORIES = 300
#: The most values of a column that is released as it is; others count together.
MOST_VALUES = 100
#: Digits of the shares in series. The last ones of masses are on a grid.
N_DIGITS = 6
#: A release does not fail for what its report would like to show.
UNREADABLE = (AnonlibError, pa.ArrowException, ValueError, KeyError, IndexError)
BEFORE, AFTER, NAMED, UNREAD = "before", "after", "named", "unread"
#: Names no value: it stands behind the values of a column.
OTHERS = "\x00"

PUBLISHED = "once a release is published, workers count no more; name `marginals`"
LEFT_OUT = f"more than {MOST_CATEGORIES} categories; name `marginals`"
ODD = "its released values can't be read as values of the source"
NOTHING = "nothing was released"


class ColumnFit(NamedTuple):
    """What is known of a column before it is counted.

    Attributes:
        axis: The column.
        edges: float64[e]. The edges of the bins of a continuous column, in its own numbers.
        changes: Whether the release recodes it. Other columns are released as they are.
    """

    axis: Axis
    edges: Floats
    changes: bool

    @property
    def n_bins(self) -> int:
        """The number of bins, the last one for missing values."""
        return len(self.edges) + 2 if self.axis.is_line else self.axis.n_categories + 1


class Overview(CellMeasure):
    """How every column is distributed before and after, sensitive ones and the target included.

    Every release has this in its report and record, without any config. Series `distribution` of
    each column: the shares of rows by range or category, as in `marginals`; `total_variation`: half
    the sum of the absolute differences of these shares, missing values included, over all ranges or
    categories. Ranges are of about a sixteenth of the column, so that differences within them do
    not show: `marginals` has distances.

    Sensitive columns and the target are released as they are: only suppression changes them. Their
    ranges, and their values if there are more than 100, are those of the scan's sample. Columns
    with more than 300 categories are left out. Suppressed rows are rows of the source.
    Cost: O(n) per column, by workers, while they make the cells. One pass over the source where
    rows of controllers or tuples were suppressed, one over the release where costly cells were,
    both for columns that a plan by tuples does not see. With a `unit`, one aggregate of the source.
    """

    type: ClassVar[str] = "overview"
    usual: ClassVar[bool] = False
    subjects: ClassVar[Subjects] = "columns"
    names: ClassVar[Mapping[str, str]] = {
        "total_variation": "share of rows that would have to change range or category to be "
        "distributed as in the source; 0 to 1, more is worse",
    }

    def list_subjects(self, figure: str, columns: Mapping[str, DeclaredColumn]) -> Sequence[str]:
        return [name for name, column in columns.items() if column.role is not Role.INSENSITIVE]

    def choose_columns(self, schema: Schema) -> tuple[Column, ...]:
        others = schema.of(Role.SENSITIVE, Role.TARGET)
        return (*schema.quasi_identifiers, *(c for c in others if is_atomic(c.type)))

    def fit(
        self, schema: Schema, encodings: Sequence[Encoding], sample: pa.Table
    ) -> dict[str, ColumnFit]:
        known = {each.id: each for each in encodings}
        found = {}
        for column in self.choose_columns(schema):
            changes = column.role is Role.QUASI_IDENTIFIER
            encoding = (
                known[column.id]
                if changes
                else _fit_sample(column, sample.column(column.id).combine_chunks())
            )
            axis = make_axis(column, encoding)
            edges = round_edges(axis) if axis.is_line else np.zeros(0)
            if axis.n_categories <= MOST_CATEGORIES:
                found[column.id] = ColumnFit(axis, edges, changes)
        return found

    def count(self, cells: OriginalCells) -> dict[str, CellParts]:
        found = {}
        for id, values in cells.values.items():
            column: ColumnFit | None = cells.fit.get(id)
            if column is None:
                continue
            try:
                masses = _count_column(column, values, cells)
            except UNREADABLE:
                masses = {UNREAD: np.zeros(1)}
            for name, sums in masses.items():
                found[name_of(id, name)] = CellParts(np.zeros(1, np.int64), sums[None])
        return found

    def measure(self, case: "Case") -> Findings:
        sums, fits = case.cell_sums(self.type), case.cell_fit(self.type)
        why = PUBLISHED if sums is None or fits is None else NOTHING * (not case.n_released)
        if why or sums is None:
            names = [column.name for column in self.choose_columns(case.schema)]
            return Findings(tuple(Figure("total_variation", None, name, why) for name in names))
        least = max(1, case.person_rows().count_sure(case.k))
        return self.describe(case.schema, fits, _complete(case, fits, sums), least)

    def describe(
        self,
        schema: Schema,
        fits: Mapping[str, ColumnFit],
        masses: Mapping[str, Floats],
        least: int,
    ) -> Findings:
        """The findings on a release.

        Args:
            schema: The columns.
            fits: By id: what was fitted to the whole table.
            masses: What was counted, by name.
            least: A number of rows that surely belong to at least k persons.
        """
        figures: list[Figure] = []
        series: list[Series] = []
        for column in self.choose_columns(schema):
            fit = fits.get(column.id)
            if fit is None or name_of(column.id, UNREAD) in masses:
                why = LEFT_OUT if fit is None else ODD
                figures.append(Figure("total_variation", None, column.name, why))
                continue
            before, after = (masses[name_of(column.id, name)] for name in (BEFORE, AFTER))
            names = masses[name_of(column.id, NAMED)] if _has_names(fit) else None
            figures.append(Figure("total_variation", _compare(before, after), column.name))
            rows = _show(fit, np.stack([before, after]), names, least)
            if rows:
                heads = ("range" if fit.axis.is_line else "category", "source", "release")
                series.append(Series("distribution", column.name, heads, rows))
        return Findings(tuple(figures), tuple(series))


def _compare(before: Floats, after: Floats) -> float:
    """The total variation of masses, which are multiples of GRID, rounded once."""
    ours, theirs = ([round(mass / GRID) for mass in side.tolist()] for side in (before, after))
    n, m = int(sum(ours)), int(sum(theirs))
    moved: int = sum(abs(a * m - b * n) for a, b in zip(ours, theirs, strict=True))
    return moved / (2 * n * m)


def _complete(
    case: "Case", fits: Mapping[str, ColumnFit], sums: Mapping[str, CellSums]
) -> dict[str, Floats]:
    """The masses of all columns by name. Where workers counted other rows than a table has, or did
    not see a column, the table is read."""
    masses = {name: each.whole for name, each in sums.items()}
    seen = {id: _count_seen(id, masses) for id in fits if name_of(id, UNREAD) not in masses}
    for released, n_rows in ((False, case.n_source), (True, case.n_released)):
        ids = [id for id, n_seen in seen.items() if n_seen != n_rows]
        if ids:
            count = partial(_count_rows, fits, released=released)
            masses |= case.fold(ids, count, _add_masses, released=released)
    return masses


def _count_seen(id: str, masses: Mapping[str, Floats]) -> int | None:
    """The rows of a column that workers counted, the same on both sides: those of the source, or of
    the release, or all that both have if the number is the same. None if they did not see it."""
    before = masses.get(name_of(id, BEFORE))
    return None if before is None else int(before.sum())


def _count_rows(
    fits: Mapping[str, ColumnFit], tables: Iterable[pa.Table], *, released: bool
) -> States:
    """The masses of columns in rows of the source, or of the release."""
    found: dict[str, Floats] = {}
    for table in tables:
        for id in table.column_names:
            try:
                masses = _count_side(fits[id], as_one_array(table.column(id)), released)
            except UNREADABLE:
                masses = {UNREAD: np.zeros(1)}
            for name, its in masses.items():
                key = name_of(id, name)
                found[key] = found[key] + its if key in found else its
    return found


def _add_masses(_: str, left: Floats, right: Floats) -> Floats:
    return left + right


def _has_names(fit: ColumnFit) -> bool:
    return fit.changes and not fit.axis.is_line


def _count_column(column: ColumnFit, values: Any, cells: OriginalCells) -> dict[str, Floats]:
    """The masses of the bins of a column in a task, before and after."""
    before = _count_side(column, values, False, cells.weight)
    if not column.changes:
        return {**before, AFTER: before[BEFORE]}
    rows = cells.released_block.rows
    return {**before, **_count_side(column, cells.released[column.axis.id], True, rows)}


def _count_side(
    column: ColumnFit, values: Any, released: bool, weight: Ints | None = None
) -> dict[str, Floats]:
    """The masses of the bins of a column before or after, by name.

    weight: int64[n]. The rows that each value stands for; None: 1.
    """
    side = AFTER if released else BEFORE
    weight = np.ones(len(values), np.int64) if weight is None else weight
    if not column.changes:
        return {side: _count_values(column, values, weight)}
    read = read_column(column.axis, values, released=released)
    found = {side: _masses(column, read, weight.astype(np.float64))}
    if released and isinstance(read, CategoryShares):
        found[NAMED] = _name_flags(column.axis, read.names)
    return found


def _fit_sample(column: Column, values: Any) -> Encoding:
    """The encoding of a column that is released as it is, by a sample in a fixed order."""
    if may_be_continuous(column.type):
        numbers = to_float(values)
        there = numbers[np.isfinite(numbers)]
        ends = (float(there.min()), float(there.max())) if len(there) else (0.0, 0.0)
        mean, sd = find_moments(np.where(np.isfinite(numbers), numbers, np.nan), *ends)
        return Encoding(column.id, Scale.CONTINUOUS, True, mean, sd, *ends)
    counts = pc.value_counts(texts(values).drop_null()).to_pylist()
    by_count = sorted(counts, key=lambda each: (-each["counts"], each["values"]))[:MOST_VALUES]
    categories = [*sorted(each["values"] for each in by_count), OTHERS]
    return Encoding(column.id, Scale.NOMINAL, True, categories=pa.array(categories, pa.string()))


def _count_values(column: ColumnFit, values: Any, weight: Ints) -> Floats:
    """The masses of the bins of a column that is released as it is."""
    if column.axis.is_line:
        numbers = to_float(values)
        bins = np.searchsorted(column.edges, numbers, side="right")
        bins[~np.isfinite(numbers)] = column.n_bins - 1
        return np.bincount(bins, weight, column.n_bins).astype(np.float64)
    n = column.axis.n_categories
    code = pc.index_in(texts(values), value_set=column.axis.encoding.categories, skip_nulls=True)
    codes = code.fill_null(n - 1).to_numpy(zero_copy_only=False).astype(np.int64)  # other values
    codes[values.is_null(nan_is_null=True).to_numpy(zero_copy_only=False)] = n
    return np.bincount(codes, weight, n + 1).astype(np.float64)


def _masses(column: ColumnFit, values: Spans | CategoryShares, weight: Floats) -> Floats:
    """float64[n_bins]. The masses of the bins: weights times shares on the grid, so that sums are
    exact in any order and by any tasks."""
    if isinstance(values, CategoryShares):
        if values.shares is not None:
            shares = values.shares.copy()
            shares.data = snap(shares.data)
            values = replace(values, shares=shares)
        return values.sums(weight)
    edges = column.axis.position(column.edges)
    there = ~np.isnan(values.low)
    low, high, weight_of = values.low[there], values.high[there], weight[there]
    point = high <= low
    place = np.searchsorted(edges, low[point], side="right")
    masses = np.bincount(place, weight_of[point], len(edges) + 1).astype(np.float64)
    if not point.all():
        low, high, wide = low[~point], high[~point], weight_of[~point]
        below = [float(wide @ snap(np.clip((edge - low) / (high - low), 0, 1))) for edge in edges]
        masses += np.diff([0.0, *below, float(wide.sum())])
    return np.append(masses, weight[~there].sum())


def _name_flags(axis: Axis, names: Ints) -> Floats:
    """More than 0 for each category, then each node, then missing, that cells are named by."""
    flags = np.zeros(axis.n_categories + 1 + len(axis.nodes.names) + 1)
    flags[names] = 1
    return flags


def _show(
    fit: ColumnFit, counts: Floats, names: Floats | None, least: int
) -> tuple[tuple[str, float, float], ...]:
    """The rows of the series. counts: float64[2, n_bins]."""
    axis = fit.axis
    if axis.is_line:
        labels, shown = merge_bins(axis, fit.edges, counts[:, :-1], least)
    else:
        if names is None:  # values that the release has as they are
            flags = np.append(counts[1] > 0, np.zeros(len(axis.nodes.names) + 1, np.bool_))
            flags[axis.n_categories - 1] = False  # the other values
            names = flags.astype(np.float64)
        labels, shown = make_category_bins(axis, counts, names, least)
    if not labels:
        return ()
    # A side without a value in any range, since all are missing, has none of its rows there.
    whole = np.maximum(shown.sum(axis=1, keepdims=True), GRID)
    shares = np.round(shown / whole, N_DIGITS) + 0.0
    return tuple(zip(labels, *shares.tolist(), strict=True))

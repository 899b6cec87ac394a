"""One pass over each table for all measures that compare columns.

Each batch of rows gives mergeable states, as for metrics.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa

from anonlib.arrays import Floats
from anonlib.measure import Findings, Measure
from anonlib.measure.fidelity._axes import Axes, Axis, read_axes
from anonlib.measure.fidelity._distribution import N_BINS, Distribution, Points, spread
from anonlib.measure.fidelity._reading import CategoryShares, Numbers, Spans, read_column
from anonlib.measure.states import States

if TYPE_CHECKING:
    from anonlib.measure.case import Case


@dataclass(frozen=True, eq=False)
class ReadRows:
    """Rows of the source or of the release. Columns are read lazily, and once.

    Attributes:
        table: The rows, with columns named by id.
        view: The columns.
        released: Whether they are released rows, else original ones.
    """

    table: pa.Table
    view: Axes
    released: bool
    _columns: dict[str, Spans | CategoryShares] = field(default_factory=dict, repr=False)
    _numbers: dict[str, Numbers] = field(default_factory=dict, repr=False)

    def __getitem__(self, id: str) -> Spans | CategoryShares:
        if id not in self._columns:
            values = self.table.column(id).combine_chunks()
            self._columns[id] = read_column(self.view[id], values, released=self.released)
        return self._columns[id]

    def line(self, id: str) -> Spans:
        """A continuous column."""
        column = self[id]
        assert isinstance(column, Spans)
        return column

    def codes(self, id: str) -> CategoryShares:
        """An ordinal or nominal column."""
        column = self[id]
        assert isinstance(column, CategoryShares)
        return column

    def numbers(self, id: str) -> Numbers:
        """A continuous or ordinal column."""
        if id not in self._numbers:
            axis, found = self.view[id], self[id]
            self._numbers[id] = (
                found.numbers() if isinstance(found, Spans) else found.numbers(axis.positions)
            )
        return self._numbers[id]


class Counter(ABC):
    """Counts something over rows. Its state is a float64 array. Merging is commutative up to
    rounding."""

    @abstractmethod
    def update(self, rows: ReadRows) -> Floats:
        """The state of some rows."""

    def merge(self, a: Floats, b: Floats) -> Floats:
        """The state of the rows of both states."""
        return a + b


#: Counters by name.
Counters: TypeAlias = Mapping[str, Counter]


@dataclass(frozen=True)
class Sums(Counter):
    """Sums of a continuous or ordinal column. State: the number of values, their sum, the sum of
    their squares."""

    id: str

    def update(self, rows: ReadRows) -> Floats:
        return np.array([each.sum() for each in rows.numbers(self.id)])


@dataclass(frozen=True, eq=False)
class LineDistribution(Counter):
    """The distribution of a continuous column.

    Intervals at least as wide as a bin are spread over the bins. Other values count at their
    middle. State: the masses of the bins, then level, keys and counts of `Points`.
    """

    axis: Axis

    @property
    def edges(self) -> Floats:
        low, high = self.axis.ends
        return np.linspace(low, max(high, np.nextafter(low, np.inf)), N_BINS + 1)

    def update(self, rows: ReadRows) -> Floats:
        values = rows.line(self.axis.id)
        there = ~np.isnan(values.low)
        low, high, edges = values.low[there], values.high[there], self.edges
        wide = (high > low) & (high - low >= edges[1] - edges[0])
        mass = spread(low[wide], high[wide], edges) if wide.any() else np.zeros(N_BINS)
        return _line(mass, Points.of((low[~wide] + high[~wide]) / 2))

    def merge(self, a: Floats, b: Floats) -> Floats:
        return _line(a[:N_BINS] + b[:N_BINS], _points(a).merge(_points(b)))

    def distribution(self, state: Floats) -> Distribution:
        points = _points(state)
        weight = points.rows.astype(np.float64)
        return Distribution(points.numbers, weight, self.edges, state[:N_BINS])


def _line(mass: Floats, points: Points) -> Floats:
    return np.concatenate([mass, [points.level], points.key, points.rows])


def _points(state: Floats) -> Points:
    key, rows = np.split(state[N_BINS + 1 :].astype(np.int64), 2)
    return Points(int(state[N_BINS]), key, rows)


@dataclass(frozen=True, eq=False)
class Mass(Counter):
    """The distribution of an ordinal or nominal column.

    State: the number of values in each category, with missing as the last one. Then, for each
    category and each node (`CategoryShares.names`): more than 0 if the table names it, else 0.
    """

    axis: Axis

    def update(self, rows: ReadRows) -> Floats:
        values = rows.codes(self.axis.id)
        sums = values.sums()
        names = np.zeros(len(sums) + len(self.axis.nodes.names) + 1)
        names[values.names] = 1
        return np.append(sums, names)

    def split(self, state: Floats) -> tuple[Floats, Floats]:
        """The number of values in each category, and the names in the table."""
        size = self.axis.n_categories + 1
        return state[:size], state[size:]

    def distribution(self, state: Floats) -> Distribution:
        """The distribution of the ranks of an ordinal column."""
        n, empty = self.axis.n_categories, np.zeros(0)
        return Distribution(self.axis.positions[:n], state[:n], empty, empty)


def count(parts: Counters, tables: Iterable[pa.Table], view: Axes, *, released: bool) -> States:
    """The states of all counters over rows; empty without rows.

    Args:
        parts: The counters.
        tables: Batches of rows, with columns named by id.
        view: The columns.
        released: Whether they are released rows, else original ones.
    """
    states: dict[str, Floats] = {}
    for table in tables:
        if table.num_rows:
            rows = ReadRows(table, view, released)
            for name, part in parts.items():
                state = part.update(rows)
                states[name] = part.merge(states[name], state) if name in states else state
    return states


@dataclass(frozen=True)
class TableStates:
    """The states of all counters over the source and the release.

    Attributes:
        view: The columns.
        source: States of the source, by counter.
        released: States of the release, by counter.
    """

    view: Axes
    source: States
    released: States


class ColumnMeasure(Measure):
    """A measure that compares columns of the release with columns of its source. All such measures
    of a config share one pass over each of the two tables."""

    @abstractmethod
    def parts(self, view: Axes) -> Counters:
        """The counters that the measure needs. Equal names mean equal counters in all measures."""

    @abstractmethod
    def findings(self, states: TableStates) -> Findings:
        """Computes the figures and series from the states."""

    def measure(self, case: "Case") -> Findings:
        return self.findings(_compare(case, self))


def _compare(case: "Case", asking: ColumnMeasure) -> TableStates:
    """The states for all measures of the config, or for `asking` alone if the config does not have
    it. They are computed once."""
    measures = [each for each in case.measures if isinstance(each, ColumnMeasure)]
    if asking not in measures:
        measures = [asking]
    if (known := case.cache.get(tuple(measures))) is not None:
        states: TableStates = known
        return states
    view = read_axes(case)
    parts: dict[str, Counter] = {}
    for each in measures:
        parts.update(each.parts(view))
    ids = [axis.id for axis in view.axes]
    source, release = (
        case.fold(
            ids,
            partial(count, parts, view=view, released=released),
            lambda name, a, b: parts[name].merge(a, b),
            released=released,
        )
        for released in (False, True)
    )
    states = TableStates(view, source, release)
    case.cache[tuple(measures)] = states
    return states


def round_stably(value: float) -> float:
    """Rounds a figure to the digits that do not depend on the order of rows in float sums."""
    return float(f"{round(value, 9):.9g}") + 0.0

"""One pass over a table for all measures that compare columns: mergeable states, as metrics have
them, the same over batches of Arrow here and in Spark."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa

from anonlib.arrays import Floats
from anonlib.errors import run_sanitized
from anonlib.measure import Findings, Measure
from anonlib.measure.fidelity._axes import Axis, View, view_of
from anonlib.measure.fidelity._distribution import N_BINS, Distribution, Points, spread
from anonlib.measure.fidelity._reading import Numbers, Shares, Spans, read

if TYPE_CHECKING:  # these import Spark
    from pyspark.sql import DataFrame

    from anonlib.evaluation.case import Case

#: Rows that are worked on together.
ROWS = 50_000
_STATES = "part string, state array<double>"
#: How many tasks each core gets, and most tasks: each has a state, of some 100 kB for ten columns
#: and up to some 10 MB for many wide ones.
TASKS_PER_CORE = 4
MOST_TASKS = 256


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of the source or of the release, read column by column when asked for."""

    table: pa.Table
    view: View
    released: bool
    _known: dict[str, Spans | Shares] = field(default_factory=dict, repr=False)
    _numbers: dict[str, Numbers] = field(default_factory=dict, repr=False)

    def __getitem__(self, id: str) -> Spans | Shares:
        if id not in self._known:
            values = self.table.column(id).combine_chunks()
            self._known[id] = read(self.view[id], values, released=self.released)
        return self._known[id]

    def line(self, id: str) -> Spans:
        """A continuous column."""
        found = self[id]
        assert isinstance(found, Spans)
        return found

    def codes(self, id: str) -> Shares:
        """An ordinal or nominal column."""
        found = self[id]
        assert isinstance(found, Shares)
        return found

    def numbers(self, id: str) -> Numbers:
        """A continuous or ordinal column."""
        if id not in self._numbers:
            axis, found = self.view[id], self[id]
            self._numbers[id] = (
                found.numbers() if isinstance(found, Spans) else found.numbers(axis.positions)
            )
        return self._numbers[id]


class Part(ABC):
    """Something that is counted over rows. A state is a float64 array; merging is commutative up to
    rounding."""

    @abstractmethod
    def update(self, rows: Rows) -> Floats:
        """The state of some rows."""

    def merge(self, a: Floats, b: Floats) -> Floats:
        """The state of both."""
        return a + b


#: What is counted, and the states of it, by name.
Parts: TypeAlias = Mapping[str, Part]
States: TypeAlias = Mapping[str, Floats]


@dataclass(frozen=True)
class Sums(Part):
    """Of a continuous or ordinal column: how many values there are, their sum, that of their
    squares."""

    id: str

    def update(self, rows: Rows) -> Floats:
        return np.array([each.sum() for each in rows.numbers(self.id)])


@dataclass(frozen=True, eq=False)
class Line(Part):
    """The distribution of a continuous column: intervals of at least a bin's width are spread over
    bins, all others count at their middle. State: the bins, then level, keys and counts of the
    points."""

    axis: Axis

    @property
    def edges(self) -> Floats:
        low, high = self.axis.ends
        return np.linspace(low, max(high, np.nextafter(low, np.inf)), N_BINS + 1)

    def update(self, rows: Rows) -> Floats:
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
class Mass(Part):
    """The distribution of an ordinal or nominal column. State: the values of each category, missing
    the last; then by category and node what the release names: `Shares.names`, 0 where never."""

    axis: Axis

    def update(self, rows: Rows) -> Floats:
        values = rows.codes(self.axis.id)
        sums = values.sums()
        names = np.zeros(len(sums) + len(self.axis.nodes.names) + 1)
        names[values.names] = 1
        return np.append(sums, names)

    def split(self, state: Floats) -> tuple[Floats, Floats]:
        """The two halves."""
        size = self.axis.n_categories + 1
        return state[:size], state[size:]

    def distribution(self, state: Floats) -> Distribution:
        """That of the ranks of an ordinal column."""
        n, empty = self.axis.n_categories, np.zeros(0)
        return Distribution(self.axis.positions[:n], state[:n], empty, empty)


def counted(parts: Parts, tables: Iterable[pa.Table], view: View, *, released: bool) -> States:
    """The states of rows that come in batches; none where there are no rows."""
    states: dict[str, Floats] = {}
    for table in tables:
        if table.num_rows:
            rows = Rows(table, view, released)
            _merge(states, parts, {name: part.update(rows) for name, part in parts.items()})
    return states


def _merge(states: dict[str, Floats], parts: Parts, more: States) -> None:
    for name, state in more.items():
        states[name] = parts[name].merge(states[name], state) if name in states else state


def counted_in_spark(parts: Parts, frame: "DataFrame", view: View, *, released: bool) -> States:
    """The same, of a DataFrame. Cost: one crossing into Python, and a shuffle of the tasks' states;
    one state comes to the driver."""
    cores = frame.sparkSession.sparkContext.defaultParallelism
    n_tasks = min(TASKS_PER_CORE * cores, MOST_TASKS)
    columns = [axis.id for axis in view.axes]

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tables = _gathered(batches)
        states = run_sanitized(
            "comparing columns", lambda: counted(parts, tables, view, released=released)
        )
        yield _batch(states)

    def merge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield _batch(run_sanitized("comparing columns", lambda: _merged(parts, batches)))

    found = frame.select(*columns).coalesce(n_tasks).mapInArrow(work, _STATES)
    apart = found.repartition(max(min(cores, len(parts)), 1), "part").mapInArrow(merge, _STATES)
    return _merged(parts, apart.toArrow().to_batches())


def _batch(states: States) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {"part": list(states), "state": [state.tolist() for state in states.values()]},
        pa.schema([("part", pa.string()), ("state", pa.list_(pa.float64()))]),
    )


def _merged(parts: Parts, batches: Iterable[pa.RecordBatch]) -> States:
    merged: dict[str, Floats] = {}
    for batch in batches:
        for name, state in zip(*(c.to_numpy(False) for c in batch.columns), strict=True):
            _merge(merged, parts, {name: state})
    return merged


def _gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(each.num_rows for each in held) >= ROWS:
            yield pa.Table.from_batches(held)
            held = []
    if held:
        yield pa.Table.from_batches(held)


@dataclass(frozen=True)
class Compared:
    """What the passes over the two tables found."""

    view: View
    source: States
    released: States


class ColumnMeasure(Measure):
    """A measure that compares columns of the release with those of its source. All such measures of
    a config share one pass over each of the two tables."""

    @abstractmethod
    def parts(self, view: View) -> Parts:
        """What it counts; parts of one name are the same in all measures."""

    @abstractmethod
    def findings(self, found: Compared) -> Findings:
        """Its figures."""

    def measure(self, case: "Case") -> Findings:
        return self.findings(_compared(case, self))


def _compared(case: "Case", asking: ColumnMeasure) -> Compared:
    """What all measures of the config count, and this one, which may not be of it."""
    given = () if case.config.evaluate is None else case.config.evaluate.measures
    measures = [each for each in given if isinstance(each, ColumnMeasure)]
    if asking not in measures:
        measures = [asking]
    if (known := case.shared.get(tuple(measures))) is not None:
        found: Compared = known
        return found
    view = view_of(case)
    parts: dict[str, Part] = {}
    for each in measures:
        parts.update(each.parts(view))
    found = Compared(
        view,
        counted_in_spark(parts, case.source, view, released=False),
        counted_in_spark(parts, case.released, view, released=True),
    )
    case.shared[tuple(measures)] = found
    return found


def stable(value: float) -> float:
    """The figure as far as the order of rows can't change it, which float sums depend on."""
    return float(f"{round(value, 9):.9g}") + 0.0

"""The content of a sweep's page, from its rows."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import fmean, stdev
from typing import Any

from anonlib.config.yaml import shorten_key
from anonlib.measure import Cell
from anonlib.pages.charts import Chart, Line, Table, draw_bars, draw_dots, draw_lines
from anonlib.pages.measures import MAX_CHARTS
from anonlib.pages.words import as_sentence, name_value, number, speak
from anonlib.text import count_noun, printable

Row = Mapping[str, Any]
Key = tuple[Cell, ...]

#: The axis whose values get separate charts, and the one that means and deviations are over.
CASE, SEED = "case", "seed"


@dataclass(frozen=True)
class SweepPage:
    """The content of a sweep's page, in order.

    Attributes:
        title: The title.
        summary: Sentences.
        figures: For each figure its name, its meaning and its charts.
        points: Means and deviations of all figures.
        failures: Points that failed, with their errors; None without any.
        constants: Names and values of axes that have one value only.
    """

    title: str
    summary: tuple[str, ...]
    figures: tuple[tuple[str, str, tuple[Chart, ...]], ...]
    points: Table
    failures: Table | None
    constants: tuple[tuple[str, str], ...]


def make_sweep_page(
    rows: Sequence[Row],
    title: str,
    axes: Sequence[str],
    figures: Sequence[str],
    meanings: Mapping[str, str],
) -> SweepPage:
    """The content of the page. Arguments are as in `anonlib.pages.render_sweep`."""
    results = [row for row in rows if not row.get("error")]
    failures = [row for row in rows if row.get("error")]
    shown_axes = [axis for axis in axes if axis != SEED]
    plan = _plan(rows, shown_axes)
    point_axes = [axis for axis in shown_axes if axis in (*plan.panels, *plan.lines, plan.by)]
    constants = [axis for axis in shown_axes if axis not in point_axes] if rows else []
    return SweepPage(
        title=printable(title),
        summary=tuple(_summary(results, failures)),
        figures=tuple(
            (
                speak(f),
                as_sentence(meanings[f]) if meanings.get(f) else "",
                _charts(results, f, plan),
            )
            for f in figures
        ),
        points=_points(results, failures, point_axes, figures, plan.names),
        failures=_failures(failures, shown_axes, plan.names),
        constants=tuple(
            (printable(axis), name_value(_cell(rows[0].get(axis)))) for axis in constants
        ),
    )


@dataclass(frozen=True)
class _Plan:
    """What the axes are used for.

    Attributes:
        by: The axis to plot along.
        lines: The axes with one line per combination of their values.
        panels: The axes with one chart per combination of their values.
        names: The name of each axis on the page.
    """

    by: str
    lines: tuple[str, ...]
    panels: tuple[str, ...]
    names: Mapping[str, str]

    def title(self, axes: Sequence[str], key: Key) -> str:
        """The values of axes in words. Numbers have the names of their axes."""
        pairs = [(self.names[a], v) for a, v in zip(axes, key, strict=True) if v is not None]
        named = [(n, v, name_value(v)) for n, v in pairs]
        return ", ".join(name if isinstance(v, str) else f"{n} {name}" for n, v, name in named)


def _plan(rows: Sequence[Row], axes: Sequence[str]) -> _Plan:
    """Plans what axes with several values are used for: charts plot along the numeric axis with the
    most values, and each case has its own chart."""
    values = {axis: {_cell(row.get(axis)) for row in rows} for axis in axes}

    def numbers(axis: str) -> tuple[bool, int]:
        cells = values[axis]
        return all(isinstance(cell, int | float) for cell in cells), len(cells)

    along = max(axes, key=numbers)
    rest = [axis for axis in axes if axis != along and len(values[axis]) > 1]
    lines = tuple(axis for axis in rest if axis != CASE)
    panels = tuple(axis for axis in rest if axis == CASE)
    return _Plan(along, lines, panels, name_axes(axes))


def name_axes(axes: Sequence[str]) -> dict[str, str]:
    """The name of each axis on a page, in words: the last part of its dotted key, with the one
    before if it is a number; the whole key if two are equal."""
    last = {axis: shorten_key(axis) for axis in axes}
    last |= {axis: "partitioner" for axis in axes if axis == "partition.steps"}
    same = Counter(last.values())
    return {axis: printable(name if same[name] == 1 else axis) for axis, name in last.items()}


def _summary(results: Sequence[Row], failures: Sequence[Row]) -> Iterable[str]:
    yield f"{count_noun(len(results) + len(failures), 'point')} tried."
    if failures:
        yield f"{count_noun(len(failures), 'point')} failed; why stands below."
    n_seeds = len({_cell(row.get(SEED)) for row in results})
    if n_seeds > 1:
        yield f"Means and standard deviations are over {n_seeds} values of {SEED}."
    else:
        yield f"All points have one {SEED}: nothing deviates."
    seconds = [row["seconds"] for row in results if row.get("seconds") is not None]
    if seconds:
        yield f"All took {number(round(sum(seconds)))} seconds of work."


def _charts(rows: Sequence[Row], figure: str, plan: _Plan) -> tuple[Chart, ...]:
    """A chart of a figure for each combination of the values of `plan.panels`."""
    there = [row for row in rows if row.get(figure) is not None]
    # Each chart gets the lines of all charts, so that a line has the same colour everywhere.
    keys = [key for key, _ in _groups(there, plan.lines)]
    groups = _groups(there, plan.panels)[:MAX_CHARTS]
    return tuple(
        _chart(plan.title(plan.panels, key) or speak(figure), group, figure, plan, keys)
        for key, group in groups
    )


def _chart(title: str, rows: Sequence[Row], figure: str, plan: _Plan, keys: Sequence[Key]) -> Chart:
    """A chart of one figure: lines if `plan.by` is numeric, else marks.

    Args:
        title: The title of the chart.
        rows: The points.
        figure: The figure.
        plan: What the axes are used for.
        keys: The values of `plan.lines` of each line, in order.
    """
    series, cells = [], []
    there = dict(_groups(rows, plan.lines))
    for key in keys:
        along = _groups(there.get(key, []), [plan.by])
        points = [(x, *_moments(part, figure)) for (x,), part in along]
        name = plan.title(plan.lines, key) or speak(figure)
        cells += [(name, *point) for point in points]
        numbers = [p for p in points if isinstance(p[0], int | float)]
        x, mean, spreads, _ = zip(*numbers, strict=True) if numbers else ((), (), (), ())
        series.append(Line(name, x, mean, tuple(sd or 0.0 for sd in spreads)))
    by = plan.names[plan.by]
    told = tuple((name, _keep_digits(x), *rest) for name, x, *rest in cells)
    table = Table(title, ("line", by, "mean", "deviation", "points"), told)
    if all(isinstance(cell[1], int | float) for cell in cells):
        spread = "Bands: one standard deviation." if any(any(d.spread) for d in series) else ""
        return draw_lines(title, series, table, by, figure, spread=spread)
    return _marks(title, cells, by)


def _marks(title: str, cells: Sequence[Key], by: str) -> Chart:
    """A chart along an axis of names: one row per name, one mark per line."""
    names = list(dict.fromkeys(str(cell[0]) for cell in cells))
    places = list(dict.fromkeys(cell[1] for cell in cells))
    means = {(cell[1], cell[0]): cell[2] for cell in cells}
    rows = tuple((name_value(p), *[means.get((p, name)) for name in names]) for p in places)
    table = Table(title, (printable(by), *names), rows)
    return draw_bars(title, table) if len(names) == 1 else draw_dots(title, table)


def _points(
    rows: Sequence[Row],
    failures: Sequence[Row],
    axes: Sequence[str],
    figures: Sequence[str],
    names: Mapping[str, str],
) -> Table:
    """A table of the means and deviations of all figures, a row per combination in `axes`. If
    points failed, it tells how many of each row's."""
    lines = []
    n_failed = {key: len(group) for key, group in _groups(failures, axes)}
    for key, group in _groups(rows, axes):
        texts = []
        for figure in figures:
            values = [row[figure] for row in group if row.get(figure) is not None]
            mean, spread, _ = _moments(group, figure) if values else (None, None, 0)
            texts.append(number(mean) + (f" ± {number(spread)}" if spread is not None else ""))
        n = n_failed.get(key, 0)
        told = [f"{n} of {n + len(group)}"] if failures else []
        lines.append((*map(name_value, key), *told, *texts))
    heads = (*(names[axis] for axis in axes), *(["failed"] if failures else []))
    heads = (*heads, *map(speak, figures))
    return Table("Means and deviations", heads, tuple(lines))


def _failures(rows: Sequence[Row], axes: Sequence[str], names: Mapping[str, str]) -> Table | None:
    """A table of errors: one row per error and combination of values in `axes`. None if empty."""
    groups = _groups(rows, (*axes, "error"))
    heads = (*(names[axis] for axis in axes), "points", "error")
    cells = [
        (*map(name_value, key[:-1]), number(len(group)), printable(str(key[-1])))
        for key, group in groups
    ]
    return Table("Points that failed", heads, tuple(cells)) if cells else None


def _moments(rows: Sequence[Row], figure: str) -> tuple[float, float | None, int]:
    """The mean and the standard deviation of a figure (None for one point), and the number of
    points that have it. The order of rows does not matter."""
    values = sorted(float(row[figure]) for row in rows if row.get(figure) is not None)
    return fmean(values), stdev(values) if len(values) > 1 else None, len(values)


def _groups(rows: Iterable[Row], axes: Sequence[str]) -> list[tuple[Key, list[Row]]]:
    """Groups rows by their values on some axes. Groups are sorted, numbers before other values."""

    def key(row: Row) -> Key:
        return tuple(_cell(row.get(axis)) for axis in axes)

    def order(row: Row) -> list[tuple[bool, float, str]]:
        return [
            (not isinstance(k, int | float), k if isinstance(k, int | float) else 0.0, str(k))
            for k in key(row)
        ]

    return [(k, list(group)) for k, group in groupby(sorted(rows, key=order), key)]


def _keep_digits(value: Cell) -> Cell:
    """A cell that no table rounds."""
    text = name_value(value)
    return value if text == number(value) else text


def _cell(value: Any) -> Cell:
    """A value as a cell of a table: None, a number or a text."""
    return value if value is None or isinstance(value, str | int | float) else str(value)

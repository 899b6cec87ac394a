"""What the page of a sweep says, from its rows."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import fmean, stdev
from typing import Any

from anonlib.cli_errors import plain
from anonlib.errors import InputError
from anonlib.measure import Cell
from anonlib.report.charts import Chart, Line, Table, bars, dots, lines
from anonlib.report.measures import MAX_CHARTS
from anonlib.report.words import counted, number, spoken

Row = Mapping[str, Any]
Key = tuple[Cell, ...]


@dataclass(frozen=True)
class SweepPage:
    """All that the page of a sweep shows, in its order."""

    title: str
    summary: tuple[str, ...]
    figures: tuple[tuple[str, tuple[Chart, ...]], ...]
    points: Table
    failed: Table | None
    fixed: tuple[tuple[str, str], ...]


def sweep_page(
    rows: Sequence[Row],
    title: str,
    axes: Sequence[str],
    figures: Sequence[str],
    by: str,
    line: str | None,
    over: Sequence[str],
) -> SweepPage:
    """The page; see `anonlib.report.render_sweep`."""
    unknown = {by, *([] if line is None else [line])} - set(axes)
    if unknown:
        text = f"no axis of the sweep: {', '.join(sorted(unknown))}; there are: {', '.join(axes)}"
        raise InputError(text)
    done = [row for row in rows if not row.get("error")]
    kept = [axis for axis in axes if axis not in over]
    varied = [axis for axis in kept if len({_cell(row.get(axis)) for row in rows}) > 1]
    failed = [row for row in rows if row.get("error")]
    return SweepPage(
        title=plain(title),
        summary=tuple(_summary(done, failed, [a for a in axes if a in over])),
        figures=tuple((spoken(f), _charts(done, f, varied, by, line)) for f in figures),
        points=_points(done, varied or [by], figures),
        failed=_failed(failed, axes),
        fixed=tuple((plain(a), number(_cell(rows[0].get(a)))) for a in kept if a not in varied)
        if rows
        else (),
    )


def _summary(done: Sequence[Row], failed: Sequence[Row], over: Sequence[str]) -> Iterable[str]:
    yield f"{counted(len(done) + len(failed), 'point')} measured."
    if failed:
        yield f"{counted(len(failed), 'point')} failed; why stands below."
    for axis in over:
        n = len({_cell(row.get(axis)) for row in done})
        yield f"Means and standard deviations are over {n} values of {plain(axis)}."
    seconds = [row["seconds"] for row in done if row.get("seconds") is not None]
    if seconds:
        yield f"All took {number(round(sum(seconds)))} seconds of work."


def _charts(
    rows: Sequence[Row], figure: str, varied: Sequence[str], by: str, line: str | None
) -> tuple[Chart, ...]:
    """A chart for each combination of the axes that are neither `by` nor `line`."""
    rest = [axis for axis in varied if axis not in (by, line)]
    # All of them for each chart, so that a name has one colour everywhere.
    names = [key for key, _ in _groups(rows, [line] if line else [])]
    charts: list[Chart] = []
    for key, group in _groups([row for row in rows if row.get(figure) is not None], rest):
        if len(charts) == MAX_CHARTS:
            break
        title = ", ".join(f"{plain(a)} {number(v)}" for a, v in zip(rest, key, strict=True))
        charts.append(_chart(title or spoken(figure), group, figure, by, line, names))
    return tuple(charts)


def _chart(
    title: str,
    rows: Sequence[Row],
    figure: str,
    by: str,
    line: str | None,
    names: Sequence[Key],
) -> Chart:
    """Lines where `by` goes over numbers, else marks; `names` are the values of `line`."""
    drawn, cells = [], []
    there = dict(_groups(rows, [line] if line else []))
    for key in names:
        group = there.get(key, [])
        points = [(x, *_moments(part, figure)) for (x,), part in _groups(group, [by])]
        name = number(key[0]) if key else spoken(figure)
        cells += [(name, *point) for point in points]
        numbers = [p for p in points if isinstance(p[0], int | float)]
        x, mean, spreads, _ = zip(*numbers, strict=True) if numbers else ((), (), (), ())
        drawn.append(Line(name, x, mean, tuple(sd or 0.0 for sd in spreads)))
    heads = (plain(line) if line else "figure", plain(by), "mean", "deviation", "points")
    table = Table(title, heads, tuple(cells))
    if all(isinstance(cell[1], int | float) for cell in cells):
        spread = "Bands: one standard deviation." if any(any(d.spread) for d in drawn) else ""
        return lines(title, drawn, table, by, figure, spread=spread)
    return _marks(title, cells, by)


def _marks(title: str, cells: Sequence[Key], by: str) -> Chart:
    """The means where `by` has names: a row for each, a mark for each line."""
    names = list(dict.fromkeys(str(cell[0]) for cell in cells))
    places = list(dict.fromkeys(cell[1] for cell in cells))
    means = {(cell[1], cell[0]): cell[2] for cell in cells}
    rows = tuple((number(p), *[means.get((p, name)) for name in names]) for p in places)
    table = Table(title, (plain(by), *names), rows)
    return bars(title, table) if len(names) == 1 else dots(title, table)


def _points(rows: Sequence[Row], varied: Sequence[str], figures: Sequence[str]) -> Table:
    """Means and deviations of every figure."""
    found = []
    for key, group in _groups(rows, varied):
        told = []
        for figure in figures:
            values = [row[figure] for row in group if row.get(figure) is not None]
            mean, spread, _ = _moments(group, figure) if values else (None, None, 0)
            told.append(number(mean) + (f" ± {number(spread)}" if spread is not None else ""))
        found.append((*[number(k) for k in key], *told))
    heads = (*map(plain, varied), *map(spoken, figures))
    return Table("All points", heads, tuple(found))


def _failed(rows: Sequence[Row], axes: Sequence[str]) -> Table | None:
    heads = (*map(plain, axes), "error")
    cells = [(*[number(_cell(row.get(a))) for a in axes], plain(str(row["error"]))) for row in rows]
    return Table("Points that failed", heads, tuple(sorted(cells))) if cells else None


def _moments(rows: Sequence[Row], figure: str) -> tuple[float, float | None, int]:
    """Mean, standard deviation (None of one point) and number of the points that have the figure;
    the same in any order of rows."""
    values = sorted(float(row[figure]) for row in rows if row.get(figure) is not None)
    return fmean(values), stdev(values) if len(values) > 1 else None, len(values)


def _groups(rows: Iterable[Row], axes: Sequence[str]) -> list[tuple[Key, list[Row]]]:
    """The rows by their values on some axes, in order."""

    def key(row: Row) -> Key:
        return tuple(_cell(row.get(axis)) for axis in axes)

    def order(row: Row) -> list[tuple[bool, float, str]]:
        return [
            (not isinstance(k, int | float), k if isinstance(k, int | float) else 0.0, str(k))
            for k in key(row)
        ]

    return [(k, list(group)) for k, group in groupby(sorted(rows, key=order), key)]


def _cell(value: Any) -> Cell:
    """A value of the grid as a cell: a number, or a text."""
    return value if value is None or isinstance(value, str | int | float) else str(value)

"""What measures found, as a page shows it: figures in tables, series in charts."""

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, TypeAlias

from anonlib import registry
from anonlib.config.listing import first_paragraph
from anonlib.measure import Measure
from anonlib.pages.charts import Chart, Line, Table, bars, before_after, dots, lines
from anonlib.pages.words import between, first_sentence, spoken
from anonlib.text import printable

Row: TypeAlias = tuple[str, ...]

#: Most drawings of one kind; the others' numbers stand in tables.
MAX_CHARTS = 24
#: The series of a column before and after.
DISTRIBUTION = "distribution"
#: Most columns of a table that stands beside another.
_MOST_COLUMNS = 5
#: Most numbers of a row that one drawing shows.
_MOST_DOTS = 3
#: Most figures that a note names.
_MOST_NAMED = 4
#: The column of figures of the release itself, beside others.
RELEASE = "release"


@dataclass(frozen=True)
class ChartGroup:
    """Charts of one kind, and tables of what is not drawn."""

    title: str
    charts: tuple[Chart, ...]
    tables: tuple[Table, ...]

    @property
    def headed(self) -> bool:
        """Whether the title says what its charts don't."""
        named = [*(c.title for c in self.charts), *(t.caption for t in self.tables)]
        return bool(self.title) and named != [self.title]


@dataclass(frozen=True)
class TableFigure:
    """A figure of the whole table."""

    name: str
    value: float | None
    meaning: str


@dataclass(frozen=True)
class ShownMeasure:
    """A measure's findings: figures of the whole table, a table of the others with what its names
    mean, notes on both, and series. `broad`: they take more room than a column of the page has."""

    name: str
    about: str
    whole: tuple[TableFigure, ...]
    by: Table | None
    meanings: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    parts: tuple[ChartGroup, ...]

    @property
    def broad(self) -> bool:
        columns = 0 if self.by is None else len(self.by.heads)
        return columns > _MOST_COLUMNS or any(len(part.charts) > 1 for part in self.parts)


def show_measures(evaluation: Mapping[str, Any], *, risk: bool) -> tuple[ShownMeasure, ...]:
    """What the measures of risk found, or the others; distributions of columns are left out."""
    found = evaluation.get("measures", {})
    known = registry.plugins("measure")
    risks = {
        type for type, plugin in known.items() if issubclass(plugin, Measure) and plugin.is_risk
    }
    return tuple(_measured(type, found[type]) for type in found if (type in risks) is risk)


def distributions(evaluation: Mapping[str, Any]) -> ChartGroup:
    """The columns before and after, of whichever measures have them."""
    every = [s for found in evaluation.get("measures", {}).values() for s in found["series"]]
    return _part("", [series for series in every if series["name"] == DISTRIBUTION], before_after)


def _measured(type: str, found: Mapping[str, Any]) -> ShownMeasure:
    known = registry.plugins("measure").get(type)
    figures = found["figures"]
    meanings = known.names if known is not None and issubclass(known, Measure) else {}
    whole = [figure for figure in figures if not figure["of"]]
    parts = [figure for figure in figures if figure["of"]]
    series = [series for series in found["series"] if series["name"] != DISTRIBUTION]
    series = sorted(series, key=lambda each: each["name"])
    return ShownMeasure(
        name=spoken(type),
        about="" if known is None else first_sentence(first_paragraph(known)),
        whole=tuple(
            TableFigure(spoken(f["name"]), f["value"], meanings.get(f["name"], "")) for f in whole
        ),
        by=_pivoted(parts),
        meanings=_meanings(parts, meanings),
        notes=_notes(figures),
        parts=tuple(
            _part(spoken(name).capitalize() if name != type else "", list(group), None)
            for name, group in groupby(series, key=lambda each: each["name"])
        ),
    )


def _meanings(
    figures: Sequence[Mapping[str, Any]], meanings: Mapping[str, str]
) -> tuple[tuple[str, str], ...]:
    """Names of figures and what they mean, as the measure has them: once, where several mean the
    same."""
    found = {figure["name"] for figure in figures}
    said: dict[str, list[str]] = {}
    for name, meaning in meanings.items():
        if name in found:
            said.setdefault(meaning, []).append(spoken(name))
    return tuple((", ".join(names), meaning) for meaning, names in said.items())


def _notes(figures: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """What is said of figures: once, with those that it is said of, unless that is all."""
    said: dict[str, list[str]] = {}
    for figure in figures:
        if figure["note"]:
            of = f" of {printable(figure['of'])}" if figure["of"] else ""
            said.setdefault(printable(figure["note"]), []).append(f"{spoken(figure['name'])}{of}")
    return tuple(_noted(note, named, len(figures)) for note, named in said.items())


def _noted(note: str, named: Sequence[str], n_figures: int) -> str:
    if len(named) == n_figures > 1:
        return note
    more = len(named) - _MOST_NAMED
    return f"{', '.join(named[:_MOST_NAMED])}{f' and {more} more' if more > 0 else ''}: {note}"


def _pivoted(figures: Sequence[Mapping[str, Any]]) -> Table | None:
    """A row for each thing that figures are of, a column for each name. Names that are forms of
    another (`raw_accuracy`, `accuracy_loss` of `accuracy`) are columns of rows of that."""
    names = {figure["name"] for figure in figures}
    split = {name: _split(name, names) for name in names}
    apart = any(form for _, form in split.values())
    values: dict[tuple[Row, str], float | None] = {}
    for figure in figures:
        stem, form = split[figure["name"]]
        row = (printable(figure["of"]), *([spoken(stem)] if apart else []))
        values[row, (form or RELEASE) if apart else stem] = figure["value"]
    rows = dict.fromkeys(row for row, _ in values)
    columns = dict.fromkeys(column for _, column in values)
    heads = ("", "score") if apart else ("",)
    cells = tuple((*row, *[values.get((row, column)) for column in columns]) for row in rows)
    return Table("", (*heads, *map(spoken, columns)), cells) if rows else None


def _split(name: str, names: Set[str]) -> tuple[str, str]:
    """The name that a figure's is a form of, and the form; itself where it is none."""
    for form in ("raw", "baseline"):
        if name.removeprefix(f"{form}_") in names - {name}:
            return name.removeprefix(f"{form}_"), form
    stem = name.removesuffix("_loss")
    return (stem, "loss") if stem in names - {name} else (name, "")


def _part(
    title: str,
    series: Sequence[Mapping[str, Any]],
    draw: Callable[[str, Table], Chart] | None,
) -> ChartGroup:
    charts: list[Chart] = []
    tables: list[Table] = []
    for each in series:
        name = printable(each["of"]) or spoken(each["name"]).capitalize()
        table = Table(name, tuple(each["heads"]), tuple(map(tuple, each["rows"])))
        suited = draw or _suited(table)
        if suited is None or len(charts) == MAX_CHARTS or not table.rows:
            tables.append(table)
        else:
            charts.append(suited(name, table))
    return ChartGroup(title, tuple(charts), tuple(tables))


def _suited(table: Table) -> Callable[[str, Table], Chart] | None:
    """How a table is drawn, by what its columns hold; None where it is not."""
    first, *others = zip(*table.rows, strict=True) if table.rows else ((),)
    numeric = [all(not isinstance(cell, str) for cell in column) for column in others]
    if not numeric or not all(numeric):
        return None
    if table.heads[:2] == ("from", "to"):
        return _ranged
    if len(others) > _MOST_DOTS:
        return None
    if all(isinstance(cell, int | float) for cell in first):
        return _lined
    return bars if len(others) == 1 else dots


def _ranged(title: str, table: Table) -> Chart:
    """Bars of the last column over the ranges that the first two give."""
    rows = tuple((between(row[0], row[1]), row[-1]) for row in table.rows)
    chart = bars(title, Table(title, ("range", table.heads[-1]), rows))
    return replace(chart, table=table)


def _lined(title: str, table: Table) -> Chart:
    """Lines over the first column."""
    found = []
    for j, name in enumerate(table.heads[1:], 1):
        points = sorted((row[0], row[j]) for row in table.rows if row[j] is not None)
        x, y = zip(*points, strict=True) if points else ((), ())
        found.append(Line(spoken(name), x, y))
    y_name = table.heads[1] if len(table.heads) == 2 else ""
    return lines(title, found, table, table.heads[0], y_name)

"""Results of measures for a page: figures in tables, series in charts."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, TypeAlias

from anonlib.pages.charts import (
    Chart,
    Line,
    Table,
    draw_bars,
    draw_before_after,
    draw_dots,
    draw_lines,
)
from anonlib.pages.meanings import explain_measure, explain_names, find_kind
from anonlib.pages.specs import Record, find_measure, is_numeric, read_columns, read_findings
from anonlib.pages.words import as_sentence, say_between, speak, take_first_sentence
from anonlib.text import printable

Row: TypeAlias = tuple[str, ...]

#: Most charts of one kind. Further series become tables.
MAX_CHARTS = 24
#: The name of the series with a column's distribution before and after.
DISTRIBUTION = "distribution"
#: Series that the page shows once, in a place of their own.
_ELSEWHERE = (DISTRIBUTION, "class_sizes")
#: Most columns of a table beside another.
_MOST_COLUMNS = 5
#: The same beside a chart, which needs less room.
_MOST_BESIDE = 6
#: Most numbers per row in one drawing.
_MOST_DOTS = 3
#: Most figures named in a note.
_MOST_NAMED = 4
#: The head of the column for the release, beside columns for other forms of its figures.
RELEASE = "release"


@dataclass(frozen=True)
class ChartGroup:
    """Series of one kind.

    Attributes:
        title: The kind; may be empty.
        charts: Charts of the series that are drawn.
        tables: Tables of the other series.
    """

    title: str
    charts: tuple[Chart, ...]
    tables: tuple[Table, ...]

    @property
    def headed(self) -> bool:
        """Whether the title differs from the titles of the charts and tables."""
        named = [*(c.title for c in self.charts), *(t.caption for t in self.tables)]
        return bool(self.title) and named != [self.title]


@dataclass(frozen=True)
class TableFigure:
    """A figure of the whole table.

    Attributes:
        name: The figure, in words.
        value: Its value; None if it is not defined.
        meaning: What it means; may be empty.
    """

    name: str
    value: float | None
    meaning: str


@dataclass(frozen=True)
class ShownMeasure:
    """The findings of a measure.

    Attributes:
        name: The measure, in words.
        about: What it measures, as a sentence.
        of_table: Figures of the whole table.
        by: A table of the other figures; None without any.
        meanings: Names of figures in `by`, and what they mean.
        notes: Notes on all figures.
        parts: Series, grouped by name.
        alone: Whether nothing would stand beside it in a column of the page.
    """

    name: str
    about: str
    of_table: tuple[TableFigure, ...]
    by: Table | None
    meanings: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    parts: tuple[ChartGroup, ...]
    alone: bool = False

    @property
    def n_charts(self) -> int:
        """The number of its charts."""
        return sum(len(part.charts) for part in self.parts)

    @property
    def broad(self) -> bool:
        """Whether the findings need more room than one column of the page."""
        columns = 0 if self.by is None else len(self.by.heads)
        return self.alone or columns > _MOST_COLUMNS or self.n_charts > 0

    @property
    def beside(self) -> bool:
        """Whether its chart and notes stand beside its figures. More charts are below, across the
        page."""
        columns = 0 if self.by is None else len(self.by.heads)
        return columns <= _MOST_BESIDE and self.n_charts <= 1


def show_measures(record: Record, *, risk: bool | None) -> tuple[ShownMeasure, ...]:
    """The findings of measures, without the distributions of columns.

    Args:
        record: The record. It may have nothing but the section `evaluation`.
        risk: Whether to show the measures of risk, else those of utility; None: those of which
            it is not known.
    """
    shown = [
        _show_measure(type, record)
        for type in read_findings(record)
        if find_kind(type, record) is risk
    ]
    # Broad ones last, so that no column of the page ends before them.
    shown.sort(key=lambda each: each.broad)
    n_narrow = sum(not each.broad for each in shown)
    if n_narrow % 2:
        shown[n_narrow - 1] = replace(shown[n_narrow - 1], alone=True)
    return tuple(shown)


def list_distributions(record: Record) -> ChartGroup:
    """The distributions of columns before and after: from measures that give them, and of other
    columns from the overview that every release has."""
    every = [record.get("overview") or {}, *read_findings(record).values()]
    shown = {
        series["of"]: series
        for found in every
        for series in found.get("series", ())
        if series["name"] == DISTRIBUTION
    }
    return _part("", list(shown.values()), draw_before_after)


def find_middles(record: Mapping[str, Any]) -> dict[str, str]:
    """By ordinal column: its middle category before the release, from its distribution. Half of
    the rows are not above it."""
    columns = read_columns(record)
    found = {}
    for each in (record.get("overview") or {}).get("series", ()):
        ordinal = columns.get(each["of"], {}).get("scale") == "ordinal"
        if each["name"] == DISTRIBUTION and ordinal and each["heads"][0] == "category":
            rows = [row for row in each["rows"] if row[0] != "missing"]
            half, below = sum(row[1] for row in rows) / 2, 0.0
            for name, share, *_ in rows:
                below += share
                if below >= half:
                    found[each["of"]] = printable(str(name))
                    break
    return found


def _show_measure(type: str, record: Record) -> ShownMeasure:
    findings, spec = read_findings(record)[type], find_measure(record, type)
    figures = findings["figures"]
    names = explain_names(type, record)
    meanings = {name: _with_values(printable(text), spec) for name, text in names.items()}
    of_table = [figure for figure in figures if not figure["of"]]
    parts = [figure for figure in figures if figure["of"]]
    series = [series for series in findings["series"] if series["name"] not in _ELSEWHERE]
    series = sorted(series, key=lambda each: each["name"])
    notes = _notes(figures)
    if not figures and not findings["series"]:
        notes = ("Nothing was measured: the release has no column that this is about.",)
    return ShownMeasure(
        name=speak(type),
        about=printable(take_first_sentence(explain_measure(type, record))),
        of_table=tuple(
            TableFigure(speak(f["name"]), f["value"], meanings.get(f["name"], "")) for f in of_table
        ),
        by=_pivot(parts),
        meanings=_meanings(parts, meanings),
        notes=notes,
        parts=tuple(
            _part(speak(name).capitalize() if name != type else "", list(group), None)
            for name, group in groupby(series, key=lambda each: each["name"])
        ),
    )


def _with_values(meaning: str, spec: Record) -> str:
    """A meaning in which each parameter is followed by its value, if that is a number. spec: The
    measure and its parameters."""
    values = {name: value for name, value in spec.items() if is_numeric(value)}
    return re.sub(
        r"`(\w+)`", lambda m: f"{m[0]} ({values[m[1]]})" if m[1] in values else m[0], meaning
    )


def _meanings(
    figures: Sequence[Mapping[str, Any]], meanings: Mapping[str, str]
) -> tuple[tuple[str, str], ...]:
    """Names of figures and their meanings, in the measure's order. Names with the same meaning are
    joined."""
    found = {figure["name"] for figure in figures}
    said: dict[str, list[str]] = {}
    for name, meaning in meanings.items():
        if name in found:
            said.setdefault(meaning, []).append(speak(name))
    return tuple((", ".join(names), meaning) for meaning, names in said.items())


def _notes(figures: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """The different notes. Each is with what it is about, unless that is all figures."""
    said: dict[str, list[Mapping[str, Any]]] = {}
    for figure in figures:
        if figure["note"]:
            said.setdefault(printable(figure["note"]), []).append(figure)
    n_of = Counter(figure["of"] for figure in figures)
    return tuple(
        as_sentence(note)
        if len(own) == len(figures) > 1
        else as_sentence(f"About {_name_figures(own, n_of)}: {note}")
        for note, own in said.items()
    )


def _name_figures(figures: Sequence[Mapping[str, Any]], n_of: Mapping[str, int]) -> str:
    """Names of figures, in a line. Where a note is on all figures of a part, the part is named.

    n_of: By part, such as a column: how many figures the measure has.
    """
    own = Counter(figure["of"] for figure in figures)
    names: dict[str, None] = {}
    for figure in figures:
        of = printable(figure["of"])
        is_whole = of and own[figure["of"]] == n_of[figure["of"]] > 1
        names[of if is_whole else f"{speak(figure['name'])}{f' of {of}' if of else ''}"] = None
    more = len(names) - _MOST_NAMED
    return f"{', '.join([*names][:_MOST_NAMED])}{f' and {more} more' if more > 0 else ''}"


def _pivot(figures: Sequence[Mapping[str, Any]]) -> Table | None:
    """A table with one row per part (`of`) and one column per name of figures.

    Names may be forms of another name, as `raw_accuracy` and `accuracy_loss` are forms of
    `accuracy`. Then there is one row per part and such name, and one column per form.
    """
    names = {figure["name"] for figure in figures}
    split = {name: _split(name, names) for name in names}
    apart = any(form for _, form in split.values())
    values: dict[tuple[Row, str], float | None] = {}
    for figure in figures:
        stem, form = split[figure["name"]]
        row = (printable(figure["of"]), *([speak(stem)] if apart else []))
        values[row, (form or RELEASE) if apart else stem] = figure["value"]
    rows = dict.fromkeys(row for row, _ in values)
    columns = dict.fromkeys(column for _, column in values)
    heads = ("", "score") if apart else ("",)
    cells = tuple((*row, *[values.get((row, column)) for column in columns]) for row in rows)
    return Table("", (*heads, *map(speak, columns)), cells) if rows else None


def _split(name: str, names: Set[str]) -> tuple[str, str]:
    """Splits the name of a figure into another figure's name and a form: `raw`, `baseline`, `loss`.
    Without a form, this is the whole name and an empty text."""
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
        name = printable(each["of"]) or speak(each["name"]).capitalize()
        table = Table(name, tuple(each["heads"]), tuple(map(tuple, each["rows"])))
        suited = draw or _suitable_chart(table)
        if suited is None or len(charts) == MAX_CHARTS or not table.rows:
            tables.append(table)
        else:
            charts.append(suited(name, table))
    return ChartGroup(title, tuple(charts), tuple(tables))


def _suitable_chart(table: Table) -> Callable[[str, Table], Chart] | None:
    """The chart that suits the columns of a table; None if none does."""
    first, *others = zip(*table.rows, strict=True) if table.rows else ((),)
    numeric = [all(not isinstance(cell, str) for cell in column) for column in others]
    if not numeric or not all(numeric):
        return None
    if table.heads[:2] == ("from", "to"):
        return _range_chart
    if len(others) > _MOST_DOTS:
        return None
    if all(isinstance(cell, int | float) for cell in first):
        return _line_chart
    return draw_bars if len(others) == 1 else draw_dots


def _range_chart(title: str, table: Table) -> Chart:
    """Bars of the last column; the first two columns are the bounds of ranges."""
    rows = tuple((say_between(row[0], row[1]), row[-1]) for row in table.rows)
    chart = draw_bars(title, Table(title, ("range", table.heads[-1]), rows))
    return replace(chart, table=table)


def _line_chart(title: str, table: Table) -> Chart:
    """Lines: the other columns over the first."""
    found = []
    for j, name in enumerate(table.heads[1:], 1):
        points = sorted((row[0], row[j]) for row in table.rows if row[j] is not None)
        x, y = zip(*points, strict=True) if points else ((), ())
        found.append(Line(speak(name), x, y))
    y_name = table.heads[1] if len(table.heads) == 2 else ""
    return draw_lines(title, found, table, table.heads[0], y_name)

"""What measures found, as a page shows it: figures in tables, series in charts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from anonlib import registry
from anonlib.cli_errors import plain
from anonlib.listing import summary
from anonlib.report.charts import Chart, Line, Table, bars, before_after, dots, lines
from anonlib.report.words import first_sentence, spoken

#: Most drawings of one kind; the others' numbers stand in tables.
MAX_CHARTS = 24
#: The series of a column before and after.
DISTRIBUTION = "distribution"
#: Most columns of a table that stands beside another.
_MOST_COLUMNS = 5
#: Most numbers of a row that one drawing shows.
_MOST_DOTS = 5


@dataclass(frozen=True)
class Part:
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
class Measured:
    """A measure's findings: figures of the whole table, a table of the others, notes on both, and
    series. `broad`: they take more room than a column of the page has."""

    name: str
    about: str
    whole: tuple[tuple[str, float | None], ...]
    by: Table | None
    notes: tuple[str, ...]
    parts: tuple[Part, ...]

    @property
    def broad(self) -> bool:
        columns = 0 if self.by is None else len(self.by.heads)
        return columns > _MOST_COLUMNS or any(len(part.charts) > 1 for part in self.parts)


def measured(evaluation: Mapping[str, Any], *, risk: bool) -> tuple[Measured, ...]:
    """What the measures of risk found, or the others; distributions of columns are left out."""
    found = evaluation.get("measures", {})
    return tuple(_measured(type, found[type]) for type in found if _is_risk(type) is risk)


def distributions(evaluation: Mapping[str, Any]) -> Part:
    """The columns before and after, of whichever measures have them."""
    every = [s for found in evaluation.get("measures", {}).values() for s in found["series"]]
    return _part("", [series for series in every if series["name"] == DISTRIBUTION], before_after)


def _is_risk(type: str) -> bool:
    """Whether it is a measure of this package's folder of risks."""
    known = registry.plugins("measure").get(type)
    return known is not None and known.__module__.startswith("anonlib.risk.")


def _measured(type: str, found: Mapping[str, Any]) -> Measured:
    known = registry.plugins("measure").get(type)
    figures = found["figures"]
    whole = tuple((spoken(f["name"]), f["value"]) for f in figures if not f["of"])
    series = [series for series in found["series"] if series["name"] != DISTRIBUTION]
    series = sorted(series, key=lambda each: each["name"])
    return Measured(
        name=spoken(type),
        about="" if known is None else first_sentence(summary(known)),
        whole=whole,
        by=_pivoted([figure for figure in figures if figure["of"]]),
        notes=tuple(dict.fromkeys(_note(figure) for figure in figures if figure["note"])),
        parts=tuple(
            _part(spoken(name).capitalize() if name != type else "", list(group), None)
            for name, group in groupby(series, key=lambda each: each["name"])
        ),
    )


def _note(figure: Mapping[str, Any]) -> str:
    of = f" of {plain(figure['of'])}" if figure["of"] else ""
    return f"{spoken(figure['name'])}{of}: {plain(figure['note'])}"


def _pivoted(figures: Sequence[Mapping[str, Any]]) -> Table | None:
    """A row for each thing that figures are of, a column for each name."""
    names = list(dict.fromkeys(figure["name"] for figure in figures))
    values = {(figure["of"], figure["name"]): figure["value"] for figure in figures}
    of = dict.fromkeys(figure["of"] for figure in figures)
    rows = tuple((plain(each), *[values.get((each, name)) for name in names]) for each in of)
    return Table("", ("", *map(spoken, names)), rows) if rows else None


def _part(
    title: str,
    series: Sequence[Mapping[str, Any]],
    draw: Callable[[str, Table], Chart] | None,
) -> Part:
    charts: list[Chart] = []
    tables: list[Table] = []
    for each in series:
        name = plain(each["of"]) or spoken(each["name"]).capitalize()
        table = Table(name, tuple(each["heads"]), tuple(map(tuple, each["rows"])))
        suited = draw or _suited(table)
        if suited is None or len(charts) == MAX_CHARTS or not table.rows:
            tables.append(table)
        else:
            charts.append(suited(name, table))
    return Part(title, tuple(charts), tuple(tables))


def _suited(table: Table) -> Callable[[str, Table], Chart] | None:
    """How a table is drawn, by what its columns hold; None where it is not."""
    first, *others = zip(*table.rows, strict=True) if table.rows else ((),)
    numeric = [all(not isinstance(cell, str) for cell in column) for column in others]
    if not numeric or not all(numeric) or len(others) > _MOST_DOTS:
        return None
    if all(isinstance(cell, int | float) for cell in first):
        return _lined
    return bars if len(others) == 1 else dots


def _lined(title: str, table: Table) -> Chart:
    """Lines over the first column."""
    found = []
    for j, name in enumerate(table.heads[1:], 1):
        points = sorted((row[0], row[j]) for row in table.rows if row[j] is not None)
        x, y = zip(*points, strict=True) if points else ((), ())
        found.append(Line(spoken(name), x, y))
    y_name = table.heads[1] if len(table.heads) == 2 else ""
    return lines(title, found, table, table.heads[0], y_name)

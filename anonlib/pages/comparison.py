"""The content of a page that compares two runs, from their private records."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isclose
from typing import Any, TypeAlias

from anonlib.measure import Cell
from anonlib.pages.charts import Table
from anonlib.pages.front import (
    JudgedFigure,
    find_chance,
    judge_risks,
    judge_utilities,
)
from anonlib.pages.meanings import RELATIVE, explain_figure, find_kind
from anonlib.pages.release import describe_released, find_name
from anonlib.pages.secrecy import find_k
from anonlib.pages.specs import (
    Record,
    is_numeric,
    list_models,
    list_verdicts,
    read_columns,
    read_findings,
    read_persons,
    read_verdict_spec,
)
from anonlib.pages.words import number, show_measurement, speak, spell_model, spell_role
from anonlib.text import count_noun, printable, read_worse

Pair: TypeAlias = tuple[float | None, float | None]

#: What the two runs are called, and what is better if neither is.
THIS, OTHER, ALIKE, UNKNOWN = "this run", "other run", "alike", "–"
#: Parts of a model's spec that are names, even if they look like numbers.
_NO_NUMBERS = ("type", "attribute", "within")
#: What the share of suppressed rows means.
SUPPRESSED = "share of the source's rows that are not released; 0 to 1, more is worse"
#: What of a record says how columns and rows of the source were, beside its version.
_TRACES = (("missing", "missing values"), ("categories", "categories"))
#: Settings that say where results go, or that have a table of their own.
_APART = ("columns", "models", "source")


@dataclass(frozen=True)
class ComparisonPage:
    """The content of the page, in order. Parts that are empty or None are left out.

    Attributes:
        title: The title.
        runs: What each run is called, and its id.
        comparable: Whether figures of the two may be compared.
        summary: Sentences.
        glance: For each run: three risks and three utilities, judged.
        notes: What the records can't show.
        settings: Settings that differ.
        columns: Columns that differ.
        models: The privacy models of both, as asked and as counted.
        losses: Losses of both.
        risks: Risks of both, a table for each measure.
        utilities: Figures of utility of both, a table for each measure.
        others: Figures of both of which it is not known whether they are of risk.
    """

    title: str
    runs: tuple[tuple[str, str], ...]
    comparable: bool
    summary: tuple[str, ...]
    glance: tuple[tuple[str, tuple[JudgedFigure, ...]], ...]
    notes: tuple[str, ...]
    settings: Table | None
    columns: Table | None
    models: Table | None
    losses: Table | None
    risks: tuple[Table, ...]
    utilities: tuple[Table, ...]
    others: tuple[Table, ...]


@dataclass(frozen=True)
class _Row:
    """A figure of both runs.

    Attributes:
        table: The table that it is in: a measure.
        name: What it is called there.
        values: Of this run and the other.
        meaning: What it means, with the worse direction.
        better: THIS, OTHER, ALIKE or UNKNOWN.
    """

    table: str
    name: str
    values: Pair
    meaning: str
    better: str


def make_comparison_page(this: Record, other: Record) -> ComparisonPage:
    """The content of the page. The two records are of different runs."""
    reasons = tuple(explain_apart(this, other))
    comparable = not reasons
    uneven = _list_uneven(this, other)
    losses = [*_losses(this, other, comparable=comparable)]
    figures = [*_figures(this, other, uneven, comparable=comparable)]
    risks = [*_chances(this, other, comparable=comparable)]
    risks += [row for is_risk, row in figures if is_risk]
    utilities = [row for is_risk, row in figures if is_risk is False]
    others = [row for is_risk, row in figures if is_risk is None]
    settings, columns = _settings(this, other), _columns(this, other)
    return ComparisonPage(
        title=f"Two runs of {' and '.join(dict.fromkeys(map(find_name, (this, other))))}",
        runs=tuple(zip((THIS, OTHER), _name_runs(this, other), strict=True)),
        comparable=comparable,
        summary=(
            *_summary((this, other), reasons, risks, [*losses, *utilities]),
            f"Settings that differ: {_list_names(settings) or 'none'}.",
            *_say_recoded(this, other, columns),
        ),
        glance=tuple(
            (name, (*judge_risks(record), *judge_utilities(record)))
            for name, record in ((THIS, this), (OTHER, other))
        ),
        notes=(
            *_doubts(this, other, comparable=comparable),
            *[_explain_uneven(name) for name in uneven],
        ),
        settings=settings,
        columns=columns,
        models=_models(this, other),
        losses=_table_losses(losses),
        risks=tuple(_tables(risks)),
        utilities=tuple(_tables(utilities)),
        others=tuple(_tables(others)),
    )


def _name_runs(this: Record, other: Record) -> tuple[str, str]:
    """The ids of two runs, and their tables where both have the same id."""
    first, second = printable(this["run_id"]), printable(other["run_id"])
    if first != second:
        return first, second
    return f"{first} of {find_name(this)}", f"{second} of {find_name(other)}"


def explain_apart(this: Record, other: Record) -> Iterator[str]:
    """Why figures of the two runs can't be compared; nothing if they can."""
    settings = this.get("settings") or {}, other.get("settings") or {}
    if settings[0].get("source") != settings[1].get("source"):
        yield "they read other sources"
    versions = this.get("source_version"), other.get("source_version")
    if versions[0] != versions[1]:
        shown = [printable("none" if v is None else str(v)) for v in versions]
        yield f"they read other versions of the source ({' and '.join(shown)})"
    rows = this.get("n_rows_in"), other.get("n_rows_in")
    if None not in rows and rows[0] != rows[1]:
        yield f"the source had {rows[0]:,} and {rows[1]:,} rows"
    for key, what in _TRACES:
        both = this.get(key) or {}, other.get(key) or {}
        differing = [
            printable(c) for c in both[0] if c in both[1] and _are_apart(both[0][c], both[1][c])
        ]
        if differing:
            yield f"the source had other numbers of {what} in {', '.join(differing)}"
    if names := [printable(name) for name in _other_columns(this, other)]:
        yield f"columns, roles or scales differ: {', '.join(names)}"
    if read_persons(this) != read_persons(other):
        yield "they count persons in other ways"
    for name, record in ((THIS, this), (OTHER, other)):
        released, counted = record.get("n_rows_out"), (record.get("audit") or {}).get("n_rows")
        if released and counted and released != counted:
            yield f"{name} added rows to a table, and its classes are of the whole table"


def _are_apart(this: int | str, other: int | str) -> bool:
    """Whether two counts are of different numbers, however they are coarsened: `<10` is 1 to 9."""
    (low, high), (least, most) = _find_ends(this), _find_ends(other)
    return high < least or most < low


def _find_ends(count: int | str) -> tuple[int, int]:
    return (1, int(count.removeprefix("<")) - 1) if isinstance(count, str) else (count, count)


def _other_columns(this: Record, other: Record) -> list[str]:
    """Columns that have not the same role, scale and kind of hierarchy in both."""

    def measured(record: Record) -> dict[str, tuple[Any, ...]]:
        columns = read_columns(record).items()
        return {n: (c["role"], c.get("scale"), c.get("hierarchy")) for n, c in columns}

    both = measured(this), measured(other)
    names = dict.fromkeys([*both[0], *both[1]])
    return [name for name in names if both[0].get(name) != both[1].get(name)]


def _doubts(this: Record, other: Record, *, comparable: bool) -> Iterator[str]:
    """What the records can't show of what the two have in common."""
    source = [(record.get("settings") or {}).get("source") or {} for record in (this, other)]
    if this.get("source_version") is None and other.get("source_version") is None:
        kind = source[0].get("format")
        if kind != "generator":
            traces = (("n_rows_in", "rows"), *_TRACES)
            same = [what for key, what in traces if key in this and key in other]
            absent = [what for key, what in traces if key not in this or key not in other]
            shown = f"the numbers of {', '.join(same)} agree, but " if same and comparable else ""
            lack = f" A record lacks the numbers of {', '.join(absent)}." if absent else ""
            text = f"The source has no versions: {shown}that the rows are the same is not shown."
            yield f"{text}{lack}"
    if any(each.get("filtered") for each in source):
        yield "Records have no conditions (where): that both runs kept the same rows is not shown."
    hierarchies = _shared_hierarchies(this, other)
    if hierarchies:
        names = ", ".join(map(printable, hierarchies))
        yield f"Records have no hierarchies: that those of {names} are the same is not shown."


def _shared_hierarchies(this: Record, other: Record) -> list[str]:
    both = [read_columns(r) for r in (this, other)]
    return [n for n, c in both[0].items() if c.get("hierarchy") and n in both[1]]


def _list_uneven(this: Record, other: Record) -> tuple[str, ...]:
    """Measures that both runs made with other parameters."""
    labels = [
        {label.partition(" ")[0]: label for label in (r.get("settings") or {}).get("measures", ())}
        for r in (this, other)
    ]
    return tuple(m for m in labels[0] if m in labels[1] and labels[0][m] != labels[1][m])


def _explain_uneven(name: str) -> str:
    return f"The runs made {speak(name)} with other parameters: its figures are not compared."


def _losses(this: Record, other: Record, *, comparable: bool) -> Iterator[_Row]:
    both = this.get("losses") or {}, other.get("losses") or {}
    lost = _share_suppressed(this), _share_suppressed(other)
    if any(lost):
        better = _better(lost, SUPPRESSED) if comparable else UNKNOWN
        yield _Row("losses", "rows suppressed", lost, SUPPRESSED, better)
    relative = RELATIVE if find_k(this) != find_k(other) else ""
    for name in dict.fromkeys([*both[0], *both[1]]):
        values = both[0].get(name), both[1].get(name)
        meaning = explain_figure(f"loss.{name}")
        better = _better(values, meaning) if comparable and name != relative else UNKNOWN
        yield _Row("losses", speak(name), values, meaning, better)


def _share_suppressed(record: Record) -> float | None:
    n_rows, n_lost = record.get("n_rows_in"), record.get("n_suppressed")
    return n_lost / n_rows if n_rows and n_lost is not None else None


def _chances(this: Record, other: Record, *, comparable: bool) -> Iterator[_Row]:
    """The largest chance to be found, which needs no measure."""
    found = find_chance(this), find_chance(other)
    values = (found[0] and found[0].value, found[1] and found[1].value)
    if values != (None, None):
        meaning = explain_figure("reidentification.prosecutor_max")
        better = _better(values, meaning) if comparable else UNKNOWN
        yield _Row("class sizes", "largest chance to be found", values, meaning, better)


def _figures(
    this: Record, other: Record, uneven: Sequence[str], *, comparable: bool
) -> Iterator[tuple[bool | None, _Row]]:
    """Whether it is a risk (None if that is not known), and the row, of every figure of a measure
    that either run made."""
    both = _measures(this), _measures(other)
    for measure in dict.fromkeys([*both[0], *both[1]]):
        is_risk = find_kind(measure, this, other)
        values = [
            {(f["name"], f["of"]): f["value"] for f in found.get(measure, {}).get("figures", ())}
            for found in both
        ]
        for name, of in dict.fromkeys([*values[0], *values[1]]):
            pair = values[0].get((name, of)), values[1].get((name, of))
            if pair == (None, None):
                continue
            meaning = printable(explain_figure(f"{measure}.{name}", this, other))
            fair = comparable and measure not in uneven
            better = _better(pair, meaning) if fair else UNKNOWN
            label = f"{speak(name)}{f' of {printable(of)}' if of else ''}"
            yield is_risk, _Row(speak(measure), label, pair, meaning, better)


def _measures(record: Record) -> dict[str, Record]:
    overview = record.get("overview")
    own = {"overview": overview} if overview else {}
    return {**own, **read_findings(record)}


def _better(values: Pair, meaning: str) -> str:
    """Which of two values is better, by the worse direction that the meaning tells."""
    worse, (a, b) = read_worse(meaning), values
    if not worse or a is None or b is None:
        return UNKNOWN
    if isclose(a, b, rel_tol=1e-9, abs_tol=1e-12):
        return ALIKE
    return THIS if (a < b) is (worse == "more") else OTHER


def _summary(
    both: tuple[Record, Record],
    reasons: Sequence[str],
    risks: Sequence[_Row],
    utilities: Sequence[_Row],
) -> Iterator[str]:
    for name, record in zip((THIS, OTHER), both, strict=True):
        verdicts = (record.get("audit") or {}).get("verdicts", ())
        failing = sum(not v["holds"] and not v.get("at_release") for v in verdicts)
        if failing:
            fails = "does" if failing == 1 else "do"
            yield f"{count_noun(failing, 'privacy model')} of the {name} {fails} not hold."
    if reasons:
        yield f"The figures of these runs can't be compared: {'; '.join(reasons)}."
        yield "They stand side by side, and none is called better."
    else:
        yield _count_better("risk", risks)
        yield _count_better("loss and utility", utilities)


def _say_recoded(this: Record, other: Record, columns: Table | None) -> Iterator[str]:
    """The columns that differ only in how they are released. `explain_apart` names the others."""
    apart = map(printable, _other_columns(this, other))
    if names := _list_names(columns, but=[*apart]):
        yield f"Columns that are released in another way: {names}."


def _list_names(table: Table | None, but: Sequence[str] = ()) -> str:
    """The names in the rows of a table of differences, but for some."""
    return ", ".join(str(row[0]) for row in table.rows if row[0] not in but) if table else ""


def _count_better(what: str, rows: Iterable[_Row]) -> str:
    counts = Counter(row.better for row in rows)
    judged = counts[THIS] + counts[OTHER] + counts[ALIKE]
    if not judged:
        return f"No figure of {what} is there in both."
    figures = count_noun(judged, "figure")
    return (
        f"Of {figures} of {what}, this run is better by {counts[THIS]}, the other by "
        f"{counts[OTHER]}, and {counts[ALIKE]} {'is' if counts[ALIKE] == 1 else 'are'} alike."
    )


def _table_losses(rows: Sequence[_Row]) -> Table | None:
    heads = ("loss", THIS, OTHER, "better", "meaning")
    cells = tuple((r.name, *r.values, r.better, r.meaning) for r in rows)
    return Table("Losses", heads, cells) if cells else None


def _tables(rows: Sequence[_Row]) -> Iterator[Table]:
    for name in dict.fromkeys(row.table for row in rows):
        own = [row for row in rows if row.table == name]
        cells = tuple((r.name, *r.values, r.better, r.meaning) for r in own)
        yield Table(name, ("figure", THIS, OTHER, "better", "meaning"), cells)


def _settings(this: Record, other: Record) -> Table | None:
    """Settings that differ, in words. Models and columns have their own tables."""
    both = [dict(_flatten(record)) for record in (this, other)]
    names = dict.fromkeys([*both[0], *both[1]])
    rows = tuple(
        (name, both[0].get(name, UNKNOWN), both[1].get(name, UNKNOWN))
        for name in names
        if both[0].get(name) != both[1].get(name)
    )
    return Table("Settings that differ", ("setting", THIS, OTHER), rows) if rows else None


def _flatten(record: Record) -> Iterator[tuple[str, str]]:
    settings = record.get("settings") or {}
    yield "models", "; ".join(map(spell_model, list_models(record))) or UNKNOWN
    own = {name: settings.get(name) for name in settings if name not in _APART}
    used = {name: record.get(name) or {} for name in ("accountability", "context")}
    for section, value in ({"source": settings.get("source")} | own | used).items():
        if isinstance(value, Mapping):
            for name, each in value.items():
                yield f"{speak(section)}: {speak(name)}", _text(each)
        elif value not in (None, [], ""):
            yield speak(section), _text(value)
    for name, version in (record.get("software") or {}).items():
        yield f"version of {printable(name)}", printable(str(version))


def _text(value: Any) -> str:
    if isinstance(value, list):
        return "; ".join(printable(str(each)) for each in value) or UNKNOWN
    return number(value) if isinstance(value, bool) else printable(str(value))


def _columns(this: Record, other: Record) -> Table | None:
    """Columns whose role, scale or recoder differ."""
    both = [read_columns(record) for record in (this, other)]
    rows = []
    for name in dict.fromkeys([*both[0], *both[1]]):
        told = [_describe_column(columns.get(name)) for columns in both]
        if told[0] != told[1]:
            rows.append((printable(name), *told))
    return Table("Columns that differ", ("column", THIS, OTHER), tuple(rows)) if rows else None


def _describe_column(column: Record | None) -> str:
    if column is None:
        return "not there"
    parts = [spell_role(column["role"]), column.get("scale", ""), describe_released(column)]
    return ", ".join(filter(None, parts))


def _models(this: Record, other: Record) -> Table | None:
    """Each model of either run: what it asks for, and what the audit counted."""
    both = [dict(_verdicts(record)) for record in (this, other)]
    heads = ("privacy model", THIS, "counted", OTHER, "counted")
    rows: list[tuple[Cell, ...]] = []
    for key in dict.fromkeys([*both[0], *both[1]]):
        cells = [found.get(key, (UNKNOWN, UNKNOWN)) for found in both]
        rows.append((key[0], *cells[0], *cells[1]))
    return Table("Privacy models", heads, tuple(rows)) if rows else None


def _verdicts(record: Record) -> Iterator[tuple[tuple[str, int], tuple[str, str]]]:
    """By model, in words, without its numbers, and its place among those that differ in numbers
    only: its numbers, and what was counted."""
    n_same = Counter[str]()
    for verdict in list_verdicts(record):
        spec = read_verdict_spec(verdict)
        numbers = [n for n in spec if n not in _NO_NUMBERS and is_numeric(spec[n])]
        how = ", ".join(f"{speak(name)} = {spec[name]}" for name in numbers)
        what = spell_model({name: spec[name] for name in spec if name not in numbers})
        n_same[what] += 1
        value = show_measurement(verdict["value"], exact=verdict["exact"])
        holds = "" if verdict["holds"] or verdict.get("at_release") else ", FAILS"
        yield (what, n_same[what]), (how, f"{value}{holds}")

"""The results of a sweep, and their summary: means and deviations over seeds, picked parameters."""

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from statistics import mean, stdev
from typing import TYPE_CHECKING, Any

from anonlib import registry
from anonlib.auditing.report import RISKS, rate_sizes
from anonlib.config.excerpt import shorten_config
from anonlib.config.overrides import put
from anonlib.config.reading import build_config, copy_tree
from anonlib.config.yaml import shorten_key, split_key
from anonlib.errors import ConfigError
from anonlib.measure.scores import ERRORS, Scores
from anonlib.sweeps.file import shorten
from anonlib.sweeps.settings import Pick, Point, PointSettings, SweepFile
from anonlib.text import count_noun, read_worse, write_canonical

if TYPE_CHECKING:
    from anonlib.pages.explorer import BoundLine, Goal

#: Figures of the summary if the sweep names none.
SHOWN = ("accuracy", "f1", "f1_macro", "auc", "rmse", "raw_accuracy", "sse", "nllm")

#: The measures whose figures have the names and the meanings of those of sweeps.
_LIKE = ("loss", "learning", "clustering")
#: Figures that measures name otherwise.
_ALIASES = {"mean_error": "moments.mean", "variance_error": "moments.variance"}

#: Beginnings of texts that spreadsheets take for formulas.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True)
class ResultRow:
    """The result of one point, as stored.

    Attributes:
        key: Identifies the point, its table and the version of anonlib.
        case: The case.
        parameters: Keys of the grid and their values.
        seed: The seed.
        figures: By name: a loss or a score; None if it is not defined. Empty after an error.
        n_rows: Released rows.
        n_cells: Cells.
        least_persons: Persons of the smallest class.
        seconds: The duration of the point.
        error: The error, without raw values; None if the point succeeded.
        sizes: As in `anonlib.sweeps.point_work.Result`.
        n_tried: Rows that were to be released; 0 if that is not known.
        n_table: Rows of the table that they are of; 0 if that is not known.
    """

    key: str
    case: str
    parameters: Mapping[str, Any]
    seed: int
    figures: Mapping[str, float | None]
    n_rows: int = 0
    n_cells: int = 0
    least_persons: int = 0
    seconds: float = 0.0
    error: str | None = None
    sizes: Mapping[int, int] = field(default_factory=dict)
    n_tried: int = 0
    n_table: int = 0

    @property
    def risks(self) -> dict[str, float]:
        """How likely persons of the release are found, by the names of RISKS. Without sizes of
        classes only the largest chance is known."""
        return rate_sizes(self.sizes, self.least_persons)

    def flat(self) -> dict[str, Any]:
        """The result as one flat dict, for CSV and plots."""
        given = self.parameters.items()
        told = {key: value if _is_plain(value) else self.text(key) for key, value in given}
        sizes = {"rows": self.n_rows, "cells": self.n_cells, "least_persons": self.least_persons}
        times = {"seconds": round(self.seconds, 3), "error": self.error}
        return {"case": self.case, **told, "seed": self.seed, **self.figures, **sizes, **times}

    def text(self, key: str) -> str:
        """The value of a parameter as a short text. Empty if the point lacks the parameter."""
        return shorten(self.value(key)) if key in self.parameters else ""

    def value(self, key: str) -> Any:
        """The value of a parameter that is there, without parts that later parameters set."""
        keys, above = [*self.parameters], split_key(key)
        value = self.parameters[key]
        for later in map(split_key, keys[keys.index(key) + 1 :]):
            if later[: len(above)] == above and later != above:
                value = _without(value, later[len(above) :])
        return value


@dataclass(frozen=True)
class SweepResult:
    """All results of a sweep so far.

    Attributes:
        rows: A result per point, in the order of the points.
        n_points: Points of the whole grid, with all seeds.
        n_new: Points that this run tried.
        table: The path of the table of results.
        out: The folder of the results.
        file: The sweep file.
        notes: What readers of the figures should know.
        bases: As in `Sweep`.
    """

    rows: tuple[ResultRow, ...]
    n_points: int
    n_new: int
    table: str
    out: str
    file: SweepFile
    notes: tuple[str, ...] = ()
    bases: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)

    @property
    def n_failed(self) -> int:
        return sum(row.error is not None for row in self.rows)

    def to_dict(self) -> dict[str, Any]:
        """The result as dicts, lists, numbers and texts, for JSON output."""
        counts = {"n_points": self.n_points, "n_new": self.n_new, "n_failed": self.n_failed}
        rows = [row.flat() for row in self.rows]
        return {**counts, "table": self.table, "notes": [*self.notes], "rows": rows}


@dataclass(frozen=True)
class Summary:
    """The means over seeds of one case.

    Attributes:
        case: The case.
        heads: The keys that vary, "seeds", and the figures.
        rows: The cells of each row as texts. If the sweep picks parameters, the last rows are for
            picked parameters.
        n_failed: Points that failed.
    """

    case: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    n_failed: int


def sort_figures(row: ResultRow) -> ResultRow:
    """The row with its figures in an order that is always the same: metrics, scores, others by
    name. A map of Delta keeps no order."""
    known = {name: i for i, name in enumerate([*registry.plugins("metric"), *Scores._fields])}
    pairs = sorted(row.figures.items(), key=lambda pair: (known.get(pair[0], len(known)), pair[0]))
    return replace(row, figures=dict(pairs))


def list_notes(
    points: Iterable[Point], figures: Sequence[str], rows: Sequence[ResultRow]
) -> tuple[str, ...]:
    """Notes for readers of the figures.

    Args:
        points: The points of the sweep.
        figures: The figures that the sweep file names.
        rows: The results so far.
    """
    points = [*points]
    return (*_flattering(points), *_partial(points, rows), *_unknown(figures, rows))


def _flattering(points: Iterable[Point]) -> tuple[str, ...]:
    cases = dict.fromkeys(point.case for point in points if _flatters(point))
    text = (
        "scores are too good, since models are tested on rows whose target the anonymization used "
    )
    text += "(`split: after`)"
    return (f"In {', '.join(cases)}: {text}.",) if cases else ()


def _partial(points: Sequence[Point], rows: Sequence[ResultRow]) -> Iterator[str]:
    """Which figures are of a part of the rows, or of rows that were dealt out."""
    for case in dict.fromkeys(row.case for row in rows):
        known = [(r.n_tried, r.n_table) for r in rows if r.case == case and r.n_tried < r.n_table]
        if known:
            (low, n), (high, _) = min(known), max(known)
            told = f"{low:,}" if low == high else f"{low:,} to {high:,}"
            yield f"In {case}: figures are of {told} of {n:,} rows (`sample` or `learn`)."
    dealt = dict.fromkeys(point.case for point in points if point.settings.controllers > 1)
    if dealt:
        yield f"In {', '.join(dealt)}: each controller's rows were released alone (`controllers`)."


def _unknown(figures: Sequence[str], rows: Sequence[ResultRow]) -> tuple[str, ...]:
    there = {name for row in rows for name in row.figures}
    unknown = [name for name in figures if name not in there]
    if not unknown or not there:
        return ()
    return (f"`figures`: no point has {', '.join(unknown)}; they have {', '.join(sorted(there))}.",)


def _flatters(point: Point) -> bool:
    learn = point.settings.learn
    if learn is None or learn.split != "after" or learn.test != "released":
        return False
    return point.config.needs_target


def summarize_cases(result: SweepResult) -> list[Summary]:
    """A summary per case, in the order of the results."""
    cases = dict.fromkeys(row.case for row in result.rows)
    return [_summary([r for r in result.rows if r.case == c], result.file) for c in cases]


def _summary(rows: Sequence[ResultRow], file: SweepFile) -> Summary:
    keys = dict.fromkeys(key for row in rows for key in row.parameters if key != "learn.folds")
    names = {key: _name_values(rows, key) for key in keys}
    varying = [key for key in keys if len(names[key]) > 1]
    good = [row for row in rows if row.error is None]
    there = dict.fromkeys(name for row in good for name in row.figures)
    figures = [name for name in file.figures or SHOWN if name in there]
    every = _group_rows(rows, varying)
    lines = [
        (
            *[names[key][_identify(group[0], key)] for key in varying],
            *_means(group, figures, len(every[own])),
        )
        for own, group in _group_rows(good, varying).items()
    ]
    if file.pick is not None:
        lines += _pick_rows(good, {key: names[key] for key in varying}, figures, file.pick)
    heads = (*_short_names(varying), "seeds", *figures)
    return Summary(rows[0].case, heads, tuple(lines), len(rows) - len(good))


def _means(group: Sequence[ResultRow], figures: Sequence[str], n_all: int = 0) -> list[str]:
    """The number of seeds, then mean ± standard deviation of each figure.

    n_all: All points of the group, with those that failed.
    """
    seeds = str(len({row.seed for row in group}))
    cells = [f"{seeds}, {n_all - len(group)} failed" if n_all > len(group) else seeds]
    for name in figures:
        values = [v for row in group if (v := row.figures.get(name)) is not None]
        spread = f" ± {_show(stdev(values))}" if len(values) > 1 else ""
        cells.append(f"{_show(mean(values))}{spread}" if values else "")
    return cells


def _show(value: float) -> str:
    """A figure with three decimals; small and large ones with digits that tell them apart."""
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if 0 < abs(value) < 0.01 else f"{value:.3f}"


def _pick_rows(
    rows: Sequence[ResultRow],
    varying: Mapping[str, Mapping[str, str]],
    figures: Sequence[str],
    pick: Pick,
) -> list[tuple[str, ...]]:
    """Rows of means with picked parameters. For each seed, parameters are picked in two ways: by
    the best score in cross-validation, which is fair, and by the best test score, which is an upper
    bound.

    varying: The keys that vary, each with the names of its values.
    """
    parameters = [key for key in varying if key in pick.parameters]
    rest = [key for key in varying if key not in parameters]
    lines = []
    for group in _group_rows(
        [r for r in rows if set(parameters) & set(r.parameters)], rest
    ).values():
        for way, score in (("cross-validated", f"cv_{pick.by}"), ("at maximum", pick.by)):
            best = [_best(same, score) for same in _group_rows(group, ["seed"]).values()]
            if not any(best):  # no score, or nothing to choose among
                continue
            cells = {key: varying[key][_identify(group[0], key)] for key in rest}
            cells |= {key: way for key in parameters if any(key in row.parameters for row in group)}
            means = _means([row for row in best if row is not None], figures)
            lines.append((*[cells.get(key, "") for key in varying], *means))
    return lines


def _best(rows: Sequence[ResultRow], score: str) -> ResultRow | None:
    """The row with the best score, or the first of equal rows. None if a row lacks the score, or
    there are fewer than two rows."""
    values = [row.figures.get(score) for row in rows]
    if len(rows) < 2 or any(value is None for value in values):
        return None
    sign = -1 if score.removeprefix("cv_") in ERRORS else 1
    return max(rows, key=lambda row: sign * (row.figures[score] or 0.0))


def _group_rows(
    rows: Sequence[ResultRow], keys: Sequence[str]
) -> dict[tuple[str, ...], list[ResultRow]]:
    found: dict[tuple[str, ...], list[ResultRow]] = {}
    for row in rows:
        found.setdefault(tuple(_identify(row, key) for key in keys), []).append(row)
    return found


def _identify(row: ResultRow, key: str) -> str:
    """The value of a parameter, or the seed, as a text that no other value has. Empty if the point
    lacks the parameter."""
    if key == "seed":
        return str(row.seed)
    return write_canonical(row.value(key)) if key in row.parameters else ""


def _name_values(rows: Sequence[ResultRow], key: str) -> dict[str, str]:
    """By the identity of each value of a parameter: its short text; where several values would have
    the same, the identity."""
    names = {_identify(row, key): row.text(key) for row in rows}
    same = Counter(names.values())
    return {own: own if same[text] > 1 else text for own, text in names.items()}


def _short_names(keys: Sequence[str]) -> list[str]:
    """The last part of each key, with the one before if it is a number; the whole key if two are
    equal."""
    last = [shorten_key(key) for key in keys]
    return [name if last.count(name) == 1 else key for name, key in zip(last, keys, strict=True)]


def format_markdown(result: SweepResult) -> str:
    """The summaries as Markdown tables."""
    parts = []
    for each in summarize_cases(result):
        lines = [each.heads, tuple("---" for _ in each.heads), *each.rows]
        table = "\n".join(f"| {' | '.join(map(_escape, line))} |" for line in lines)
        failed = f"\n\n{count_noun(each.n_failed, 'point')} failed." if each.n_failed else ""
        parts.append(f"## {_escape(each.case)}\n\n{table}{failed}\n")
    return "\n".join([*parts, *(f"{_escape(note)}\n" for note in result.notes)])


def render_results(result: SweepResult) -> str:
    """The report, as HTML."""
    from anonlib.pages import render_sweep  # this imports matplotlib

    keys = dict.fromkeys(key for row in result.rows for key in row.parameters)
    found = dict.fromkeys(name for row in result.rows for name in row.figures)
    axes = ("case", *keys, "seed")
    bounds, others = _gates(result)
    figures = [name for name in result.file.figures or SHOWN if name in found]
    return render_sweep(
        [*_page_rows(result)],
        title=PurePosixPath(result.out).name,
        axes=axes,
        figures=figures,
        notes=result.notes,
        goals=[*_goals(result.rows, figures, found)],
        bounds=bounds,
        note=others,
        meanings={name: _explain(name) for name in figures},
        fences=[
            axis
            for axis in axes
            if axis == "case" or split_key(axis)[0] in PointSettings.model_fields
        ],
    )


def _page_rows(result: SweepResult) -> Iterator[dict[str, Any]]:
    """The results as the page gets them. Points that differ in the seed only have one config."""
    configs: dict[tuple[str, str], tuple[str, str]] = {}
    alike: dict[tuple[str, str], list[ResultRow]] = {}
    for row in result.rows:
        alike.setdefault((row.case, format_parameters(row.parameters)), []).append(row)
    keys = dict.fromkeys(key for row in result.rows for key in row.parameters)
    names = {key: _name_values(result.rows, key) for key in keys}
    for row in result.rows:
        key = row.case, format_parameters(row.parameters)
        if key not in configs:
            unlike = dict(_list_unlike(row, alike[key], result))
            configs[key] = _config(row, result, unlike), _tell_part(unlike)
        given = row.parameters.items()
        named = {k: names[k][_identify(row, k)] for k, v in given if not _is_plain(v)}
        config, part = configs[key]
        told = {"sizes": row.sizes, "config": config, "part": part}
        yield {**row.flat(), **named, **row.risks, **told}


def _config(row: ResultRow, result: SweepResult, unlike: Mapping[str, str]) -> str:
    """The config of a release by a point, as YAML; empty if the case is not known.

    unlike: As `_list_unlike` gives it.
    """
    tree = _tree(row, result)
    return shorten_config(tree, unlike) if tree else ""


def _tree(row: ResultRow, result: SweepResult) -> dict[str, Any]:
    """The config of a release by a point, as a tree; empty if the case is not known."""
    if row.case not in result.bases:
        return {}
    tree: dict[str, Any] = copy_tree(result.bases[row.case], "", [])
    tree.setdefault("release", {"path": f"{result.out}/release"})
    for key, value in row.parameters.items():
        if split_key(key)[0] not in PointSettings.model_fields:
            put(tree, key, value, key, [])
    return tree


def _list_unlike(
    row: ResultRow, rows: Sequence[ResultRow], result: SweepResult
) -> Iterator[tuple[str, str]]:
    """The places of its config where a release would be another one than the points of a setting,
    and why; an empty reason says that it is plain.

    Args:
        row: A point.
        rows: The points of its setting, one for each seed.
        result: The results.
    """
    if row.case not in result.bases:
        return
    for column in result.file.cases[row.case].derive:
        yield f"attributes.{column}", ""
    if "release" not in result.bases[row.case]:
        yield "release.path", ""
    parts = sorted((own.n_tried, own.n_table) for own in rows if own.n_tried < own.n_table)
    if parts:
        (low, n), (high, _) = parts[0], parts[-1]
        told = f"{low:,}" if low == high else f"{low:,} to {high:,}"
        yield "source", f"the figures are of {told} of {n:,} rows (sample or learn of the sweep)"
    given = {**result.file.cases[row.case].set, **row.parameters}
    if (count := given.get("controllers", result.file.controllers)) > 1:
        yield "partition", f"rows were dealt out to {count} controllers (controllers of the sweep)"


def _tell_part(unlike: Mapping[str, str]) -> str:
    """What the figures of a setting are of, as a sentence; empty if of a release by its config."""
    told = "; ".join(filter(None, unlike.values()))
    return f"A release by this config has other figures: {told}." if told else ""


def _gates(result: SweepResult) -> tuple[list["BoundLine"], str]:
    """The gates of the cases as lines, and a sentence on those that are none."""
    from anonlib.pages.gate_lines import list_gate_lines, list_others

    lines: list[BoundLine] = []
    others: list[str] = []
    first = {row.case: row for row in reversed(result.rows)}
    for case in dict.fromkeys(row.case for row in result.rows):
        tree = _tree(first[case], result)
        if not tree.get("gates"):
            continue
        try:
            config = build_config(tree, None, [])
        except ConfigError:
            others.append(f"those of {case}, whose config is not valid with them")
            continue
        lines += list_gate_lines(config, only=("case", case))
        others += list_others(config)
    named = ", ".join(dict.fromkeys(others))
    text = f"Gates that are not in the chart, since points are not measured by them: {named}."
    return lines, text if others else ""


def _goals(
    rows: Sequence[ResultRow], figures: Sequence[str], others: Iterable[str]
) -> Iterator["Goal"]:
    """What settings of a sweep are chosen by: risks, the figures that the page shows, and all other
    figures of the releases. Those that have no better direction are only told."""
    from anonlib.pages.explorer import Goal
    from anonlib.pages.meanings import RELATIVE

    for name, label in RISKS.items():
        yield Goal(name, label, risk=True, worst=name == "prosecutor_max")
    models = {
        write_canonical([(k, row.value(k)) for k in row.parameters if split_key(k)[0] == "privacy"])
        for row in rows
    }
    for name in dict.fromkeys([*figures, *others]):
        if not name.startswith(("raw_", "baseline_", "cv_")):
            worse = read_worse(_explain(name))
            judged = bool(worse) and (name != RELATIVE or len(models) == 1)
            yield Goal(name, name.replace("_", " "), less=worse != "less", judged=judged)


def _explain(name: str) -> str:
    """The meaning of a figure of a sweep, with the worse direction; empty if it is not known."""
    from anonlib.pages.meanings import explain_figure

    keys = [_ALIASES.get(name, ""), *(f"{family}.{name}" for family in _LIKE)]
    return next(filter(None, map(explain_figure, keys)), "")


def as_csv(result: SweepResult) -> str:
    """All results as CSV, one line each. Texts are escaped so that none is read as a formula."""
    flat = [row.flat() for row in result.rows]
    names = dict.fromkeys(name for row in flat for name in row)
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(map(_no_formula, names))
    writer.writerows([_no_formula(row.get(name, "")) for name in names] for row in flat)
    return out.getvalue()


def format_parameters(parameters: Mapping[str, Any]) -> str:
    """The parameters of a point as stored: JSON, in the order of the grid."""
    return json.dumps(parameters, ensure_ascii=False)


def _without(value: Any, path: Sequence[str]) -> Any:
    """A value without the part at a path. A value that lacks the part stays as it is."""
    head, *rest = path
    if isinstance(value, Mapping):
        kept = {key: part for key, part in value.items() if key != head or rest}
        return {**kept, head: _without(value[head], rest)} if rest and head in value else kept
    if isinstance(value, list) and rest:
        return [_without(part, rest) if str(i) == head else part for i, part in enumerate(value)]
    return value


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float)


def _no_formula(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def _escape(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")

"""A part of a page where settings are chosen by a script: risk against utility, the figures, the
sizes of classes and the YAML of one setting at a time."""

import json
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.resources import files
from itertools import groupby, pairwise
from math import isfinite
from statistics import fmean, stdev
from typing import Any

from markupsafe import Markup

from anonlib.measure import Cell
from anonlib.pages.charts import MARKERS, Chart, Line, Table, draw_lines
from anonlib.pages.measures import MAX_CHARTS
from anonlib.pages.sweep import Row
from anonlib.pages.words import name_value, say_between
from anonlib.text import printable, write_canonical

#: The one script of pages. Their content policy allows no other.
SCRIPT = files("anonlib.pages").joinpath("templates/explore.js").read_text("utf-8")
#: Lower ends of the ranges of sizes of classes.
_SIZES = [m * 10**e for e in range(9) for m in (1, 2, 5)]


@dataclass(frozen=True)
class Goal:
    """A figure that settings are chosen by.

    Attributes:
        name: The key in rows.
        label: Its name in words.
        less: Whether less is better.
        risk: Whether it is a risk, else it is a utility.
        judged: Whether settings are compared by it; else it is only told.
        worst: Whether the largest of a setting's rows is taken, not their mean.
    """

    name: str
    label: str
    less: bool = True
    risk: bool = False
    judged: bool = True
    worst: bool = False


@dataclass(frozen=True)
class BoundLine:
    """A bound on a risk, which is drawn as a line across its axis.

    Attributes:
        goal: The name of the risk.
        value: The bound.
        label: A few words that stand beside the line.
        is_most: Whether it is the most that is allowed, else it is the least.
        only: The key of an axis and a value: the bound is of settings that have it. None: of all.
    """

    goal: str
    value: float
    label: str
    is_most: bool = True
    only: tuple[str, str] | None = None


@dataclass(frozen=True)
class Dimension:
    """What was varied.

    Attributes:
        key: Its key in rows.
        label: Its name in words.
        values: Its values as texts, in the order of the rows.
        fences: Whether settings that differ in it are not compared: another table, another learner.
    """

    key: str
    label: str
    values: tuple[str, ...]
    fences: bool = False


@dataclass(frozen=True)
class Setting:
    """The means of rows that differ in what means are taken over.

    Attributes:
        at: On each axis the place of its value.
        figures: For each goal the mean and the deviation; None where there is none.
        n: Rows without an error.
        n_all: Rows. Where some failed, the figures are of the others, and it is not compared.
        sizes: Ranges of sizes of classes, and the share of rows in them.
        config: YAML.
        error: The error of the first row, if all rows have one.
        tag: Its label in the chart, such as `1 least loss`; empty for most settings.
        part: What its figures are of, if not of a release by its config; empty for most settings.
    """

    at: tuple[int, ...]
    figures: tuple[tuple[float, float | None] | None, ...]
    n: int
    n_all: int
    sizes: tuple[tuple[str, float], ...]
    config: str
    error: str
    tag: str
    part: str


@dataclass(frozen=True)
class Explorer:
    """What the part of the page shows.

    Attributes:
        axes: The axes to choose on.
        goals: The figures, risks first.
        settings: All settings.
        colour: The place of the axis whose values have colours; -1 for none.
        bounds: Lines across the axes of risks.
    """

    axes: tuple[Dimension, ...]
    goals: tuple[Goal, ...]
    settings: tuple[Setting, ...]
    colour: int
    bounds: tuple[BoundLine, ...] = ()
    marks: tuple[str, ...] = field(default=tuple(sign for _, sign in MARKERS), init=False)

    @property
    def data(self) -> Markup:
        """What the script reads, as JSON. No text in it can end its element."""
        known: dict[str, int] = {}
        places = {goal.name: i for i, goal in enumerate(self.goals)}
        told = {
            "axes": [[axis.label, axis.values, axis.fences] for axis in self.axes],
            "goals": [[goal.label, goal.less, goal.risk] for goal in self.goals],
            "colour": self.colour,
            "marks": self.marks,
            "bounds": [
                [places[b.goal], b.value, printable(b.label), b.is_most, *self._find_place(b)]
                for b in self.bounds
                if b.goal in places
            ],
            "settings": [
                {
                    "at": each.at,
                    "figures": [
                        pair and [_trim(pair[0]), _round(pair[1])] for pair in each.figures
                    ],
                    "n": each.n,
                    "of": each.n_all,
                    "sizes": [(name, _round(share)) for name, share in each.sizes],
                    "yaml": _runs(each.config, known),
                    "error": each.error,
                    "tag": each.tag,
                    "part": each.part,
                }
                for each in self.settings
            ],
            "lines": [*known],
        }
        text = json.dumps(told, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        return Markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))

    def _find_place(self, bound: BoundLine) -> tuple[int, ...]:
        """The place of the bound's axis, and that of its value on the axis; empty if the bound
        holds for all settings."""
        for i, axis in enumerate(self.axes):
            if bound.only is not None and axis.key == bound.only[0]:
                return i, axis.values.index(name_value(bound.only[1]))
        return ()

    def charts(self) -> tuple[Chart, ...]:
        """The first risk against the first utility, for readers without scripts: a chart for all
        settings that are compared with each other. A line per value of the axis of colours."""
        place = [
            next(i for i, g in enumerate(self.goals) if g.risk is risk and g.judged)
            for risk in (True, False)
        ]
        done = [each for each in self.settings if all(each.figures[i] for i in place)]
        fences = [i for i, axis in enumerate(self.axes) if axis.fences]

        def key(setting: Setting) -> tuple[int, ...]:
            return tuple(setting.at[i] for i in fences)

        groups = [[*group] for _, group in groupby(sorted(done, key=key), key)]
        return tuple(self._chart(group, place, fences) for group in groups[:MAX_CHARTS])

    def _chart(
        self, group: Sequence[Setting], place: Sequence[int], fences: Sequence[int]
    ) -> Chart:
        risk, utility = (self.goals[i] for i in place)
        points = [tuple((each.figures[i] or (0.0,))[0] for i in place) for each in group]
        whole = [i for i, each in enumerate(group) if each.n == each.n_all]
        found = find_frontier([points[i] for i in whole], less=utility.less)
        best = [whole[i] for i in found]
        colours = [0 if self.colour < 0 else each.at[self.colour] for each in group]
        series = []
        for colour in dict.fromkeys(colours):
            own = [points[i] for i in whole if colours[i] == colour]
            if not own:
                continue
            x, y = zip(*(own[i] for i in find_frontier(own, less=utility.less)), strict=True)
            name = "frontier" if self.colour < 0 else self.axes[self.colour].values[colour]
            series.append(Line(name, x, y))
        heads = (*(axis.label for axis in self.axes), risk.label, utility.label, "frontier")
        rows = tuple(
            (
                *(axis.values[i] for axis, i in zip(self.axes, each.at, strict=True)),
                *points[i],
                "yes" if i in best else "no",
            )
            for i, each in enumerate(group)
        )
        title = ", ".join(self.axes[i].values[group[0].at[i]] for i in fences)
        title = title or f"{utility.label} against {risk.label}".capitalize()
        mine = [b for b in self.bounds if b.goal == risk.name]
        spots = [(b, self._find_place(b)) for b in mine]
        across = [(b.value, b.label) for b, p in spots if not p or group[0].at[p[0]] == p[1]]
        tags = [(p[0], p[1], s.tag) for p, s in zip(points, group, strict=True) if s.tag]
        table = Table(title, heads, rows)
        return draw_lines(title, series, table, risk.label, utility.label, across=across, tags=tags)


def find_frontier(points: Sequence[tuple[float, ...]], *, less: bool) -> list[int]:
    """The places of the points that no other is better than, by risk. Of equal points, all.

    Args:
        points: Risk and utility of each.
        less: Whether less of the utility is better. Less risk always is.
    """
    sign = 1.0 if less else -1.0
    best: list[int] = []
    for i in sorted(range(len(points)), key=lambda i: (points[i][0], sign * points[i][1])):
        last = points[best[-1]] if best else None
        if last is None or sign * points[i][1] < sign * last[1] or points[i] == last:
            best.append(i)
    return best


def make_explorer(
    rows: Sequence[Row],
    axes: Mapping[str, str],
    goals: Sequence[Goal],
    fences: Sequence[str] = (),
    bounds: Sequence[BoundLine] = (),
) -> Explorer | None:
    """The explorer of rows; None unless several settings have a risk and a utility.

    Args:
        rows: One mapping per point: its keys are axes and names of goals, and optionally `sizes`
            (by size of a class: the number of classes), `config` (YAML), `error`, `tag` (a label
            in the chart; the page opens on the first one) and `part` (what its figures are of, if
            not of a release by its config).
        axes: By key: its name in words. Rows that agree on all axes are one setting.
        goals: The figures.
        fences: The axes whose values are not compared.
        bounds: Lines across the axes of risks.
    """
    values = {
        axis: {write_canonical(row.get(axis)): row.get(axis) for row in rows} for axis in axes
    }
    chosen = [axis for axis in axes if len(values[axis]) > 1]
    places = {axis: {own: i for i, own in enumerate(values[axis])} for axis in chosen}
    groups: dict[tuple[int, ...], list[Row]] = {}
    for row in rows:
        at = tuple(places[axis][write_canonical(row.get(axis))] for axis in chosen)
        groups.setdefault(at, []).append(row)
    there = [g for g in goals if any(isinstance(row.get(g.name), int | float) for row in rows)]
    if len({goal.risk for goal in there if goal.judged}) < 2 or len(groups) < 2:
        return None
    there.sort(key=lambda goal: not goal.risk)
    shown = tuple(
        Dimension(axis, axes[axis], tuple(_name_values(values[axis])), axis in fences)
        for axis in chosen
    )
    return Explorer(
        shown,
        tuple(there),
        tuple(_setting(at, group, there) for at, group in groups.items()),
        _find_colour(rows, chosen, fences),
        tuple(bounds),
    )


def hash_of(script: str) -> str:
    """The source expression of an inline script for a content policy."""
    return f"sha256-{b64encode(sha256(script.encode()).digest()).decode()}"


def _name_values(values: Mapping[str, Any]) -> Iterable[str]:
    """The names of an axis's values, all different. values: By a text that no other value has."""
    names = {own: name_value(value) for own, value in values.items()}
    same = Counter(names.values())
    return (printable(own) if same[name] > 1 else name for own, name in names.items())


def _find_colour(rows: Sequence[Row], axes: Sequence[str], fences: Sequence[str]) -> int:
    """The place of an axis of few names: of the kernel's, else of the first."""
    for i, axis in sorted(enumerate(axes), key=lambda pair: not pair[1].startswith("kernel")):
        values: set[Cell] = {row.get(axis) for row in rows}
        named = any(isinstance(value, str) for value in values)
        if named and axis not in fences and len(values) <= len(MARKERS):
            return i
    return -1


def _setting(at: tuple[int, ...], rows: Sequence[Row], goals: Sequence[Goal]) -> Setting:
    good = [row for row in rows if not row.get("error")]
    sizes: Counter[int] = Counter()
    for row in good:
        sizes.update(row.get("sizes") or {})
    return Setting(
        at,
        tuple(
            _moments([v for row in good if (v := row.get(goal.name)) is not None], worst=goal.worst)
            for goal in goals
        ),
        len(good),
        len(rows),
        tuple(_shares(sizes)),
        str(rows[0].get("config") or ""),
        "" if good else printable(str(rows[0].get("error"))),
        next((printable(str(row["tag"])) for row in rows if row.get("tag")), ""),
        next((printable(str(row["part"])) for row in rows if row.get("part")), ""),
    )


def _moments(values: Sequence[float], *, worst: bool) -> tuple[float, float | None] | None:
    """The mean and the deviation, or the largest alone; None without a value."""
    values = [value for value in values if isfinite(value)]
    if not values:
        return None
    if worst:
        return max(values), None
    return fmean(values), stdev(values) if len(values) > 1 else None


def _shares(sizes: Mapping[int, int]) -> Iterable[tuple[str, float]]:
    """Ranges of sizes from the first to the last that has rows, and their shares of all rows."""
    n = sum(size * count for size, count in sizes.items())
    if not n:
        return
    for low, end in pairwise(_SIZES):
        if end > min(sizes) and low <= max(sizes):
            rows = sum(size * count for size, count in sizes.items() if low <= size < end)
            yield say_between(low, end - 1), rows / n


def _runs(text: str, known: dict[str, int]) -> list[tuple[int, int]]:
    """A text as runs of lines. Texts of many settings share most lines.

    known: The place of each line. New lines are added.
    """
    runs: list[tuple[int, int]] = []
    for line in text.removesuffix("\n").split("\n"):
        place = known.setdefault(line, len(known))
        if runs and runs[-1][1] == place:
            runs[-1] = runs[-1][0], place + 1
        else:
            runs.append((place, place + 1))
    return runs


def _round(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.5g}")


def _trim(value: float | None) -> float | None:
    """A figure that the page compares with bounds and other figures: without the last digits only,
    in which sums differ."""
    return None if value is None else float(f"{value:.12g}")

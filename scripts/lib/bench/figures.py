"""Draws the figures of docs/evidence from the tables of its pages.

    scripts/bench figures

Writes docs/images/PAGE.svg for each page; the same page gives the same bytes.
"""

import argparse
import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent))
from _ta_da.plots import line, text

ROOT = Path(__file__).parents[3]
PAGES, IMAGES = ROOT / "docs/evidence", ROOT / "docs/images"
#: A picture is as wide as a phone, so that its letters keep their size there.
WIDTH, FONT = 390, 12
GRID, AXIS = "#e5e5e5", "#555555"
#: Series differ in color and in shape.
BLUE, ORANGE, GREEN, PURPLE, GREY = "#1f5fa8", "#d96f00", "#2e8b40", "#8a4fbf", "#666666"
ROW_HEIGHT, LINE_HEIGHT = 18, 16

Table = list[dict[str, str]]


class Point(NamedTuple):
    """A value at a place, with the ends of its interval."""

    place: float
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Series:
    """Points of one name."""

    name: str
    color: str
    shape: str
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Scale:
    """From values to pixels.

    Attributes:
        ticks: The values that are written on the axis; the first and the last are its ends.
        log: Whether equal ratios are equally far apart.
        form: How a tick is written.
    """

    ticks: tuple[float, ...]
    log: bool = False
    form: Callable[[float], str] = "{:g}".format

    def at(self, value: float, start: float, end: float) -> float:
        """The pixel of a value on an axis between two pixels."""
        low, high, here = (
            (math.log(each) if self.log else each)
            for each in (self.ticks[0], self.ticks[-1], value)
        )
        return start + (end - start) * (here - low) / (high - low)


@dataclass(frozen=True)
class Panel:
    """Lines over a number, or dots beside names.

    Attributes:
        title: What it shows, above it.
        series: The series. Where there are names, a point's place is the number of its row.
        value: The scale of values.
        place: The scale of places.
        names: The rows, from the top.
        unit: What the scale of values counts.
        axis: What the scale of places counts.
        mark: A value that is drawn as a line, such as that of what is compared with.
    """

    title: str
    series: tuple[Series, ...]
    value: Scale
    place: Scale | None = None
    names: tuple[str, ...] = ()
    unit: str = ""
    axis: str = ""
    mark: float | None = None


# --- the tables of a page


def find_table(page: str, head: Sequence[str]) -> Table:
    """The first table whose columns begin so."""
    for found in re.findall(r"(?:^\|.*\n)+", page, re.MULTILINE):
        names, _, *rows = [
            [cell.strip() for cell in row.split("|")[1:-1]] for row in found.splitlines()
        ]
        if names[: len(head)] == list(head):
            return [dict(zip(names, row, strict=True)) for row in rows]
    raise SystemExit(f"figures: the page has no table whose columns begin with {', '.join(head)}")


def numbers(cell: str) -> list[float]:
    """The numbers of a cell: 1,691 is one, 0.0318, 2.2 s are two."""
    return [float(each.replace(",", "")) for each in re.findall(r"\d+(?:,\d{3})*(?:\.\d+)?", cell)]


def point(place: float, cell: str) -> Point:
    """The first number of a cell, and its interval if it has one: as in 0.29 (0.27–0.32)."""
    value, *rest = numbers(cell)
    low, high = rest if "–" in cell else (value, value)
    return Point(place, value, low, high)


def plain(name: str) -> str:
    return name.replace("`", "")


# --- drawing


def draw(title: Sequence[str], panels: Sequence[Panel]) -> str:
    """A picture: title, legend, panels below each other."""
    legend = {each.name: each for panel in panels for each in panel.series}
    parts, y = [], 4.0
    for each in title:
        y += LINE_HEIGHT
        parts.append(f'<g font-weight="bold">{text(8, y, each)}</g>')
    if len(legend) > 1:
        found, y = _legend([*legend.values()], y + LINE_HEIGHT + 4)
        parts += found
    for panel in panels:
        found, y = (_rows if panel.names else _lines)(panel, y + 12)
        parts += found
    height = math.ceil(y + 6)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="{FONT}">'
        f'<title>{" ".join(title)}</title><rect width="100%" height="100%" fill="white"/>'
    )
    return "\n".join([head, *parts, "</svg>", ""])


def _legend(series: Sequence[Series], y: float) -> tuple[list[str], float]:
    parts, x = [], 14.0
    for each in series:
        wide = 30 + 6.8 * len(each.name)
        if x + wide > WIDTH:
            x, y = 14.0, y + LINE_HEIGHT
        parts += [_shape(each, x, y - 4), text(x + 9, y, each.name)]
        x += wide
    return parts, y


def _shape(series: Series, x: float, y: float) -> str:
    corners = {
        "square": [(-4, -4), (4, -4), (4, 4), (-4, 4)],
        "diamond": [(0, -5.5), (5.5, 0), (0, 5.5), (-5.5, 0)],
        "up": [(0, -5), (5, 4), (-5, 4)],
        "down": [(0, 5), (5, -4), (-5, -4)],
    }
    if series.shape == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="{series.color}"/>'
    points = " ".join(f"{x + a:.1f},{y + b:.1f}" for a, b in corners[series.shape])
    return f'<polygon points="{points}" fill="{series.color}"/>'


def _rows(panel: Panel, top: float) -> tuple[list[str], float]:
    """Dots beside names."""
    left, right = 22 + 7 * max(map(len, panel.names)), WIDTH - 24
    y0 = top + (LINE_HEIGHT if panel.title else 0) + 4
    y1 = y0 + ROW_HEIGHT * len(panel.names)
    parts = [text(8, top + 10, panel.title)] if panel.title else []
    for tick in panel.value.ticks:
        x = panel.value.at(tick, left, right)
        parts += [line(x, y0, x, y1, GRID), text(x, y1 + 14, panel.value.form(tick), "middle")]
    if panel.mark is not None:
        x = panel.value.at(panel.mark, left, right)
        parts.append(line(x, y0, x, y1, AXIS, 1, "4 3"))
    for i, name in enumerate(panel.names):
        y = y0 + ROW_HEIGHT * (i + 0.5)
        parts += [line(left, y, right, y, GRID), text(left - 8, y + 4, name, "end")]
    for each in panel.series:
        for at in each.points:
            x = panel.value.at(at.value, left, right)
            parts.append(_shape(each, x, y0 + ROW_HEIGHT * (at.place + 0.5)))
    if not panel.unit:
        return parts, y1 + 18
    return [*parts, text((left + right) / 2, y1 + 30, panel.unit, "middle")], y1 + 34


def _lines(panel: Panel, top: float) -> tuple[list[str], float]:
    """Lines over a number, with intervals."""
    assert panel.place
    left, right, y1 = 48, WIDTH - 24, top + LINE_HEIGHT + 8
    y0 = y1 + 150
    parts = [text(8, top + 10, f"{panel.title}{panel.unit}")]
    for tick in panel.value.ticks:
        y = panel.value.at(tick, y0, y1)
        parts += [line(left, y, right, y, GRID)]
        parts += [text(left - 6, y + 4, panel.value.form(tick), "end")]
    for tick in panel.place.ticks:
        x = panel.place.at(tick, left, right)
        parts += [line(x, y0, x, y0 + 4, AXIS)]
        parts += [text(x, y0 + 17, panel.place.form(tick), "middle")]
    parts.append(line(left, y0, right, y0, AXIS))
    for each in panel.series:
        at = [
            (panel.place.at(p.place, left, right), panel.value.at(p.value, y0, y1))
            for p in each.points
        ]
        corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in at)
        parts.append(
            f'<polyline points="{corners}" fill="none" stroke="{each.color}" stroke-width="2"/>'
        )
        for (x, y), p in zip(at, each.points, strict=True):
            ends = [panel.value.at(end, y0, y1) for end in (p.low, p.high)]
            parts += [line(x, ends[0], x, ends[1], each.color), _shape(each, x, y)]
    parts.append(text((left + right) / 2, y0 + 33, panel.axis, "middle"))
    return parts, y0 + 36


# --- the figures


def draw_kernels(page: str) -> str:
    table = find_table(page, ["kernel", "Census, 1,080 x 13"])
    names = tuple(plain(row["kernel"]) for row in table)
    looks = [(BLUE, "circle"), (ORANGE, "square"), (GREEN, "diamond")]
    columns = [name for name in table[0] if name != "kernel"]
    found: list[list[Series]] = [[], []]
    for column, (color, shape) in zip(columns, looks, strict=True):
        (base,) = (numbers(row[column])[0] for row in table if row["kernel"] == "`mdav`")
        cells = [numbers(row[column]) for row in table]
        for figure, divisor in ((0, base), (1, 1.0)):
            values = [cell[figure] / divisor for cell in cells]
            points = tuple(Point(i, v, v, v) for i, v in enumerate(values))
            found[figure].append(Series(column.partition(",")[0], color, shape, points))
    losses = Scale((0.7, 1, 2, 5, 10, 20, 25), log=True, form=_but(25, 0.7))
    times = Scale((0.01, 0.1, 1, 10, 30), log=True, form=_but(30))
    panels = [
        Panel("Loss", tuple(found[0]), losses, names=names, unit="times the loss of mdav", mark=1),
        Panel("Time", tuple(found[1]), times, names=names, unit="times a plain loop over MDAV"),
    ]
    return draw(["refine loses least, mondrian is the quickest", "(k = 10)"], panels)


def _but(*hidden: float) -> Callable[[float], str]:
    """Writes ticks, but not those that only end the axis."""
    return lambda tick: "" if tick in hidden else f"{tick:g}"


def draw_size(page: str) -> str:
    table = find_table(page, ["rows", "partitioner, kernel", "roles", "time per row"])
    chain = "`kmeans`, `mdav`"
    looks = {
        (chain, "light", False): ("kmeans, mdav", BLUE, "circle"),
        (chain, "light", True): ("the same, a later version", GREEN, "down"),
        ("`mondrian`, `mondrian`", "light", False): ("mondrian, mondrian", ORANGE, "square"),
        (chain, "quickstart", False): ("kmeans, mdav, more roles", PURPLE, "diamond"),
    }
    points: dict[str, list[Point]] = {name: [] for name, _, _ in looks.values()}
    for row in table:
        is_new = "a later version" in row["time per row"]
        name, _, _ = looks[row["partitioner, kernel"], row["roles"], is_new]
        points[name].append(point(numbers(row["rows"])[0], row["time per row"]))
    panel = Panel(
        "",
        tuple(Series(name, *look, tuple(points[name])) for name, *look in looks.values()),
        Scale((0, 10, 20, 30, 40)),
        place=Scale((1, 3, 10, 30, 100), log=True),
        unit="time per row, microseconds",
        axis="rows, millions",
    )
    return draw(["Time per row does not grow with the table"], [panel])


def draw_attacks(page: str) -> str:
    looks = {
        "singling out, all columns": ("singling out", BLUE, "circle"),
        "inference": ("inference", ORANGE, "square"),
        "membership": ("membership", GREEN, "diamond"),
        "linkability": ("linkability", GREY, "up"),
    }
    panels = []
    for name in ("Adult", "census-income-kdd", "The generator's table"):
        part = page.split(f"\n## {name}\n", 1)[1]
        table = find_table(part, ["", "k", "singling out, all columns"])
        mine = [row for row in table if row[""] in ("all columns", "`mdav`")]
        series = tuple(
            Series(label, color, shape, tuple(point(i, row[head]) for i, row in enumerate(mine)))
            for head, (label, color, shape) in looks.items()
        )
        labels = [row["k"] for row in mine]
        places = Scale(tuple(range(len(mine))), form=lambda tick, labels=labels: labels[int(tick)])
        axis = "k (raw: the table as it is)"
        panels.append(
            Panel(
                f"{name}: ", series, Scale((0, 0.25, 0.5, 0.75, 1)), places, unit="risk", axis=axis
            )
        )
    return draw(["What attacks find falls as k grows (mdav)"], panels)


def draw_peers(page: str) -> str:
    table = find_table(page, ["made by", "seconds"])
    names = tuple(plain(row["made by"]).partition(", one")[0] for row in table)

    def panel(column: str, ticks: tuple[float, ...], unit: str) -> Panel:
        points = tuple(point(i, row[column]) for i, row in enumerate(table))
        return Panel(
            "", (Series("", BLUE, "circle", points),), Scale(ticks), names=names, unit=unit
        )

    panels = [
        panel("seconds", (0, 5, 10, 15, 20), "seconds of the call, less is better"),
        panel("classes", (0, 500, 1000, 1500, 2000), "classes, more is finer"),
    ]
    return draw(["Adult by three libraries, k = 10, l = 2"], panels)


def draw_hierarchies(page: str) -> str:
    table = find_table(page, ["k", "ARX", "`peel`"])
    mine = [row for row in table if row["k"].isdigit()]
    looks = {
        "`mondrian`, hierarchy": (PURPLE, "up"),
        "`greedy`": (GREEN, "diamond"),
        "ARX": (ORANGE, "square"),
        "`peel`": (BLUE, "circle"),
    }
    series = tuple(
        Series(plain(head), color, shape, tuple(point(i, row[head]) for i, row in enumerate(mine)))
        for head, (color, shape) in looks.items()
    )
    panel = Panel(
        "",
        series,
        Scale((0.03, 0.05, 0.1, 0.2, 0.5), log=True),
        place=Scale(tuple(range(len(mine))), form=lambda tick: mine[int(tick)]["k"]),
        unit="share of leaves lost",
        axis="k",
    )
    return draw(["peel loses least at every k (Adult)"], [panel])


def draw_papers(page: str) -> str:
    table = find_table(page, ["accuracy", "raw", "`mdav`"])
    kernels = [name for name in table[0] if name not in ("accuracy", "raw")]
    mine = [row for row in table if row["raw"]]  # the others are no accuracies
    panels = [
        Panel(
            row["accuracy"],
            (Series("", BLUE, "circle", tuple(point(i, row[k]) for i, k in enumerate(kernels))),),
            Scale((0.75, 0.8, 0.85, 0.9, 0.95, 1)),
            names=tuple(map(plain, kernels)),
            unit="accuracy; dashed: learned from raw rows" if row is mine[-1] else "",
            mark=numbers(row["raw"])[0],
        )
        for row in mine
    ]
    return draw(["Models that learn from releases, k = 50"], panels)


FIGURES: Mapping[str, Callable[[str], str]] = {
    "kernels": draw_kernels,
    "size": draw_size,
    "attacks": draw_attacks,
    "peers": draw_peers,
    "hierarchies": draw_hierarchies,
    "papers": draw_papers,
}


def main() -> None:
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    for name, figure in FIGURES.items():
        page = (PAGES / f"{name}.md").read_text("utf-8")
        (IMAGES / f"{name}.svg").write_text(figure(page), "utf-8")
        print(f"docs/images/{name}.svg")


if __name__ == "__main__":
    main()

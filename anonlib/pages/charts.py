"""Charts: a drawing, its legend, and the table of its numbers.

All charts are as wide as a phone. Wider screens show several side by side.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator

from anonlib.measure import Cell
from anonlib.pages.svg import FILL, INK, LINES, MUTED, PAPER, RULE, make_drawing
from anonlib.pages.words import number, shorten_label, speak, spell_percent
from anonlib.text import count_noun, printable

Row: TypeAlias = Sequence[Cell]

#: Marks that distinguish lines, in addition to colours: (matplotlib's marker, the legend's sign).
MARKERS = (
    *(("o", "●"), ("s", "■"), ("^", "▲"), ("D", "◆")),
    *(("v", "▼"), ("P", "✚"), ("*", "★"), ("p", "⬟")),
)
#: Most categories in one drawing. The table of the chart has all.
MAX_CATEGORIES = 14
#: The first head of a table whose rows are ranges of numbers, in order.
RANGE = "range"
#: Height of a category in a drawing, in units of its width.
_BAND = 22
_HEIGHT = 200


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        caption: Its title.
        heads: A head per column.
        rows: A cell per column each. The first cell names the row.
    """

    caption: str
    heads: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True)
class Chart:
    """A drawing with its legend and its table.

    Attributes:
        title: Its title.
        axes: The quantities on the axes, such as "classes by rows".
        svg: The drawing.
        table: All numbers of the drawing.
        legend: For each line: the number of its colour from 1, its mark, its name.
        note: What the drawing leaves out, and what its bands are.
    """

    title: str
    axes: str
    svg: Markup
    table: Table
    legend: tuple[tuple[int, str, str], ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Line:
    """A line of a chart.

    Attributes:
        name: Its name in the legend.
        x: n positions.
        mean: n values.
        spread: n deviations; empty for a line without a band.
    """

    name: str
    x: tuple[float, ...]
    mean: tuple[float, ...]
    spread: tuple[float, ...] = ()


def draw_bars(title: str, table: Table) -> Chart:
    """Horizontal bars for the first MAX_CATEGORIES rows. The second cell of a row is the length."""
    rows = table.rows[:MAX_CATEGORIES]
    values = [_value(row[1]) for row in rows]

    def draw(ax: Axes) -> None:
        _categories(ax, [row[0] for row in rows])
        ax.barh(range(len(rows)), np.nan_to_num(values), 0.66, color=FILL)
        ax.xaxis.set_visible(False)
        ax.spines["bottom"].set_visible(False)
        top = max(np.nan_to_num(values), default=0.0) or 1.0
        low = min(0.0, *np.nan_to_num(values)) if rows else 0.0
        ax.set_xlim(low, low + (top - low) * 1.25)
        for i, row in enumerate(rows):
            ax.text(max(0.0, np.nan_to_num(values[i])) + top * 0.02, i, number(row[1]), va="center")

    said = "; ".join(f"{shorten_label(row[0])}: {number(row[1])}" for row in rows[:5])
    more = "; …" if len(table.rows) > 5 else ""
    axes = _axes(table.heads[1], table.heads[0])
    svg = make_drawing(f"Bar chart, {title}, {axes}. {said}{more}", _height(rows), draw)
    return Chart(title, axes, svg, table, note=_left_out(table))


def draw_before_after(title: str, table: Table) -> Chart:
    """The distribution of a column before and after.

    Args:
        title: The title of the chart.
        table: Each row has a category or a range, its share before, and its share after. If the
            first head is RANGE, the chart is a histogram, else it has horizontal bars.
    """
    if table.heads[0] == RANGE:
        return _ranges_before_after(title, table)
    rows = table.rows[:MAX_CATEGORIES]

    def draw(ax: Axes) -> None:
        _categories(ax, [row[0] for row in rows])
        places = np.arange(len(rows))
        ax.barh(places, [_zero(row[2]) for row in rows], 0.66, color=FILL)
        source = [_zero(row[1]) for row in rows]
        ax.vlines(source, places - 0.42, places + 0.42, color=INK, linewidth=2)
        _percents(ax.xaxis)
        ax.set_xlim(left=0)

    label = f"Bar chart, shares of {title} before and after. {_largest(table.rows)}"
    return Chart(
        title, "", make_drawing(label, _height(rows) + 18, draw), table, note=_left_out(table)
    )


def _ranges_before_after(title: str, table: Table) -> Chart:
    rows, n = table.rows, len(table.rows)

    def draw(ax: Axes) -> None:
        ax.bar(range(n), [_zero(row[2]) for row in rows], 1.0, color=FILL, ec=PAPER, lw=0.5)
        edges = np.arange(n + 1) - 0.5
        ax.stairs([_zero(row[1]) for row in rows], edges, color=INK, linewidth=1.6)
        ticks = [0, (n - 1) // 2, n - 1] if n > 4 else [*range(n)]
        if any(len(number(rows[i][0])) > 13 for i in ticks):
            ticks = [0, n - 1]
        ax.set_xticks(ticks, [shorten_label(rows[i][0]) for i in ticks])
        if n > 4 or len(ticks) == 2:  # keep the outer labels within the axis
            ax.get_xticklabels()[0].set_horizontalalignment("left")
            ax.get_xticklabels()[-1].set_horizontalalignment("right")
        _percents(ax.yaxis)
        ax.set_xlim(-0.5, n - 0.5)
        ax.set_ylim(bottom=0)
        _plain_ticks(ax)

    label = f"Histogram, shares of {title} before and after. {_largest(rows)}"
    return Chart(title, "", make_drawing(label, _HEIGHT, draw), table)


def draw_dots(title: str, table: Table) -> Chart:
    """A horizontal line for each of the first MAX_CATEGORIES rows, with a mark per number."""
    rows, names = table.rows[:MAX_CATEGORIES], table.heads[1 : len(LINES) + 1]

    def draw(ax: Axes) -> None:
        _categories(ax, [row[0] for row in rows])
        ax.hlines(range(len(rows)), 0, 1, transform=ax.get_yaxis_transform(), color=RULE, lw=1)
        for j, (marker, _) in enumerate(MARKERS[: len(names)]):
            values = [_value(row[j + 1]) for row in rows]
            ax.plot(values, range(len(rows)), marker, color=LINES[j], markersize=8, mec=PAPER)
        ax.xaxis.set_major_locator(MaxNLocator(5))
        ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: number(float(f"{x:.6g}"))))
        ax.spines["bottom"].set_visible(False)

    said = "; ".join(
        f"{shorten_label(row[0])}: {', '.join(_name_bars(names, row[1:]))}"
        for row in rows[:MAX_CATEGORIES]
    )
    svg = make_drawing(f"Dot plot, {title}. {said}", _height(rows) + 24, draw)
    return Chart(title, "", svg, table, _legend(names), _left_out(table))


def draw_lines(
    title: str,
    series: Sequence[Line],
    table: Table,
    x_name: str,
    y_name: str,
    *,
    spread: str = "",
    across: Sequence[tuple[float, str]] = (),
    tags: Sequence[tuple[float, float, str]] = (),
) -> Chart:
    """Lines over numbers, with their spreads as bands.

    The x axis is logarithmic if all x are positive and the largest is at least 20 times the
    smallest.

    Args:
        title: The title of the chart.
        series: The lines. Only the first `len(LINES)` are drawn.
        table: All numbers.
        x_name: What the x axis is.
        y_name: What the y axis is; may be empty.
        spread: A sentence that explains the bands; may be empty.
        across: Values of x at which a thin line stands, each with its label.
        tags: Points with a label: x, y and the label.
    """
    drawn_lines = series[: len(LINES)]
    x_all = [*(x for line in drawn_lines for x in line.x), *(x for x, _ in across)]

    def draw(ax: Axes) -> None:
        for j, line in enumerate(drawn_lines):
            mean, around = np.array(line.mean), np.array(line.spread)
            if len(around) and np.any(around > 0):
                ax.fill_between(
                    line.x, mean - around, mean + around, color=LINES[j], alpha=0.18, lw=0
                )
            marker = MARKERS[j][0] if len(line.x) <= 25 else None
            ax.plot(line.x, mean, color=LINES[j], marker=marker, markersize=5, **_stroke(j))
        _annotate(ax, across, tags)
        if min(x_all, default=0) > 0 and max(x_all) >= 20 * min(x_all):
            ax.set_xscale("log")
            ax.minorticks_off()
            if len(set(x_all)) <= 6:
                ax.set_xticks(sorted(set(x_all)))
            elif max(x_all) <= 200 * min(x_all):  # powers of ten would give too few ticks
                ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        elif len(set(x_all)) == 1:  # ticks around it would be of values that nothing has
            ax.set_xticks(x_all[:1])
        ax.yaxis.set_major_locator(MaxNLocator(5))
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_formatter(FuncFormatter(lambda x, _: number(float(f"{x:.6g}"))))
        ax.grid(axis="y", linewidth=0.8)
        ax.set_axisbelow(True)
        _plain_ticks(ax)

    label = f"Line chart, {title} by {printable(x_name)}. {'; '.join(map(_course, drawn_lines))}"
    left_out = len(series) - len(drawn_lines)
    notes = [spread] if spread else []
    if left_out:
        notes.append(f"{count_noun(left_out, 'more line', 'more lines')} in the table.")
    legend = _legend([line.name for line in drawn_lines]) if len(series) > 1 else ()
    svg = make_drawing(label, _HEIGHT, draw)
    return Chart(title, _axes(y_name, x_name), svg, table, legend, " ".join(notes))


def _annotate(
    ax: Axes, across: Sequence[tuple[float, str]], tags: Sequence[tuple[float, float, str]]
) -> None:
    """Draws labelled lines across the x axis, and labels of points."""
    for x, text in across:
        ax.axvline(x, color=MUTED, linewidth=0.8)
        high = ax.get_xaxis_transform()
        ax.text(x, 1, f"{text} ", transform=high, rotation=90, ha="right", va="top", fontsize=9)
    for i, (x, y, text) in enumerate(sorted(tags)):  # above and below in turn: they may be near
        ax.plot([x], [y], "o", color=INK, markersize=9, fillstyle="none")
        at, side = (0, 8 - 16 * (i % 2)), "top" if i % 2 else "bottom"
        points = "offset points"
        ax.annotate(text, (x, y), at, textcoords=points, ha="center", va=side, fontsize=9)


def _stroke(j: int) -> dict[str, Any]:
    """The stroke of line j. All lines but the first are dashed, so that covered lines are seen."""
    return {"linewidth": 1.8, "linestyle": "-" if j == 0 else (0, (6 - j % 3 * 2, 2))}


def _categories(ax: Axes, names: Sequence[Cell]) -> None:
    """Labels the rows on the left, the first on top."""
    ax.set_yticks(range(len(names)), [shorten_label(name) for name in names])
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.spines["left"].set_visible(False)
    _plain_ticks(ax)
    for text in ax.get_yticklabels():
        text.set_color(INK)


def _plain_ticks(ax: Axes) -> None:
    ax.tick_params(left=False, bottom=False, labelcolor=MUTED)


def _percents(axis: Axis) -> None:
    axis.set_major_locator(MaxNLocator(4))
    axis.set_major_formatter(FuncFormatter(lambda x, _: spell_percent(round(x, 9))))
    axis.grid(linewidth=0.8)
    axis.axes.set_axisbelow(True)


def _axes(y: str, x: str) -> str:
    return f"{speak(y)} by {speak(x)}".lstrip()


def _legend(names: Sequence[str]) -> tuple[tuple[int, str, str], ...]:
    pairs = zip(MARKERS, names, strict=False)
    return tuple((j, mark, printable(name)) for j, ((_, mark), name) in enumerate(pairs, 1))


def _height(rows: Sequence[Row]) -> float:
    return _BAND * max(len(rows), 1) + 12


def _left_out(table: Table) -> str:
    n = len(table.rows) - MAX_CATEGORIES
    return f"{n} more in the table." if n > 0 else ""


def _largest(rows: Sequence[Row]) -> str:
    """The three rows with the largest shares before, in words."""
    top = sorted(rows, key=lambda row: -_zero(row[1]))[:3]
    told = [
        f"{shorten_label(r[0])}: {spell_percent(_zero(r[1]))}, then {spell_percent(_zero(r[2]))}"
        for r in top
    ]
    return "; ".join(told)


def _name_bars(names: Sequence[str], values: Sequence[Cell]) -> list[str]:
    return [f"{printable(n)} {number(v)}" for n, v in zip(names, values, strict=False)]


def _course(line: Line) -> str:
    """The first and the last point of a line, in words."""
    if not line.x:
        return printable(line.name)
    ends = [f"{number(line.mean[i])} at {number(line.x[i])}" for i in (0, -1)]
    return f"{printable(line.name)}: from {' to '.join(ends)}"


def _value(cell: Cell) -> float:
    return float("nan") if cell is None or isinstance(cell, str) else float(cell)


def _zero(cell: Cell) -> float:
    return float(np.nan_to_num(_value(cell)))

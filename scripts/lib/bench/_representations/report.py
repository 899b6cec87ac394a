"""Tables and pictures of the experiment's results, like the paper's figures 3 to 5."""

from collections.abc import Mapping
from pathlib import Path
from statistics import mean, stdev
from typing import NamedTuple

from _ta_da.plots import line, svg, text

from _representations.tables import REPRESENTATIONS

COLORS = dict(zip(REPRESENTATIONS, ("#1f5fa8", "#e07b00", "#3a9a4b", "#c03030"), strict=True))
WIDTH, HEIGHT, TOP = 300, 220, 40


class Key(NamedTuple):
    """A network of a seed, trained on the k-anonymous `trained` (1: the table as it is) in the
    representation `learned`, and tested on the k-anonymous table in the representation `told`."""

    table: str
    kernel: str
    trained: int
    learned: str
    k: int
    told: str
    seed: int


#: k -> representation -> scores by seed
Chart = dict[int, dict[str, list[float]]]


def dead(done: Mapping[Key, float]) -> set[tuple[int, str, int]]:
    """Training and seed of the networks that are constant even on the table that they were trained
    on, since nothing passes their rectifiers."""
    return {
        (key.trained, key.learned, key.seed)
        for key, score in done.items()
        if (key.k, key.told) == (key.trained, key.learned) and score == 0.5
    }


def charts(done: Mapping[Key, float]) -> dict[tuple[int, str], Chart]:
    """The results of a table, by the training of networks."""
    found: dict[tuple[int, str], Chart] = {}
    order = [*REPRESENTATIONS]
    for key in sorted(done, key=lambda key: (key.trained, order.index(key.learned), key.k)):
        chart = found.setdefault((key.trained, key.learned), {})
        chart.setdefault(key.k, {}).setdefault(key.told, []).append(done[key])
    return found


def told(found: dict[tuple[int, str], Chart]) -> str:
    """Means and standard deviations over seeds; at how many k > 1 each is first, second, ..."""
    lines = []
    for (trained, learned), chart in found.items():
        lines += ["", f"trained on {_name(trained)}, {learned}"]
        lines.append(f"{'k':>6}" + "".join(f"{name:>18}" for name in COLORS))
        places = {name: [0] * len(COLORS) for name in COLORS}
        for k, scores in chart.items():
            cells = [f"{mean(v):.4f} ± {_spread(v):.4f}" if v else "" for v in _all(scores)]
            lines.append(f"{k:>6}" + "".join(f"{cell:>18}" for cell in cells))
            means = {name: mean(v) for name, v in scores.items()}
            if k > 1 and max(means.values()) > min(means.values()):
                for name in means:
                    places[name][sum(other > means[name] for other in means.values())] += 1
        lines.append(f"{'places':>6}" + "".join(f"{n!s:>18}" for n in places.values()))
    return "\n".join(lines)


def draw(found: dict[tuple[int, str], Chart], title: str, path: Path) -> None:
    """Draws a chart for each kind of training."""
    scores = [mean(v) for chart in found.values() for at in chart.values() for v in at.values()]
    low, high = min(scores) - 0.02, max(scores) + 0.02
    parts = [svg(WIDTH * len(found), TOP + HEIGHT), text(10, 15, title)]
    for i, (name, color) in enumerate(COLORS.items()):
        parts += [line(10 + 120 * i, 30, 30 + 120 * i, 30, color, 2), text(35 + 120 * i, 34, name)]
    for i, ((trained, learned), chart) in enumerate(found.items()):
        parts.append(text(WIDTH * i + 50, TOP + 12, f"trained on {_name(trained)}, {learned}"))
        parts += _chart(chart, WIDTH * i + 50, low, high)
    path.write_text("\n".join([*parts, "</svg>"]), encoding="utf-8")


def _chart(chart: Chart, left: int, low: float, high: float) -> list[str]:
    ks = sorted(chart)
    right, bottom, top = left + WIDTH - 65, TOP + HEIGHT - 35, TOP + 20
    step = (right - left) / max(1, len(ks) - 1)

    def y(score: float) -> float:
        return bottom - (bottom - top) * (score - low) / (high - low)

    parts = [line(left, bottom, right, bottom, "black"), line(left, top, left, bottom, "black")]
    for tick in range(5):
        score = low + (high - low) * tick / 4
        parts.append(line(left, y(score), right, y(score), "#e5e5e5"))
        parts.append(text(left - 4, y(score) + 4, f"{score:.2f}", "end"))
    for at, k in enumerate(ks):  # a number at every second
        if at % 2 == 0:
            parts.append(text(left + step * at, bottom + 14, str(k), "middle"))
    parts.append(text((left + right) / 2, bottom + 28, "k", "middle"))
    for name, color in COLORS.items():
        points = [(left + step * at, chart[k][name]) for at, k in enumerate(ks) if name in chart[k]]
        corners = " ".join(f"{x:.1f},{y(mean(v)):.1f}" for x, v in points)
        parts.append(
            f'<polyline points="{corners}" fill="none" stroke="{color}" stroke-width="2"/>'
        )
        if name == "proportional":  # the paper, too, shows the spread of this one only
            for x, v in points:
                ends = [y(max(low, min(high, mean(v) + s * _spread(v)))) for s in (-1, 1)]
                parts.append(line(x, ends[0], x, ends[1], color))
    return parts


def _all(scores: dict[str, list[float]]) -> list[list[float]]:
    return [scores.get(name, []) for name in COLORS]


def _spread(values: list[float]) -> float:
    return stdev(values) if len(values) > 1 else 0.0


def _name(trained: int) -> str:
    return "raw" if trained == 1 else f"k = {trained}"

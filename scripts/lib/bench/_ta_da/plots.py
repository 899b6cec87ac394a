"""Pictures of the experiment's results, like the paper's figures 8 to 13, as SVG."""

from collections.abc import Sequence
from pathlib import Path
from statistics import mean, stdev

from _ta_da.results import Key, Result, by_seed

COLORS = {
    "raw": "#777777",
    "mondrian": "#1f5fa8",
    "target_tree+mondrian": "#e07b00",
    "target_clusters+mondrian": "#e07b00",
    "plain_tree+mondrian": "#3a9a4b",
    "paper_clusters+mondrian": "#3a9a4b",
    "coded_clusters+mondrian": "#8a4fbf",
}
WIDTH, HEIGHT, LEFT, TOP = 330, 210, 55, 40


def draw(results: list[Result], metrics: tuple[str, ...], folder: Path) -> list[Path]:
    """One picture for each table and protocol: a row of charts for each l, a column for each
    metric. Bars are standard deviations over seeds."""
    paths = []
    groups = sorted({(r.key.task, r.key.dataset, r.key.protocol) for r in results})
    for task, dataset, protocol in groups:
        mine = [r for r in results if r.key[:2] == (task, dataset) and r.key.protocol == protocol]
        sizes = sorted({r.key.l for r in mine} - {0})
        charts = [
            _chart(by_seed(mine, metric), l, metric, column * WIDTH, TOP + row * HEIGHT)
            for row, l in enumerate(sizes)  # noqa: E741
            for column, metric in enumerate(metrics)
        ]
        size = len(metrics) * WIDTH, TOP + len(sizes) * HEIGHT
        title = " ".join(part for part in (dataset, task, protocol) if part)
        names = sorted({r.key.method for r in mine}, key=[*COLORS].index)
        parts = [svg(*size), text(10, 15, title), *_legend(names), *charts, "</svg>"]
        path = folder / f"{'_'.join(title.split())}.svg"
        path.write_text("\n".join(parts), encoding="utf-8")
        paths.append(path)
    return paths


def svg(width: int, height: int) -> str:
    """The beginning of a picture."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="11"><rect width="100%" height="100%" fill="white"/>'
    )


def _legend(names: Sequence[str]) -> list[str]:
    parts, x = [], 10.0
    for name in names:
        parts += [line(x, 28, x + 20, 28, COLORS[name], 2), text(x + 24, 32, name)]
        x += 40 + 6.5 * len(name)
    return parts


def _chart(found: dict[Key, dict[int, float]], l: int, metric: str, left: int, top: int) -> str:  # noqa: E741
    mine = {key: [*by.values()] for key, by in found.items() if key.l in (0, l)}
    ks = sorted({key.k for key in mine} - {0})
    ends = [mean(v) + side * _spread(v) for v in mine.values() for side in (-1, 1)]
    low, high = min(ends) - 0.01, max(ends) + 0.01
    x0, x1, y0, y1 = left + LEFT, left + WIDTH - 15, top + HEIGHT - 35, top + 15

    def x(k: int) -> float:
        return x0 + (x1 - x0) * (ks.index(k) + 0.5) / len(ks)

    def y(value: float) -> float:
        return y0 + (y1 - y0) * (value - low) / (high - low)

    parts = [line(x0, y0, x1, y0, "black"), line(x0, y0, x0, y1, "black")]
    parts += [text(x(k), y0 + 14, str(k), "middle") for k in ks]
    parts += [text((x0 + x1) / 2, y0 + 28, f"k (l = {l})", "middle"), text(x0, y1 - 4, metric)]
    for tick in range(5):
        value = low + (high - low) * tick / 4
        parts.append(text(x0 - 5, y(value) + 4, f"{value:.2f}", "end"))
        parts.append(line(x0, y(value), x1, y(value), "#e5e5e5"))
    for method, color in COLORS.items():
        points = [(key.k, v) for key, v in mine.items() if key.method == method]
        if method == "raw":
            parts += [line(x0, y(mean(v)), x1, y(mean(v)), color, 1, "4 3") for _, v in points]
            continue
        if not points:
            continue
        at = [(x(k), y(mean(v))) for k, v in sorted(points)]
        corners = " ".join(f"{a:.1f},{b:.1f}" for a, b in at)
        parts.append(
            f'<polyline points="{corners}" fill="none" stroke="{color}" stroke-width="2"/>'
        )
        for k, v in points:
            ends = [y(mean(v) + side * _spread(v)) for side in (-1, 1)]
            parts.append(line(x(k), ends[0], x(k), ends[1], color))
    return "\n".join(parts)


def _spread(values: list[float]) -> float:
    return stdev(values) if len(values) > 1 else 0.0


def line(
    x1: float, y1: float, x2: float, y2: float, color: str, width: int = 1, dash: str = "none"
) -> str:
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {ends} stroke="{color}" stroke-width="{width}" stroke-dasharray="{dash}"/>'


def text(x: float, y: float, label: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{label}</text>'

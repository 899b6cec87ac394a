"""Tables of the experiment's results."""

from statistics import mean, stdev

from scipy.stats import t

from _ta_da.results import Result, by_seed

BASELINE = "mondrian"


def means(results: list[Result], metrics: tuple[str, ...]) -> str:
    """Mean and standard deviation over seeds, by table, protocol, l, k and method."""
    found = {metric: by_seed(results, metric) for metric in metrics}
    lines = [_line("mean ± sd", "n", metrics)]
    for key in found[metrics[0]]:
        cells = []
        for metric in metrics:
            values = [*found[metric][key].values()]
            spread = stdev(values) if len(values) > 1 else 0.0
            cells.append(f"{mean(values):.3f} ± {spread:.3f}")
        lines.append(_line(_name(key), str(len(values)), cells))
    return "\n".join(lines)


def differences(results: list[Result], metrics: tuple[str, ...]) -> str:
    """The lead of each method over Mondrian alone, paired by seed, with a 95 % interval (Student's
    t): + or - if 0 is outside."""
    found = {metric: by_seed(results, metric) for metric in metrics}
    lines = [_line(f"ahead of {BASELINE}, 95 %", "n", metrics)]
    for key in found[metrics[0]]:
        base = key._replace(method=BASELINE)
        if key.method == BASELINE or base not in found[metrics[0]]:
            continue
        seeds = sorted(found[metrics[0]][key].keys() & found[metrics[0]][base].keys())
        if len(seeds) < 2:
            continue
        cells = []
        for metric in metrics:
            pairs = [found[metric][key][s] - found[metric][base][s] for s in seeds]
            half = float(t.ppf(0.975, len(pairs) - 1)) * stdev(pairs) / len(pairs) ** 0.5
            sign = "+" if mean(pairs) > half else "-" if mean(pairs) < -half else " "
            cells.append(f"{mean(pairs):+.3f} ± {half:.3f} {sign}")
        lines.append(_line(_name(key), str(len(seeds)), cells))
    return "\n".join(lines)


def _name(key: tuple) -> str:  # type: ignore[type-arg]
    _, dataset, k, l, method, protocol, _ = key  # noqa: E741
    size = f"k={k:<2} l={l}" if k else ""
    return f"{dataset:9}{protocol:9}{size:9} {method}"


def _line(name: str, n: str, cells: tuple[str, ...] | list[str]) -> str:
    return f"{name:52} {n:>3}  " + "  ".join(f"{cell:>18}" for cell in cells)

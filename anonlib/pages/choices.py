"""The page of a suggestion: loss against risk, the choices, all attempts."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from anonlib.auditing.report import RISKS, THRESHOLD
from anonlib.config.dump import make_tree
from anonlib.config.excerpt import shorten_config
from anonlib.config.model import Config
from anonlib.pages import render_explorer
from anonlib.pages.charts import Table
from anonlib.pages.explorer import BoundLine, Goal, make_explorer
from anonlib.pages.gate_lines import REGULATORS, list_gate_lines, list_others
from anonlib.text import printable

GOALS = (
    Goal("risk", "risk", risk=True),
    *(Goal(name, label, risk=True) for name, label in RISKS.items() if name != "marketer"),
    Goal("loss", "loss"),
    Goal("n_suppressed", "rows suppressed"),
    Goal("seconds", "seconds"),
)


class ShownAttempt(Protocol):
    """An attempt, as a page shows it."""

    @property
    def kernel(self) -> str: ...
    @property
    def k(self) -> int: ...
    @property
    def loss(self) -> float | None: ...
    @property
    def risk(self) -> float: ...
    @property
    def risks(self) -> Mapping[str, float]: ...
    @property
    def seconds(self) -> float: ...
    @property
    def n_suppressed(self) -> int: ...
    @property
    def sizes(self) -> Mapping[int, int]: ...
    @property
    def error(self) -> str: ...
    @property
    def config(self) -> Config: ...


class ShownChoice(Protocol):
    """A choice, as a page shows it."""

    @property
    def name(self) -> str: ...
    @property
    def reason(self) -> str: ...
    @property
    def config(self) -> Config: ...


def render_suggestion(
    choices: Sequence[ShownChoice],
    attempts: Sequence[ShownAttempt],
    frontier: Sequence[ShownAttempt],
    notes: Sequence[str],
    config: Config,
) -> str:
    """The page, as HTML. It is private: the figures are of the raw table. Configs are without what
    may be data or a secret, as `shorten_config` writes them.

    Args:
        choices: The suggested configs.
        attempts: All attempts.
        frontier: Those that no other is better than in loss and risk.
        notes: Sentences for the summary.
        config: The config whose gates are drawn.
    """
    tags = [(c.config, f"{i} {c.name}") for i, c in enumerate(choices, 1)]
    names = ("kernel", "k", "risk", "loss", "n_suppressed", "seconds", "sizes", "error")
    given = [
        {name: getattr(a, name) for name in names}
        | {**a.risks}
        | {
            "config": _excerpt(a.config),
            "tag": next((tag for config, tag in tags if config == a.config), ""),
        }
        for a in attempts
    ]
    bounds = [*_list_bounds(config)]
    risk = Goal("risk", "1 / k" if config.unit else "mean chance to be found", risk=True)
    goals = (risk, *GOALS[1:])
    explorer = make_explorer(given, {"kernel": "kernel", "k": "k"}, goals, bounds=bounds)
    note = "Risk is the mean chance to be found, or 1 / k with a unit; loss is the metric ncp over "
    note += "all rows of the sample, and a suppressed row counts as 1."
    if config.privacy.suppress == "costliest":
        note += (
            " A release suppresses the costliest rows, and its ncp counts them by the cells that "
        )
        note += "they were in: so it is smaller."
    note += (
        f" {REGULATORS}: EMA Policy 0070 and Health Canada allow a chance of {THRESHOLD}; of a "
        "release for the public they ask that the largest chance is within it."
    )
    if others := list_others(config):
        note += f" Not in the chart, since attempts are not measured by it: {', '.join(others)}."
    return render_explorer(
        "suggestion.html",
        explorer,
        choices=[(c.name, c.reason, _excerpt(c.config)) for c in choices],
        table=_list_attempts(attempts, frontier),
        notes=notes,
        note=note,
    )


def _list_attempts(attempts: Sequence[ShownAttempt], frontier: Sequence[ShownAttempt]) -> Table:
    best = {id(each) for each in frontier}
    heads = ("kernel", "k", "risk", "loss", "frontier", "seconds", "error")
    rows = tuple(
        (
            a.kernel,
            a.k,
            a.risk,
            a.loss,
            "yes" if id(a) in best else "no",
            round(a.seconds, 2),
            printable(a.error) or "none",
        )
        for a in attempts
    )
    return Table("All attempts", heads, rows)


def _excerpt(config: Config) -> str:
    return shorten_config(make_tree(config))


def _list_bounds(config: Config) -> Iterator[BoundLine]:
    """The lines of the gates, and that of the threshold. Where both are one, it is a gate's."""
    gates = [*list_gate_lines(config, {"marketer": "risk"})]
    yield from gates
    for goal in ("risk", "prosecutor_max"):
        if not any(g.goal == goal and g.value == THRESHOLD and g.is_most for g in gates):
            yield BoundLine(goal, THRESHOLD, f"{THRESHOLD} {REGULATORS}")

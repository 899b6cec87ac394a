"""The page of a suggestion: loss against risk, the choices, all attempts."""

from collections.abc import Sequence
from typing import Protocol

from anonlib.pages import environment
from anonlib.pages.charts import Line, Table, lines
from anonlib.text import printable


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
    def seconds(self) -> float: ...
    @property
    def error(self) -> str: ...


class ShownChoice(Protocol):
    """A choice, as a page shows it."""

    @property
    def name(self) -> str: ...
    @property
    def reason(self) -> str: ...
    @property
    def config_yaml(self) -> str: ...


def render_suggestion(
    choices: Sequence[ShownChoice],
    attempts: Sequence[ShownAttempt],
    frontier: Sequence[ShownAttempt],
    notes: Sequence[str],
) -> str:
    """The page, as HTML. It is private: the figures are of the raw table.

    Args:
        choices: The suggested configs.
        attempts: All attempts.
        frontier: Those that no other is better than in loss and risk.
        notes: Sentences for the summary.
    """
    done = [each for each in attempts if each.loss is not None]
    series = []
    for kernel in dict.fromkeys(each.kernel for each in done):
        points = sorted((a.risk, a.loss or 0.0) for a in done if a.kernel == kernel)
        x, y = zip(*points, strict=True)
        series.append(Line(kernel, x, y))
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
    table = Table("All attempts", heads, rows)
    chart = lines(
        "Loss against risk",
        series,
        table,
        "risk: mean chance to be found, or 1 / k with a unit",
        "loss (ncp)",
    )
    return (
        environment()
        .get_template("suggestion.html")
        .render(choices=choices, chart=chart if done else None, table=table, notes=notes)
    )

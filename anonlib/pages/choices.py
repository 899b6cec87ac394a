"""The page of a suggestion: loss against risk, the choices, all attempts."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from anonlib.pages import render_explorer
from anonlib.pages.charts import Table
from anonlib.pages.explorer import Goal, make_explorer
from anonlib.text import printable

GOALS = (
    Goal("risk", "risk", risk=True),
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
    def seconds(self) -> float: ...
    @property
    def n_suppressed(self) -> int: ...
    @property
    def sizes(self) -> Mapping[int, int]: ...
    @property
    def error(self) -> str: ...
    @property
    def config_yaml(self) -> str: ...


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
    names = ("kernel", "k", "risk", "loss", "n_suppressed", "seconds", "sizes", "error")
    given = [{n: getattr(a, n) for n in names} | {"config": a.config_yaml} for a in attempts]
    explorer = make_explorer(given, {"kernel": "kernel", "k": "k"}, GOALS)
    note = "Risk is the mean chance to be found, or 1 / k with a unit; loss is the metric ncp."
    return render_explorer(
        "suggestion.html", explorer, choices=choices, table=table, notes=notes, note=note
    )

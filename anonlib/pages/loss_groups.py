"""Losses of a release for a page, grouped by what they look at."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from anonlib import registry
from anonlib.config.listing import take_first_paragraph
from anonlib.loss import Metric, Subject
from anonlib.pages.charts import Table
from anonlib.pages.words import raise_first_letter, speak, take_first_sentence
from anonlib.text import printable, read_worse

#: The titles of groups, in order.
_TITLES: Mapping[Subject, str] = {
    "all": "All quasi-identifiers",
    "numbers": "Numbers, dates and ranks",
    "categories": "Categories",
    "classes": "Sizes of cells",
    "target": "The target",
}


@dataclass(frozen=True)
class Loss:
    """The value of a metric.

    Attributes:
        meaning: What it measures, and its range.
        value: Its value.
        share: The length of its bar: the value if it is in [0, 1), else None. 1 has no bar, since
            other scales begin there.
        worse: The worse direction, as a sentence says it; empty if there is none.
        name: The metric, in words.
    """

    meaning: str
    value: float
    share: float | None
    worse: str
    name: str


@dataclass(frozen=True)
class LossGroup:
    """Losses that look at the same.

    Attributes:
        title: What they look at.
        losses: The losses.
    """

    title: str
    losses: tuple[Loss, ...]


def group_losses(losses: Mapping[str, float | None]) -> tuple[LossGroup, ...]:
    """The losses that have a value, by what they look at."""
    metrics = {name: _find_metric(name) for name in losses}
    groups = []
    for subject, title in _TITLES.items():
        own = tuple(
            _loss(name, value)
            for name, value in losses.items()
            if value is not None and _subject(metrics[name]) == subject
        )
        if own:
            groups.append(LossGroup(title, own))
    return tuple(groups)


def explain_absent(losses: Mapping[str, float | None]) -> Iterator[str]:
    """Sentences about the losses that have no value."""
    for name, value in losses.items():
        if value is None:
            metric = _find_metric(name)
            why = metric.undefined if metric is not None else "it has no value"
            yield f"The loss {speak(name)} is not computable: {printable(why)}."


def tabulate_columns(losses: Mapping[str, Mapping[str, float]]) -> Table | None:
    """A table of losses by column."""
    columns = dict.fromkeys(column for found in losses.values() for column in found)
    rows = tuple((printable(c), *[found.get(c) for found in losses.values()]) for c in columns)
    return Table("Losses by column", ("column", *map(speak, losses)), rows) if rows else None


def _loss(name: str, value: float) -> Loss:
    metric = _find_metric(name)
    meaning = "" if metric is None else metric.meaning
    if metric is not None and not meaning:
        meaning = take_first_sentence(take_first_paragraph(metric))
    worse = read_worse(meaning)
    said = f"{worse} is worse"
    meaning = meaning.removesuffix(said).rstrip(" ,;")
    share = value if 0 <= value < 1 else None
    return Loss(raise_first_letter(meaning), value, share, said if worse else "", speak(name))


def _subject(metric: type[Metric] | None) -> Subject:
    return "all" if metric is None else metric.subject


def _find_metric(name: str) -> type[Metric] | None:
    known = registry.plugins("metric").get(name)
    return known if known is not None and issubclass(known, Metric) else None

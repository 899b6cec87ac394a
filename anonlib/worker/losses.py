"""The losses of a release, from the states of its metrics."""

from collections.abc import Callable, Sequence
from functools import partial
from math import isfinite
from typing import TypeVar

from anonlib import registry
from anonlib.arrays import Floats
from anonlib.loss import Metric
from anonlib.registry import run_plugin
from anonlib.table.schema import Schema
from anonlib.worker.task import Task

Result = TypeVar("Result")

#: The significant digits of a figure. Sums of floats agree in them, whichever blocks share a task.
DIGITS = 12


def _round(value: float | None) -> float | None:
    """The value of a figure as records have it; None for one that is not finite, as in `Figure`."""
    if value is None or not isfinite(value):
        return None
    return float(f"{value:.{DIGITS}g}")


def _ask_metrics(
    task: Task, states: Sequence[Floats | None], ask: Callable[[Metric, Floats], Result]
) -> dict[str, Result | None]:
    """By metric: what it says of its merged state; None without a state."""
    metrics: list[Metric] = [registry.build("metric", spec) for spec in task.metrics]
    return {
        metric.type: None if state is None else run_plugin(metric, partial(ask, metric, state))
        for metric, state in zip(metrics, states, strict=True)
    }


def rate_losses(task: Task, states: Sequence[Floats | None]) -> dict[str, float | None]:
    """The losses of merged states, by metric."""
    return _ask_metrics(task, states, lambda metric, state: _round(metric.value(state)))


def describe_losses(task: Task, states: Sequence[Floats | None]) -> tuple[str, ...]:
    """What the notes of the release say about merged states."""
    texts = _ask_metrics(task, states, lambda metric, state: metric.describe(state))
    return tuple(text for text in texts.values() if text)


def rate_losses_by_column(
    task: Task, states: Sequence[Floats | None], schema: Schema
) -> dict[str, dict[str, float]]:
    """By column name: the values of the metrics that have figures of numeric columns. Those that
    are not finite are left out."""
    names = []
    for e in task.encodings:
        if not e.nominal:
            name = schema.by_id(e.id).name
            names += [name, f"{name} is missing"][: len(e.widths)]

    def name_figures(metric: Metric, state: Floats) -> dict[str, float] | None:
        figures = metric.by_column(state)
        if figures is None:
            return None
        pairs = zip(names, map(_round, figures.tolist()), strict=True)
        return {name: figure for name, figure in pairs if figure is not None}

    found = _ask_metrics(task, states, name_figures)
    return {name: figures for name, figures in found.items() if figures is not None}

"""The losses of a release, from the states of its metrics."""

from collections.abc import Sequence

from anonlib import registry
from anonlib.arrays import Floats
from anonlib.table.schema import Schema
from anonlib.worker.task import Task

#: The significant digits of a figure. Sums of floats agree in them, whichever blocks share a task.
DIGITS = 12


def _round(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def value_losses(task: Task, states: Sequence[Floats | None]) -> dict[str, float | None]:
    """The losses of merged states, by metric."""
    metrics = [registry.build("metric", spec) for spec in task.metrics]
    values = [
        None if state is None else metric.value(state)
        for metric, state in zip(metrics, states, strict=True)
    ]
    return {
        metric.type: None if value is None else _round(value)
        for metric, value in zip(metrics, values, strict=True)
    }


def describe_losses(task: Task, states: Sequence[Floats | None]) -> tuple[str, ...]:
    """What the notes of the release say about merged states."""
    texts = [
        None if state is None else registry.build("metric", spec).describe(state)
        for spec, state in zip(task.metrics, states, strict=True)
    ]
    return tuple(text for text in texts if text)


def value_losses_by_column(
    task: Task, states: Sequence[Floats | None], schema: Schema
) -> dict[str, dict[str, float]]:
    """By column name: the values of the metrics that have figures of numeric columns."""
    names = []
    for e in task.encodings:
        if not e.nominal:
            name = schema.by_id(e.id).name
            names += [name, f"{name} is missing"][: len(e.widths)]
    found = {}
    for spec, state in zip(task.metrics, states, strict=True):
        figures = None if state is None else registry.build("metric", spec).by_column(state)
        if figures is not None:
            found[spec["type"]] = dict(zip(names, map(_round, figures.tolist()), strict=True))
    return found

"""The audit: independent verification of a released table.

It counts again what the kernels promise, in Spark or in memory, and with its own code. Nothing
here imports kernels, partitioners, recoders or blocks.
"""

from collections import Counter
from collections.abc import Set
from dataclasses import replace

from anonlib.auditing.audit import audit_parts, audit_table
from anonlib.auditing.in_memory import audit_in_memory
from anonlib.auditing.report import (
    EACH_CONTROLLER,
    AuditReport,
    AuditSpec,
    Persons,
    Verdict,
)
from anonlib.auditing.verdicts import list_labels, round_sizes

#: The note of a verdict that follows from the parts of a table.
BY_PARTS = "persons were counted in every part when it was added, not in the whole table"


def by_parts(table: AuditReport, batch: AuditReport) -> AuditReport:
    """Completes the report on a table that rows were added to.

    If a model could not be verified on the whole table, its verdict follows from the two parts of
    the table. If both parts hold the model, so does the table: its classes are unions of classes of
    the parts, and every model is monotone.

    Args:
        table: The report on the whole table.
        batch: The report on the added rows, where persons were counted. The caller guarantees that
            the earlier rows held the same models, with persons counted.
    """
    labels = {verdict.model for verdict in batch.verdicts if verdict.holds}
    return replace(table, verdicts=tuple(_complete(verdict, labels) for verdict in table.verdicts))


def _complete(table: Verdict, labels: Set[str]) -> Verdict:
    if not table.note or table.n_failing or table.model not in labels:
        return table
    return replace(table, holds=True, value=table.required, exact=False, note=BY_PARTS)


def join_reports(prior: AuditReport, batch: AuditReport, spec: AuditSpec) -> AuditReport | None:
    """The report on a table that rows were added to, from those on its two parts.

    If both parts hold the models, so does the table: its classes are classes of a part, or unions
    of such, and every model is monotone. This is not true of models that compare classes with the
    whole table.

    Args:
        prior: The report on the rows that are published.
        batch: The report on the added rows.
        spec: The spec of the table. Verdicts on other models are left out.

    Returns:
        The report, with the verdicts on the rows of each data controller where both parts have
        them; None if a part did not pass, or was not audited for all of the spec.
    """
    both = [{verdict.model: verdict for verdict in part.verdicts} for part in (prior, batch)]
    labels = list_labels(spec)
    audited = all(each.keys() >= {*labels} for each in both)
    # Not those of controllers with own models: the parts name only how many there are.
    apart = [f"{EACH_CONTROLLER}: {label}" for label in labels]
    labels += [label for label in apart if all(label in each for each in both)]
    passed = prior.passed and batch.passed
    if not audited or not passed or prior.insensitive != batch.insensitive:
        return None
    sizes = Counter(dict(prior.sizes)) + Counter(dict(batch.sizes))
    return AuditReport(
        n_rows=prior.n_rows + batch.n_rows,
        n_classes=prior.n_classes + batch.n_classes,
        verdicts=tuple(_worse(*[each[label] for each in both]) for label in labels),
        problems=(),
        sizes=tuple(sorted(round_sizes(sizes).items())),
        insensitive=prior.insensitive,
        lone={name: n + prior.lone.get(name, 0) for name, n in batch.lone.items()},
        by_batch=True,
    )


def _worse(one: Verdict, other: Verdict) -> Verdict:
    """The verdict on two parts that hold: the value nearer to the required one, a bound for the
    whole."""
    known = [each.value for each in (one, other) if each.value is not None]
    nearest = min(known, key=lambda value: abs(value - one.required), default=None)
    value = nearest if len(known) == 2 else None
    return replace(one, value=value, exact=False, note=one.note or other.note)


__all__ = [
    "BY_PARTS",
    "AuditReport",
    "AuditSpec",
    "Persons",
    "Verdict",
    "audit_in_memory",
    "audit_parts",
    "audit_table",
    "by_parts",
    "join_reports",
]

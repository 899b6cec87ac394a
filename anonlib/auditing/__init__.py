"""The audit: independent verification of a released table.

It counts again what the kernels promise, in Spark or in memory, and with its own code. Nothing
here imports kernels, partitioners, recoders or blocks.
"""

from collections.abc import Set
from dataclasses import replace

from anonlib.auditing.audit import audit_table
from anonlib.auditing.in_memory import audit_in_memory
from anonlib.auditing.report import AuditReport, AuditSpec, Persons, Verdict

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


__all__ = [
    "AuditReport",
    "AuditSpec",
    "Persons",
    "Verdict",
    "audit_in_memory",
    "audit_table",
    "by_parts",
]

"""Independent verification of a released table: the audit counts again, in Spark and with code of
its own, what the kernels promise.

Nothing here imports kernels, partitioners, recoders or blocks.
"""

from collections.abc import Set
from dataclasses import replace

from anonlib.auditing.audit import audit_table
from anonlib.auditing.report import AuditReport, AuditSpec, Persons, Verdict

BY_PARTS = "persons were counted in every part when it was added, not in the whole table"


def by_parts(table: AuditReport, added: AuditReport) -> AuditReport:
    """The report on a table with what could not be verified taken from its parts.

    The caller vouches that what was there before held the same models, persons counted; `added`
    is the report on the rest, persons counted, too. Both holding, the table holds them: its
    classes are unions of classes of the parts, and every model is monotone.
    """
    held = {verdict.model for verdict in added.verdicts if verdict.holds}
    return replace(table, verdicts=tuple(_joined(verdict, held) for verdict in table.verdicts))


def _joined(table: Verdict, held: Set[str]) -> Verdict:
    if not table.note or table.n_failing or table.model not in held:
        return table
    return replace(table, holds=True, value=table.required, exact=False, note=BY_PARTS)


__all__ = ["AuditReport", "AuditSpec", "Persons", "Verdict", "audit_table", "by_parts"]

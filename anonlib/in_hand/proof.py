"""What a release in memory has to pass: refusals before it is made, the audit after."""

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from anonlib.auditing.report import AuditReport
from anonlib.config.model import Config
from anonlib.errors import AuditError, InfeasibleError
from anonlib.evaluation.published_spec import make_published_spec
from anonlib.table.columns import TOKEN

if TYPE_CHECKING:
    from anonlib.local.engine import MemoryRelease
    from anonlib.local.rows import Rows


def require_harmless(rows: "Rows", config: Config) -> None:
    """Raises InfeasibleError for all that the values rule out."""
    from anonlib.local.gate import find_disclosing_columns
    from anonlib.local.problems import find_problems

    problems = find_problems(rows.table, rows.schema, config)
    problems += find_disclosing_columns(rows.table, rows.schema, config.privacy)[1]
    if problems:
        raise InfeasibleError(problems)


def audit_release(release: "MemoryRelease", rows: "Rows", config: Config) -> AuditReport:
    """Audits a release. Raises AuditError unless all models hold and no row is lost."""
    from anonlib.auditing.in_memory import audit_in_memory

    spec = make_published_spec(config)
    columns = {c.name: release.table.column(c.id) for c in rows.schema.released}
    if rows.schema.unit:
        columns[TOKEN] = release.table.column(TOKEN)
        spec = replace(spec, persons="token", token=TOKEN)
    report = audit_in_memory(pa.table(columns), spec)
    report.require_passed("the audit")
    n_in, n_out = rows.table.num_rows, report.n_rows
    if not 0 <= n_in - n_out <= config.privacy.may_suppress(n_in):
        raise AuditError(f"rows don't add up, nothing is released: {n_in} read, {n_out} audited")
    return report

"""What a release in memory has to pass: refusals before it is made, the audit after."""

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from anonlib.auditing.report import EACH_CONTROLLER, AuditReport, AuditSpec, name_controllers
from anonlib.config.model import Config
from anonlib.config.policies.judgement import require_policy
from anonlib.config.resolve import with_names
from anonlib.errors import AuditError, InfeasibleError
from anonlib.evaluation.published_spec import make_published_spec
from anonlib.table.columns import CONTROLLER, TOKEN

if TYPE_CHECKING:
    from anonlib.content.content_rules import Content
    from anonlib.local.engine import MemoryRelease
    from anonlib.local.rows import Rows
    from anonlib.partition.settlement import Controllers
    from anonlib.table.schema import Schema


def require_harmless(rows: "Rows", config: Config) -> "Content":
    """What the content gate found in the rows.

    Raises InfeasibleError for all that the values rule out, ConfigError for values that can't be
    used, for rows that the config does not fit, and for rules of the policy that released texts do
    not keep.
    """
    from anonlib.content.gate import find_disclosing_columns
    from anonlib.local.problems import find_problems

    problems = find_problems(rows.table, rows.schema, config)
    content, more = find_disclosing_columns(rows.table, rows.schema, config.privacy)
    if problems := [*problems, *more]:
        raise InfeasibleError(problems)
    require_policy(config, rows.schema, content.kinds)
    return content


def audit_release(
    release: "MemoryRelease", rows: "Rows", config: Config, *, exact_sizes: bool = False
) -> AuditReport:
    """Audits a release. Raises AuditError unless all models hold and no row is lost.

    exact_sizes: Whether no size of a class in the report is rounded.
    """
    from anonlib.auditing.in_memory import audit_in_memory
    from anonlib.auditing.verdicts import advise_equal_cells

    spec = make_published_spec(config)
    columns = {c.name: release.table.column(c.id) for c in rows.schema.released}
    if rows.schema.unit:
        columns[TOKEN] = release.table.column(TOKEN)
        spec = replace(spec, persons="token", token=TOKEN)
    report = audit_in_memory(pa.table(columns), spec, exact_sizes=exact_sizes)
    if release.controllers is not None:
        columns[CONTROLLER] = release.table.column(CONTROLLER)
        report = _audit_controllers(
            report, pa.table(columns), spec, release.controllers, rows.schema
        )
    n_more = release.n_cells - report.n_classes
    report.require_passed("the audit", advise_equal_cells(report.verdicts, spec, n_more))
    _require_pseudonyms(release.table, rows)
    n_in, n_out = rows.table.num_rows, report.n_rows
    if not 0 <= n_in - n_out <= config.privacy.may_suppress(n_in):
        raise AuditError(
            f"rows don't add up, nothing is released: {n_in} read, {n_out} audited; this is a "
            "fault of anonlib"
        )
    return report


def _require_pseudonyms(released: pa.Table, rows: "Rows") -> None:
    """Raises AuditError if a column of pseudonyms has a value of the source. The audit of the table
    knows only what pseudonyms look like, as hashes in a source may."""
    for column in rows.schema.released:
        if column.pseudonym:
            values = pc.unique(rows.table.column(column.id)).drop_null().cast(pa.string())
            if pc.any(pc.is_in(released.column(column.id), value_set=values)).as_py():
                raise AuditError(
                    f"column {column.name}: has values of the source instead of pseudonyms, so "
                    "nothing is released; this is a fault of anonlib"
                )


def _audit_controllers(
    report: AuditReport,
    table: pa.Table,
    spec: AuditSpec,
    controllers: "Controllers",
    schema: "Schema",
) -> AuditReport:
    """Adds the verdicts on the rows of each controller, and on those with models of their own.

    Args:
        report: The report on all rows.
        table: The released rows, with CONTROLLER.
        spec: The spec of all rows.
        controllers: What became of the controllers.
        schema: The columns.
    """
    from anonlib.auditing.in_memory import audit_in_memory

    private = (*spec.private, CONTROLLER)
    apart = replace(spec, apart=CONTROLLER, private=private, acknowledge_unique=True)
    report = report.and_(EACH_CONTROLLER, audit_in_memory(table, apart))
    there = {*pc.unique(table.column(CONTROLLER)).to_pylist()}
    for numbers, models in controllers.with_own_models():
        if there & {*numbers}:  # else all suppressed
            own = (*spec.models, *with_names(models, schema))
            its = audit_in_memory(table, replace(apart, only=numbers, models=own))
            report = report.and_(name_controllers(len(numbers)), its)
    return report

"""The checks before a run publishes: the audit, the count of rows, and the released nodes of
hierarchies."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anonlib import auditing
from anonlib.auditing import AuditReport, AuditSpec, by_parts, join_reports
from anonlib.auditing.report import EACH_CONTROLLER, EACH_FILE, name_controllers
from anonlib.config.checks.privacy_section import name_relative
from anonlib.config.model import Config, PrivacySection
from anonlib.config.policies.judgement import RuleVerdict, require_rules
from anonlib.config.resolve import with_names
from anonlib.errors import AuditError, InputError
from anonlib.evaluation.published_spec import explain_audit, make_auditable_spec
from anonlib.run.past import require_whole
from anonlib.run.plan import Plan, StagedFigures
from anonlib.run.scan import Scan
from anonlib.table.columns import CONTROLLER, FILE, TOKEN
from anonlib.table.schema import Schema


def audit_published(
    table: DataFrame, config: Config, *, persons_return: bool = False
) -> AuditReport:
    """Audits a published table by its own columns.

    Persons of a unit are counted only if the unit is one column with a released pseudonym. Rows of
    different controllers can't be separated.

    persons_return: Whether its manifest says that persons may be in several batches.
    """
    spec = make_auditable_spec(config, persons_return=persons_return)
    report = auditing.audit_table(table, spec)
    return explain_audit(report, config, persons_return=persons_return)


def audit_staged(
    staged_rows: DataFrame,
    spec: AuditSpec,
    schema: Schema,
    plan: Plan,
    table: DataFrame | None,
    by_file: DataFrame | None,
) -> AuditReport:
    """Audits the staged rows independently: alone, as a part of the table that they are added to,
    and the rows of each file and controller.

    Args:
        staged_rows: The staged rows.
        spec: The spec of the published table.
        schema: The columns.
        plan: The plan, which knows the controllers.
        table: The table with these rows; None if they are not added to one.
        by_file: The staged rows with FILE, if readers can see which rows share a file.
    """
    columns = [F.col(column.id).alias(column.name) for column in schema.released]
    if schema.unit:
        columns.append(F.col(TOKEN))
        spec = replace(spec, persons="token", token=TOKEN)
    parts = [FILE] * (by_file is not None) + [CONTROLLER] * (plan.controllers is not None)
    rows = staged_rows if by_file is None else by_file
    report, *of_parts = auditing.audit_parts(rows.select(*columns, *parts), spec, parts, table)
    part_reports = dict(zip(parts, of_parts, strict=True))
    # How rows were dealt to files is chance: figures of files are told only if they fail.
    if by_file is not None and not part_reports[FILE].passed:
        report = report.and_(EACH_FILE, part_reports[FILE])
    if plan.controllers is None:
        return report
    report = report.and_(EACH_CONTROLLER, part_reports[CONTROLLER])
    frame = staged_rows.select(*columns, CONTROLLER)
    apart = replace(spec, apart=CONTROLLER, private=(CONTROLLER,), acknowledge_unique=True)
    for controllers, models in plan.controllers.with_own_models():
        own_spec = replace(
            apart, only=controllers, models=(*spec.models, *with_names(models, schema))
        )
        if not frame.where(F.col(CONTROLLER).isin(*controllers)).isEmpty():  # else all suppressed
            report = report.and_(
                name_controllers(len(controllers)), auditing.audit_table(frame, own_spec, table)
            )
    return report


def audit_with_published(
    table: DataFrame,
    spec: AuditSpec,
    batch_report: AuditReport,
    known: AuditReport | None,
    alone: DataFrame | None = None,
) -> AuditReport:
    """Audits the published and the added rows together. The report may be that they fail.

    Cost: none if the audit of the published rows is known, else one of the table.

    Args:
        table: The published and the added rows.
        spec: The spec of the published table.
        batch_report: The audit of the added rows.
        known: The audit of the published rows, by the run that left them; None if there is none.
        alone: The published rows, if their classes are counted apart from the added ones.
    """
    if alone is not None:
        known = known or auditing.audit_table(alone, spec)
        if not known.passed:
            return known
    report = None if known is None else join_reports(known, batch_report, spec)
    if report is None and alone is not None:
        raise AuditError(
            "nothing was published: the audits of the published rows and of the batch can't be put "
            "together, and persons may be in both; publish all rows anew (`mode: overwrite`)"
        )
    if report is None:
        report = auditing.audit_table(table, spec)
        if spec.persons == "unknown":  # what is there was audited by tokens that are gone
            report = by_parts(report, batch_report)
    return report


def require_with_published(
    report: AuditReport, spec: AuditSpec, n_published: int, n_added: int
) -> None:
    """Raises AuditError unless the audit of the published and the added rows passed, and counted
    all of them. The audit of the added rows passed, with the whole table as the reference of its
    models: so what fails are published rows."""
    failing = {str(each.spec.get("type")) for each in report.verdicts if not each.holds}
    if relative := name_relative([model for model in spec.models if model.type in failing]):
        advice = (
            f"the batch holds it, and published rows do not any more: by {relative}, classes are "
            "compared with the whole table, whose distribution every batch moves; append fewer "
            "rows at a time, or publish all rows anew (`mode: overwrite`)"
        )
    else:
        advice = (
            "the batch holds it, and published rows do not: append by the models that they were "
            "released with, or publish all rows anew (`mode: overwrite`)"
        )
    report.require_passed("the audit of the table with the batch", advice)
    require_whole(n_published, n_added, report.n_rows)


def require_audited(
    report: AuditReport,
    figures: StagedFigures,
    plan: Plan,
    scan: Scan,
    privacy: PrivacySection,
    advice: str = "",
) -> None:
    """Raises AuditError unless the audit passed, no row was lost or invented, and no more rows were
    suppressed than allowed. advice: What to do where models do not hold."""
    report.require_passed("the audit", advice)
    n_kept = figures.digest.n_rows
    max_suppressed = privacy.may_suppress(scan.n_rows)
    complete = n_kept == report.n_rows and figures.n_rows == plan.n_rows
    if not complete or not 0 <= scan.n_rows - n_kept <= max_suppressed:
        raise AuditError(
            f"rows don't add up, nothing was published: {scan.n_rows} scanned, "
            f"{plan.n_rows} planned, {figures.n_rows} anonymized, {n_kept} kept, "
            f"{report.n_rows} audited; run it again; if it comes again, it is a fault of anonlib"
        )


def judge_audited(
    config: Config, schema: Schema, reports: Iterable[AuditReport], kinds: Mapping[str, str]
) -> tuple[RuleVerdict, ...]:
    """The rules of the config's policy, on audits of the staged rows and of the table with them.

    kinds: What the texts of released columns look like, as the content gate found.

    Raises AuditError unless every rule is kept or for a person to confirm.
    """
    smallest = [report.smallest_class or 0 for report in reports]
    return require_rules(config, schema, min(smallest), kinds)


def find_released_nodes(table: DataFrame, schema: Schema) -> dict[str, frozenset[int]]:
    """By column that is released as nodes of its hierarchy: the numbers of its nodes in the table,
    which has published names. Cost: one pass, and one more for each column of shares. Raises
    InputError if it has values that are no nodes."""
    place = {name: f"n{i}" for i, name in enumerate(table.columns)}
    plain = table.toDF(*place.values())
    columns = {name: schema[name] for name in schema.hierarchies}
    by_name = [n for n, c in columns.items() if pa.types.is_string(c.released_type)]
    sets = [F.collect_set(place[name]) for name in by_name]
    texts = plain.agg(*sets).collect()[0] if sets else ()
    nodes = {}
    for name, values in zip(by_name, texts, strict=True):
        names = schema.hierarchies[name].names
        number = {each: i for i, each in enumerate(names)}
        _require_nodes(name, sum(value not in number for value in values))
        nodes[name] = frozenset(number[value] for value in values)
    for name in columns.keys() - {*by_name}:
        node = plain.select(F.explode(F.col(place[name]).getField("node")).alias("node"))
        # The number after the last node is that of missing values.
        n = len(schema.hierarchies[name].names)
        values = [row.node for row in node.distinct().collect()]
        _require_nodes(name, sum(value is None or not 0 <= value <= n for value in values))
        nodes[name] = frozenset(value for value in values if value < n)
    return nodes


def _require_nodes(name: str, n_strange: int) -> None:
    """Raises InputError if a table has values of a column that are no nodes of its hierarchy."""
    if n_strange:
        raise InputError(
            f"release.path: column {name} has values that are no nodes of its hierarchy "
            f"({n_strange}): others changed rows of the table; publish all rows anew "
            "(`mode: overwrite`)"
        )

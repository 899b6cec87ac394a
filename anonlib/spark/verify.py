"""What the audit of a run must show before anything is published."""

from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anonlib import audit as auditing
from anonlib.audit import AuditReport, AuditSpec, by_parts
from anonlib.config import Config
from anonlib.errors import AuditError
from anonlib.recode.proportional import Proportional
from anonlib.recode.set import Set
from anonlib.resolve import bound_models, joint_columns, protected_hierarchies, with_names
from anonlib.schema import Role, Schema
from anonlib.spark.blocks import Plan
from anonlib.spark.earlier import require_whole
from anonlib.spark.grouped import Outcome
from anonlib.spark.scan import Scan
from anonlib.spark.whole import Whole
from anonlib.work import CONTROLLER, TOKEN

CONTROLLERS = (
    "the table does not tell whose a row is: that the rows of each data controller hold the "
    "models, and those of its own, was audited when they were released"
)


def published_spec(config: Config) -> AuditSpec:
    """What a published table of this config must be."""
    released = {
        name: attribute
        for name, attribute in config.attributes.items()
        if attribute.role not in (Role.DROP, Role.IDENTIFIER) or attribute.pseudonym
    }
    quasi = [n for n, a in released.items() if a.role is Role.QUASI_IDENTIFIER]
    scales = {name: released[name].scale for name in quasi}
    recoders = {n: config.recode.of(n, scale) for n, scale in scales.items() if scale}
    shares = {n: r.steps for n, r in recoders.items() if isinstance(r, Proportional)}
    # As text, a set is sorted already: equal sets are equal texts.
    sets = [n for n, r in recoders.items() if isinstance(r, Set) and r.form == "array"]
    return AuditSpec(
        columns=tuple(released),
        quasi_identifiers=tuple(quasi),
        models=bound_models(config),
        insensitive=tuple(n for n, a in released.items() if a.role is Role.INSENSITIVE),
        acknowledge_unique=config.privacy.acknowledge_unique,
        missing_tokens=config.privacy.missing_tokens,
        persons="unknown" if config.unit else "rows",
        sets=tuple(sets),
        hierarchies=protected_hierarchies(config),
        joint=joint_columns(config),
        shares=shares,
    )


def audited_alone(table: DataFrame, config: Config) -> AuditReport:
    """The audit of a published table by what can be seen in it: persons of a unit can be counted
    where it is one column that is released as a pseudonym; controllers can't be told apart."""
    spec = published_spec(config)
    if named := _pseudonym_of_unit(config):
        spec = replace(spec, persons="token", token=named)
    report = auditing.audit(table, spec)
    return replace(report, notes=(CONTROLLERS,)) if config.partition.controller else report


def _pseudonym_of_unit(config: Config) -> str | None:
    """The column that says in a published table which rows are one person's, if there is one."""
    if len(config.unit) != 1 or not config.attributes[config.unit[0]].pseudonym:
        return None
    by_release = config.pseudonyms is not None and config.pseudonyms.scope == "release"
    # Who was released twice has two pseudonyms then, and would count as two.
    return None if by_release and config.release.acknowledge_returning else config.unit[0]


def audited(
    staged: DataFrame,
    config: Config,
    schema: Schema,
    planned: Plan | Whole,
    table: DataFrame | None,
) -> AuditReport:
    """The independent audit of the staged rows, under the names that will be published, as a part
    of the table that they are added to; where there are controllers, also of each one's rows
    apart."""
    columns = [F.col(column.id).alias(column.name) for column in schema.released]
    spec = published_spec(config)
    if config.unit:
        columns.append(F.col(TOKEN))
        spec = replace(spec, persons="token", token=TOKEN)
    report = auditing.audit(staged.select(*columns), spec, table)
    if planned.owners is None:
        return report
    frame = staged.select(*columns, CONTROLLER)
    apart = replace(spec, apart=CONTROLLER, private=(CONTROLLER,), acknowledge_unique=True)
    report = report.and_("each controller", auditing.audit(frame, apart, table))
    for owners, models in planned.owners.with_own_models():
        asked = replace(apart, only=owners, models=(*spec.models, *with_names(models, schema)))
        label = f"{len(owners)} controllers with their own models"
        if not frame.where(F.col(CONTROLLER).isin(*owners)).isEmpty():  # else all suppressed
            report = report.and_(label, auditing.audit(frame, asked, table))
    return report


def audited_whole(
    table: DataFrame, config: Config, added: AuditReport, n_published: int
) -> AuditReport:
    """The audit of the table as it will be: the published rows, and what is added to them.

    Raises AuditError unless it passed.
    """
    report = auditing.audit(table, published_spec(config))
    if config.unit:  # what is there was audited by tokens that are gone
        report = by_parts(report, added)
    _require_passed(report, "the audit of the table with the batch")
    require_whole(n_published, added.n_rows, report.n_rows)
    return report


def require(
    report: AuditReport, found: Outcome, planned: Plan | Whole, scanned: Scan, config: Config
) -> None:
    """Raises AuditError unless the audit passed, no row was lost or invented, and no more were
    suppressed than may be."""
    _require_passed(report, "the audit")
    n_kept = found.digest.n_rows
    allowed = config.privacy.may_suppress(scanned.n_rows)
    complete = n_kept == report.n_rows and found.n_rows == planned.n_rows
    if not complete or not 0 <= scanned.n_rows - n_kept <= allowed:
        raise AuditError(
            f"rows don't add up, nothing was published: {scanned.n_rows} scanned, "
            f"{planned.n_rows} planned, {found.n_rows} anonymized, {n_kept} kept, "
            f"{report.n_rows} audited"
        )


def _require_passed(report: AuditReport, what: str) -> None:
    """Raises AuditError with all that an audit found to fail."""
    if not report.passed:
        failed = [f"{v.model}: {v.n_failing} classes fail" for v in report.verdicts if not v.holds]
        texts = [*failed, *[str(problem) for problem in report.problems]]
        raise AuditError(f"{what} failed, nothing was published: " + "; ".join(texts))

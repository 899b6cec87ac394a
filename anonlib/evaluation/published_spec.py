"""What the audit demands of a published table."""

from collections.abc import Iterable
from dataclasses import replace

from anonlib.auditing import AuditReport, AuditSpec
from anonlib.config.model import Config
from anonlib.config.resolve import (
    find_joint_columns,
    find_orders,
    find_unacknowledged,
    read_protected_hierarchies,
)
from anonlib.table.schema import Role
from anonlib.text import printable

CONTROLLERS = (
    "the table does not tell whose a row is: that the rows of each data controller hold the "
    "models, and those of its own, was audited when they were released"
)


def make_published_spec(config: Config) -> AuditSpec:
    """The audit's spec of a published table of this config."""
    released = {
        name: attribute
        for name, attribute in config.attributes.items()
        if attribute.role not in (Role.DROP, Role.IDENTIFIER) or attribute.pseudonym
    }
    quasi = [n for n, a in released.items() if a.role is Role.QUASI_IDENTIFIER]
    scales = {name: released[name].scale for name in quasi}
    recoders = {n: config.recode.of(n, scale) for n, scale in scales.items() if scale}
    shares = {n: getattr(r, "steps", None) for n, r in recoders.items() if r.releases == "shares"}
    # Sets as text are sorted, so equal sets are equal texts.
    arrays = [n for n, r in recoders.items() if getattr(r, "form", "array") != "text"]
    sets = [n for n in arrays if recoders[n].releases == "set"]
    insensitive = tuple(n for n, a in released.items() if a.role is Role.INSENSITIVE)
    return AuditSpec(
        columns=tuple(released),
        quasi_identifiers=tuple(quasi),
        models=config.bound_models,
        insensitive=find_unacknowledged(config.attributes, config.privacy) or insensitive,
        acknowledge_unique=not find_unacknowledged(config.attributes, config.privacy),
        missing_tokens=config.privacy.missing_tokens,
        persons="unknown" if config.unit else "rows",
        sets=tuple(sets),
        hierarchies=read_protected_hierarchies(config.all_models, config.attributes),
        orders=find_orders(config.all_models, config.attributes),
        joint=find_joint_columns(config.all_models, config.attributes, joint=config.privacy.joint),
        shares=shares,
        pseudonyms=tuple(n for n, a in released.items() if a.pseudonym),
    )


def make_auditable_spec(config: Config, *, persons_return: bool = False) -> AuditSpec:
    """The same, as far as it can be counted by the columns of the table: persons of a unit only if
    the unit is one column with a released pseudonym. If that names one row per person, it must be
    another one in each row, unless persons may return.

    persons_return: Whether persons may be in several batches of the table, whatever this config
        says: its manifest knows (`anonlib.run.manifest_persons.read_persons_return`).
    """
    spec = make_published_spec(config)
    again = persons_return or bool(config.release.acknowledge_returning)
    named = _find_pseudonym(config, persons_return=again)
    if named is None:
        return spec
    unique = None if again or config.unit else named
    return replace(spec, persons="token", token=named, unique=unique)


def make_measured_spec(config: Config, *, persons_return: bool) -> AuditSpec:
    """The spec of `make_auditable_spec`, for measures. Where persons may be in several batches of
    the table and no pseudonym names them, rows are no persons, and no figure of persons passes a
    gate.

    persons_return: As in `make_auditable_spec`.
    """
    spec = make_auditable_spec(config, persons_return=persons_return)
    return replace(spec, persons="unknown") if persons_return and spec.persons == "rows" else spec


def explain_audit(
    report: AuditReport,
    config: Config,
    more_notes: Iterable[str] = (),
    *,
    persons_return: bool = False,
) -> AuditReport:
    """The report of an audit by `make_auditable_spec`, with what it rests on and could not check.

    Args:
        report: The report.
        config: The config of the audit.
        more_notes: Notes on the table in hand.
        persons_return: As in `make_auditable_spec`.
    """
    notes = (CONTROLLERS,) if config.partition.controller else ()
    premises = list_premises(config, persons_return=persons_return)
    return replace(report, notes=(*notes, *more_notes), premises=premises)


def list_premises(config: Config, *, persons_return: bool = False) -> tuple[str, ...]:
    """What the verdicts of an audit by this config rest on: which columns make classes, how persons
    are counted, and what is not counted since it is acknowledged."""
    again = persons_return or bool(config.release.acknowledge_returning)
    spec = make_auditable_spec(config, persons_return=again)
    acknowledged = [
        name
        for name, attribute in config.attributes.items()
        if attribute.role is Role.INSENSITIVE and config.privacy.acknowledges_unique(name)
    ]
    premises = [
        f"quasi-identifiers: {_list_names(spec.quasi_identifiers)}",
        f"persons: {_describe_persons(config, spec, again=again)}",
    ]
    if acknowledged:
        premises.append(f"rare combinations acknowledged: {_list_names(acknowledged)}, not counted")
    return tuple(premises)


def _describe_persons(config: Config, spec: AuditSpec, *, again: bool) -> str:
    person = config.one_row_per_person
    if spec.token is not None:
        return f"counted by the pseudonym {printable(spec.token)}"
    if config.unit:
        return f"not counted, the table does not tell them by {_list_names(config.unit)}"
    if again:
        how = "as the config declares of each batch"
        if isinstance(person, str):
            how = f"{printable(person)} was to be checked in each batch"
        return f"each row counts as one, and persons may be in several batches; {how}"
    if isinstance(person, str):
        return f"each row is one; {printable(person)} was to be checked when the table was released"
    return "each row is one, as the config declares"


def _list_names(names: Iterable[str]) -> str:
    return ", ".join(map(printable, names)) or "none"


def counts_persons(config: Config, *, persons_return: bool) -> bool:
    """Whether persons can be counted in the published table itself, as `make_auditable_spec`."""
    return make_auditable_spec(config, persons_return=persons_return).persons != "unknown"


def _find_pseudonym(config: Config, *, persons_return: bool) -> str | None:
    """The published pseudonym that identifies persons, if there is one."""
    by_release = config.pseudonyms is not None and config.pseudonyms.scope == "release"
    # Who was released twice has two pseudonyms then, and would count as two.
    changed = by_release and persons_return
    person = config.one_row_per_person
    columns = (person,) if isinstance(person, str) else config.unit
    named = len(columns) == 1 and config.attributes[columns[0]].pseudonym
    return columns[0] if named and not changed else None

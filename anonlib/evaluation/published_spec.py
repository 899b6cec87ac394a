"""What the audit demands of a published table."""

from anonlib.auditing import AuditSpec
from anonlib.config.model import Config
from anonlib.config.resolve import (
    bind_models,
    find_joint_columns,
    find_orders,
    find_unacknowledged,
    read_protected_hierarchies,
)
from anonlib.table.schema import Role


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
        models=bind_models(config.privacy.models, config.attributes),
        insensitive=find_unacknowledged(config.attributes, config.privacy) or insensitive,
        acknowledge_unique=not find_unacknowledged(config.attributes, config.privacy),
        missing_tokens=config.privacy.missing_tokens,
        persons="unknown" if config.unit else "rows",
        sets=tuple(sets),
        hierarchies=read_protected_hierarchies(config.all_models, config.attributes),
        orders=find_orders(config.all_models, config.attributes),
        joint=find_joint_columns(config.all_models, config.attributes, joint=config.privacy.joint),
        shares=shares,
    )

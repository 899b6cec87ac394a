"""Checks of how persons are counted and named: `one_row_per_person`, `unit`, `pseudonyms`."""

from collections.abc import Iterator, Mapping, Sequence

from anonlib.config.checks.attributes import HIDDEN
from anonlib.config.model import (
    Attribute,
    Config,
    PrivacySection,
    PseudonymsSection,
    ReleaseSection,
)
from anonlib.errors import Problem, did_you_mean
from anonlib.table.schema import Role


def check_persons(
    attributes: Mapping[str, Attribute], one_row_per_person: bool | str, unit: Sequence[str]
) -> Iterator[Problem]:
    """Checks that exactly one field says how persons are counted."""
    if bool(one_row_per_person) == bool(unit):
        yield Problem(
            "one_row_per_person",
            "say how persons are counted, by exactly one of: `one_row_per_person: COLUMN` (a "
            "unique identifier), `one_row_per_person: true` (a declaration), `unit: [COLUMNS]`",
        )
    if isinstance(one_row_per_person, str):
        attribute = attributes.get(one_row_per_person)
        if attribute is None or attribute.role is not Role.IDENTIFIER:
            identifiers = [n for n, a in attributes.items() if a.role is Role.IDENTIFIER]
            near = did_you_mean(one_row_per_person, () if attribute else identifiers)
            other = (
                f", but {one_row_per_person} has `role: {attribute.role.value}`"
                if attribute
                else ""
            )
            yield Problem(
                "one_row_per_person",
                f"must be true, or name a column with `role: identifier`{other}{near}",
            )
    if len(set(unit)) < len(unit):
        yield Problem("unit", "a column is named twice; remove one")
    for i, name in enumerate(unit):
        attribute = attributes.get(name)
        if attribute is None:
            near = did_you_mean(name, attributes)
            yield Problem(f"unit.{i}", f"no such column under `attributes`{near}")
        elif attribute.role not in HIDDEN:
            yield Problem(f"unit.{i}", "must name a column with `role: identifier` or `role: drop`")


def check_pseudonyms(
    attributes: Mapping[str, Attribute],
    pseudonyms: PseudonymsSection | None,
    privacy: PrivacySection,
    one_row_per_person: bool | str,
    release: ReleaseSection,
) -> Iterator[Problem]:
    """Pseudonyms need a key. Rows with the same pseudonym are linked, but models count the persons
    of each class on its own. So pseudonyms must be unique, also among the batches of a table, or
    the links must be acknowledged."""
    names = [n for n, a in attributes.items() if a.role is Role.IDENTIFIER and a.pseudonym]
    if names and not pseudonyms:
        yield Problem(
            "pseudonyms", "required by an identifier with `pseudonym: true`: key_env or key_file"
        )
    if privacy.acknowledge_linked:
        return
    for name in names:
        if name != one_row_per_person:
            yield Problem(
                f"attributes.{name}.pseudonym",
                "rows with one pseudonym are linked: who knows some of them finds the others. If "
                "no two rows have the same, name the column in `one_row_per_person`; else set "
                "privacy.acknowledge_linked: true",
            )
        elif links_batches(pseudonyms, release):
            yield Problem(
                f"attributes.{name}.pseudonym",
                "a person who returns gets the pseudonym of the earlier rows, since its scope is "
                "stable: who knows one of these rows finds the others. Leave out who was released "
                "before, instead of `release.acknowledge_returning`; or set "
                "privacy.acknowledge_linked: true",
            )


def links_batches(pseudonyms: PseudonymsSection | None, release: ReleaseSection) -> bool:
    """Whether persons who return have the pseudonym of their earlier rows."""
    stable = pseudonyms is not None and pseudonyms.scope == "stable"
    return stable and release.mode == "append" and bool(release.acknowledge_returning)


def note_links(config: Config) -> Iterator[str]:
    """What is accepted with rows of several batches that pseudonyms link."""
    named = any(a.role is Role.IDENTIFIER and a.pseudonym for a in config.attributes.values())
    if named and links_batches(config.pseudonyms, config.release):
        yield (
            "pseudonyms: a person who returns has the same one in several batches; k counts the "
            "persons of each class, and fewer fit all rows of one pseudonym: who knows somebody's "
            "quasi-identifiers in two batches may find all rows of that person"
        )

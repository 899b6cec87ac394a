"""Checks of `release`: the ledger, keys, how files are laid out."""

from collections.abc import Iterator, Mapping, Sequence

from anonlib.config.checks.attributes import HIDDEN
from anonlib.config.model import Attribute, PseudonymsSection, ReleaseSection
from anonlib.errors import Problem


def check_keys(release: ReleaseSection, pseudonyms: PseudonymsSection | None) -> Iterator[Problem]:
    """Checks that each section with a key names exactly one, which no other has."""
    sections = {"release.ledger": release.ledger, "release.backlog": release.backlog}
    for where, section in {"pseudonyms": pseudonyms, **sections}.items():
        if section is not None and (section.key_env is None) == (section.key_file is None):
            yield Problem(where, "give exactly one of key_env and key_file")
    for where, section in sections.items():
        for field in ("key_env", "key_file"):
            key = getattr(section, field, None)
            if key is not None and key == getattr(pseudonyms, field, None):
                yield Problem(f"{where}.{field}", "the pseudonyms' key; make another one for this")


def check_ledger(
    release: ReleaseSection, one_row_per_person: bool | str, unit: Sequence[str]
) -> Iterator[Problem]:
    """Checks the ledger, by which later releases recognise persons."""
    if release.ledger is not None and one_row_per_person is True:
        yield Problem(
            "release.ledger",
            "`one_row_per_person: true` names nobody; name a column or a `unit`, or remove this",
        )
    if release.mode != "append" or release.ledger is not None:
        return
    if unit:
        yield Problem(
            "release.ledger",
            "required by `mode: append` with a `unit`, to count the persons published before",
        )
    elif not release.acknowledge_returning:
        yield Problem(
            "release.ledger",
            "required by `mode: append`, to recognise persons who were released before; or set "
            "`acknowledge_returning: true`",
        )


def check_partition_by(
    names: Sequence[str], attributes: Mapping[str, Attribute]
) -> Iterator[Problem]:
    """Checks that files are laid out by columns that are released."""
    released = {name for name, attribute in attributes.items() if attribute.role not in HIDDEN}
    for i, name in enumerate(names):
        if name not in released:
            yield Problem(f"release.partition_by.{i}", "not a column that is released")
        if name in names[:i]:
            yield Problem(f"release.partition_by.{i}", "this column is named twice; remove one")

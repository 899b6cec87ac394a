"""What a public manifest says of persons: how they are known, and whether they may return."""

from collections.abc import Mapping
from typing import Any

from anonlib.config.model import Config
from anonlib.config.summary import find_persons

#: What a manifest says was audited, if not each batch.
WHOLE = "the whole table"
#: How a text on persons ends who may be in several batches.
_SEVERAL = "; persons may be in several"


def describe_persons(config: Config, *, persons_return: bool) -> str:
    """What a person is, for the manifest."""
    kind = find_persons(config)[0]
    every, several = (" in every batch", _SEVERAL) if persons_return else ("", "")
    if kind == "unit":
        return f"counted by unit{every}{several}"
    how = "declared, not checked" if kind == "declared" else "checked"
    return f"one row per person{every}: {how}{several}"


def read_persons_kind(manifest: Mapping[str, Any]) -> str:
    """What a person is by a manifest: `unit`, `declared` or `checked`; empty if it says something
    else. Manifests of earlier versions have only a text for it."""
    if "persons_kind" in manifest:
        return str(manifest["persons_kind"])
    text = manifest["persons"]
    if text.startswith("one row per person"):
        return "declared" if text.startswith("one row per person: declared") else "checked"
    return "unit" if text == "counted by unit" else ""


def read_persons_return(manifest: Mapping[str, Any]) -> bool:
    """Whether persons may be in several batches of a table, by its manifest: once a run was told to
    accept persons who return, this stays true of the table. Manifests of earlier versions have only
    a text for it."""
    return bool(manifest.get("persons_return")) or str(manifest.get("persons")).endswith(_SEVERAL)


def counts_rows(manifest: Mapping[str, Any]) -> bool:
    """Whether the rows of a class were counted as persons: not with a unit, nor in a whole table
    that may have several rows of a person who returned."""
    is_whole = manifest.get("audited", WHOLE) == WHOLE
    return read_persons_kind(manifest) != "unit" and not (
        is_whole and read_persons_return(manifest)
    )

"""The public manifest of a published table, as it is read again."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, model_validator
from pyspark.sql import SparkSession

from anonlib.errors import InputError
from anonlib.run.history import History

#: What a public manifest has.
Manifest = Mapping[str, Any]


class _Part(BaseModel):
    model_config = ConfigDict(strict=True)


class _Column(_Part):
    name: str
    role: str
    form: str | None = None

    @model_validator(mode="after")
    def _require_form(self) -> "_Column":
        if self.role == "quasi_identifier" and self.form is None:
            raise ValueError("without a form")
        return self


class _Verdict(_Part):
    model: str


class _Form(_Part):
    """What readers take from a manifest. Whatever else is in it, they find this as it is here."""

    run_id: str
    promise_sha256: str
    software: dict[str, str]
    persons: str
    persons_kind: str = ""
    persons_return: bool = False
    columns: list[_Column]
    verdicts: list[_Verdict]
    rows_released: int = Field(0, ge=0, lt=10**18)
    rows_added: int = Field(0, ge=0, lt=10**18)
    rows_suppressed: str = Field(pattern="^<?[0-9]{1,18}$")
    losses: dict[str, FiniteFloat | None]


@dataclass(frozen=True)
class Publication:
    """What is known of a version of a table.

    Attributes:
        manifest: The manifest of the run that left it; empty if no run published there, and None if
            one did and its manifest is unknown or damaged.
        changed_after: The version that this run left, if others changed the table after it; None if
            they did not, or the log does not tell.
    """

    manifest: Manifest | None
    changed_after: int | None

    def list_premises(self, n_rows: int) -> tuple[str, ...]:
        """What an audit of so many rows can't rest on: rows that no run has released."""
        if self.changed_after is not None:
            when = f"others changed the table after version {self.changed_after}"
        elif (self.manifest or {}).get("rows_released", n_rows) != n_rows:
            when = "others changed the table after its release"
        else:
            return ()
        return (f"rows: {when}; no run checked whose rows they wrote",)


def read_manifest(spark: SparkSession, folder: str, version: int | None) -> Manifest | None:
    """The public manifest of a version of a table, the latest by default; empty if no run published
    there, and None if one did and its manifest is unknown. Cost: a query of the table's history.

    Raises InputError if it is damaged.
    """
    text = choose_manifest(History(spark, folder), version)
    manifest = parse_manifest(text)
    if manifest is None and text:
        raise InputError(
            f"table {folder}: its manifest is damaged, in its log or in `_anonlib/manifest.json`; "
            "restore it from a copy, or compare the table as a DataFrame, without a manifest"
        )
    return manifest


def read_publication(spark: SparkSession, folder: str, version: int | None) -> Publication:
    """What is known of a version of a table, the latest by default. Cost: as `read_manifest`, and a
    pass over files that others wrote again."""
    history = History(spark, folder)
    manifest = parse_manifest(choose_manifest(history, version))
    return Publication(manifest, None if manifest == {} else _find_change(history, version))


def parse_manifest(text: str) -> Manifest | None:
    """The manifest that a text is; empty for `{}`, and None if one part of it is not as a run
    writes it: who changed one may have changed all."""
    try:
        found = json.loads(text)
        if found != {}:
            _Form.model_validate(found)
    except (ValueError, RecursionError):  # ValidationError is a ValueError: it quotes the text
        return None
    manifest: Manifest = found
    return manifest


def find_least_levels(levels: Mapping[str, int], manifests: Iterable[str]) -> dict[str, int]:
    """By column: the least height of its released nodes in the whole table.

    Args:
        levels: By column: the height that this run chose for its rows.
        manifests: The texts of the manifests of the runs before it, whose rows the table has, too.
            A run that tells no height may have released values as they are.
    """
    least = dict(levels)
    for text in manifests:
        columns = (parse_manifest(text) or {}).get("columns", ())
        told = {each["name"]: each.get("parameters", {}).get("level", 0) for each in columns}
        least = {name: min(level, told.get(name, 0)) for name, level in least.items()}
    return least


def _find_change(history: History, version: int | None) -> int | None:
    """The version that the newest run left, if others changed the table after it; None if they did
    not, or the log does not tell."""
    try:
        newest = next(iter(history.commits(version)), None)
    except InputError:  # the table was told to forget its runs
        return None
    own = -1 if newest is None else history.version_of(newest.run_id)
    if own < 0 or history.is_as_left(own, version):
        return None
    return own


def choose_manifest(history: History, version: int | None) -> str:
    """The text of the manifest of the run that left a version of a table, the latest by default; no
    manifest, `{}`, if no run published there, and no text if it is unknown which one left it. The
    log goes before what lies beside the table: after a RESTORE that is still of the run that was
    taken back."""
    try:
        found = history.commits(version)
        if found:
            return found[0].text
        if version is not None and history.commits():
            return "{}" if history.is_before_runs(version) else ""
        # Where the log describes no run, none came after the oldest version that can be read.
        return _drop_empty(history.newest_manifest()) or ("" if history.runs() else "{}")
    except InputError:  # the table was told to forget its runs
        return _drop_empty(history.manifest()) if version is None else ""


def _drop_empty(text: str) -> str:
    """The text of a manifest, but no text for `{}`, which no run writes."""
    return "" if text.strip() == "{}" else text

"""What a release promised of its table, and the config of an audit does not ask."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from anonlib import registry
from anonlib.auditing.report import split_label
from anonlib.auditing.verdicts import JOINT
from anonlib.config.model import Config
from anonlib.config.summary import find_persons
from anonlib.errors import ConfigError
from anonlib.privacy import PrivacyModel
from anonlib.run.manifest_persons import read_persons_kind
from anonlib.table.schema import Role
from anonlib.text import printable

#: How persons are known, in words.
_PERSONS = {
    "unit": "counted by unit",
    "declared": "declared to have one row each",
    "checked": "checked to have one row each",
}


def find_shortfalls(config: Config, manifest: Mapping[str, Any] | None) -> tuple[str, ...]:
    """What a manifest promises and a config does not ask, by the rule of `Promise.weaknesses`, as
    far as it is public: roles and forms of columns, persons, and models.

    Args:
        config: The config of the audit.
        manifest: The public manifest of the table (`parse_manifest`); empty if no run published it,
            and None if one did and its manifest is unknown or damaged.

    Returns:
        A text for each; none if the config asks as much.
    """
    if manifest is None:
        text = (
            "what the release promised is unknown: neither the table's log nor what lies beside it "
        )
        return (f"{text}has an undamaged manifest of the run that left it",)
    if not manifest:
        return ()
    return (
        *_find_columns(config, manifest["columns"]),
        *_find_persons(config, read_persons_kind(manifest)),
        *_find_models(config, [verdict["model"] for verdict in manifest["verdicts"]]),
    )


def _find_columns(config: Config, columns: list[Mapping[str, Any]]) -> Iterator[str]:
    before = {each["name"]: _describe(each["role"], each.get("form")) for each in columns}
    now = {}
    for name, attribute in config.attributes.items():
        if attribute.pseudonym or attribute.role not in (Role.DROP, Role.IDENTIFIER):
            recoder = config.recode.of(name, attribute.scale) if attribute.scale else None
            now[name] = _describe(
                str(attribute.role), None if recoder is None else recoder.releases
            )
    for name in sorted(before.keys() | now.keys()):
        was, asked = (each.get(name, "not released") for each in (before, now))
        if was != asked:
            yield f"column {printable(name)} was published as {was}, and is audited as {asked}"


def _describe(role: str, form: str | None) -> str:
    words = role.replace("_", "-")
    return f"{words} of form {form}" if form and role == "quasi_identifier" else words


def _find_persons(config: Config, was: str) -> Iterator[str]:
    now = find_persons(config)[0]
    if now != was and (was, now) != ("declared", "checked"):
        how = _PERSONS.get(was, "counted in another way")
        yield f"persons were {how}, and the audit takes them as {_PERSONS[now]}"


def _find_models(config: Config, labels: list[str]) -> Iterator[str]:
    own = config.bound_models
    same = {registry.build("audit", registry.spec(model)).label for model in own}
    # Those of controllers and of files can't be counted in the table: the report says so.
    for label in (each for each in labels if not split_label(each)[0]):
        joint = label.endswith(JOINT)
        name = label.removesuffix(JOINT)
        model = _read_label(name)
        implied = name in same or (model is not None and any(each.implies(model) for each in own))
        if not implied or (joint and not config.privacy.joint):
            yield f"{printable(label)} was promised, and no model of this config implies it"


def _read_label(label: str) -> PrivacyModel | None:
    """The model that a label of the audit names, as `AuditModel.label`; None if it can't be told,
    as where a column has a name like a parameter."""
    type, _, rest = label.partition(" ")
    plugins = registry.plugins("privacy model")
    if type not in plugins:
        return None
    parts = re.split(rf"(?:^| )({'|'.join(plugins[type].model_fields)})=", rest)[1:]
    parameters = dict(zip(parts[::2], parts[1::2], strict=True))
    if len(parameters) < len(parts) // 2:
        return None
    try:
        found = registry.build("privacy model", {"type": type, **parameters})
    except ConfigError:
        return None
    return found if isinstance(found, PrivacyModel) else None

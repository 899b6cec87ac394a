"""What a record may say of a config: names and numbers, no value that might be data or a secret."""

import re
from collections.abc import Collection
from typing import Any

from pydantic import BaseModel

from anonlib import registry
from anonlib.config import Config
from anonlib.schema import Role

#: Schemes whose paths name a container before the @, and no user.
_CONTAINERS = ("abfs", "abfss", "wasb", "wasbs")


def settings(config: Config) -> dict[str, Any]:
    """The config as private records keep it, an allow-list.

    Left out are conditions, categories, names of controllers and tokens, which are values of the
    table; readers' options and Spark's settings, which may hold passwords; what is secret in paths.
    """
    source, partition, privacy = config.source, config.partition, config.privacy
    measures = () if config.evaluate is None else config.evaluate.measures
    return {
        "source": {
            "format": source.format,
            **({"path": bare(source.path)} if source.path else {}),
            **({"table": source.table} if source.table else {}),
            **({"rows": source.rows} if source.format == "generator" else {}),
            "filtered": source.where is not None,
        },
        "columns": {name: _column(config, name) for name in config.attributes},
        "persons": _persons(config),
        "models": [label(model) for model in config.all_models],
        "joint": privacy.joint,
        "suppression_limit": privacy.suppression_limit,
        "suppress": privacy.suppress,
        "partition": [label(step) for step in partition.steps],
        "max_rows": partition.max_rows,
        "sample_rows": partition.sample_rows,
        "kernel": label(config.kernel),
        "release": {
            "path": bare(config.release.path),
            "mode": config.release.mode,
            **({"register": name} if (name := config.release.catalog_table) else {}),
        },
        "measures": [label(measure) for measure in measures],
        "gates": [gate.text for gate in config.gates],
        "seed": config.seed,
    }


def label(plugin: registry.Plugin) -> str:
    """A plug-in and its parameters in one line; of collections, how much they hold."""
    fields = type(plugin).model_fields
    given = [(info.alias or name, getattr(plugin, name)) for name, info in fields.items()]
    told = [f"{name}={_told(value)}" for name, value in given if value is not None]
    return " ".join([plugin.type, *told])


def bare(path: str) -> str:
    """A path without users, passwords and signatures."""
    scheme, colon, rest = path.partition("://")
    if not colon:
        return re.sub(r"[?;#].*", "…", path, flags=re.S)
    # A password may have a slash, which ends it for those who parse it.
    user, at, place = re.sub(r"[?;#].*", "…", rest, flags=re.S).rpartition("@")
    if at and scheme.lower() in _CONTAINERS:
        return f"{scheme}://{user.partition(':')[0]}@{place}"
    return f"{scheme}://{'…@' if at else ''}{place}"


def _told(value: Any) -> str:
    if isinstance(value, BaseModel):  # a plug-in in a plug-in
        return f"({getattr(value, 'type', '…')})"
    if isinstance(value, Collection) and not isinstance(value, str):
        return f"[{len(value)}]"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _column(config: Config, name: str) -> dict[str, Any]:
    attribute = config.attributes[name]
    found: dict[str, Any] = {"role": str(attribute.role)}
    if attribute.scale is not None:
        found["scale"] = str(attribute.scale)
    if attribute.role is Role.QUASI_IDENTIFIER and attribute.scale is not None:
        found["recoder"] = label(config.recode.of(name, attribute.scale))
    if attribute.pseudonym:
        found["pseudonym"] = True
    if attribute.hierarchy is not None:
        found["hierarchy"] = True
    return found


def _persons(config: Config) -> str:
    if config.unit:
        return f"unit of {len(config.unit)} columns: {', '.join(config.unit)}"
    if config.one_row_per_person is True:
        return "one row per person, declared"
    return f"one row per person: {config.one_row_per_person}"

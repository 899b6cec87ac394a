"""Summaries of a config for records. They hold no value that might be data or a secret."""

import json
import platform
import re
import sys
from collections.abc import Collection, Iterator, Mapping
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel

from anonlib import registry
from anonlib.config.model import (
    AccountabilitySection,
    Attribute,
    Config,
    ContextSection,
    RecodeSection,
)
from anonlib.table.schema import Role
from anonlib.text import count_noun

#: What a person is: the rows that agree on the columns of a unit; a row, as the config declares; or
#: a row, as was checked by a column.
PersonsKind = Literal["unit", "declared", "checked"]
#: Schemes whose paths have a container before the @, not a user.
_CONTAINERS = ("abfs", "abfss", "wasb", "wasbs")


def summarize_config(config: Config) -> dict[str, Any]:
    """Summarizes a config for private records, by a list of fields that are allowed.

    Conditions, categories, names of controllers and missing tokens are left out, since they are
    values of the table. Options of readers and settings of Spark are left out, since they may hold
    passwords. Paths are without secrets.
    """
    source, partition, privacy = config.source, config.partition, config.privacy
    return {
        "source": {
            "format": source.format,
            **({"path": bare(source.path)} if source.path else {}),
            **({"table": source.table} if source.table else {}),
            **({"rows": source.rows} if source.format == "generator" else {}),
            "filtered": source.where is not None,
        },
        "columns": {n: _column(n, a, config.recode) for n, a in config.attributes.items()},
        "persons": _persons(config),
        **({"pseudonyms": config.pseudonyms.scope} if config.pseudonyms else {}),
        "models": [label_plugin(model) for model in config.all_models],
        "joint": privacy.joint,
        **({"acknowledge_linked": True} if privacy.acknowledge_linked else {}),
        "suppression_limit": privacy.suppression_limit,
        "suppress": privacy.suppress,
        "partition": [label_plugin(step) for step in partition.steps],
        "max_rows": partition.max_rows,
        **({"sample_rows": rows} if (rows := partition.sample_rows) else {}),
        "kernel": label_plugin(config.kernel),
        "release": {
            "path": bare(config.release.path),
            "mode": config.release.mode,
            **({"register": name} if (name := config.release.catalog_table) else {}),
        },
        "measures": [label_plugin(measure) for measure in config.measures],
        "gates": [gate.text for gate in config.gates],
        "policy": None if config.policy is None else f"{config.policy.name}: {config.policy.title}",
        "seed": config.seed,
    }


def summarize_specs(config: Config) -> dict[str, Any]:
    """What `summarize_config` says in words of persons, models and measures, in fields: names of
    columns can be any text, so that nothing is to be read from the words."""
    kind, columns = find_persons(config)
    return {
        "persons": {"kind": kind, "columns": [*columns]},
        "models": [summarize_plugin(model) for model in config.all_models],
        "measures": [summarize_plugin(measure) for measure in config.measures],
    }


def find_persons(config: Config) -> tuple[PersonsKind, tuple[str, ...]]:
    """How persons are identified, and the columns that do it."""
    if config.unit:
        return "unit", config.unit
    one = config.one_row_per_person
    return ("checked", (one,)) if isinstance(one, str) else ("declared", ())


def summarize_use(
    accountability: AccountabilitySection, context: ContextSection
) -> dict[str, dict[str, Any]]:
    """Who answers for a release, and who may use it until when, for private records: what is
    given."""
    words = accountability.model_dump(exclude={"runs"})
    sections = {"accountability": words, "context": context.model_dump(mode="json")}
    return {
        name: {key: value for key, value in section.items() if value}
        for name, section in sections.items()
    }


def label_plugin(plugin: registry.Plugin) -> str:
    """A plug-in and its parameters in one line. Only the sizes of collections are shown."""
    fields = type(plugin).model_fields
    values = [(info.alias or name, getattr(plugin, name)) for name, info in fields.items()]
    parameters = [f"{name}={label_value(value)}" for name, value in values if value is not None]
    return " ".join([plugin.type, *parameters])


def summarize_plugin(plugin: registry.Plugin) -> dict[str, Any]:
    """A plug-in and its parameters: numbers as such, others as `label_plugin` has them."""
    fields = type(plugin).model_fields
    values = [(info.alias or name, getattr(plugin, name)) for name, info in fields.items()]
    told = {
        n: v if isinstance(v, int | float) else label_value(v) for n, v in values if v is not None
    }
    return {"type": plugin.type, **told}


def bare(path: str) -> str:
    """A path without users, passwords and signatures."""
    scheme, colon, rest = path.partition("://")
    if not colon:
        return re.sub(r"[?;#].*", "…", path, flags=re.S)
    # A password may contain a slash, where parsers of URLs would end it.
    user, at, place = re.sub(r"[?;#].*", "…", rest, flags=re.S).rpartition("@")
    if at and scheme.lower() in _CONTAINERS:
        return f"{scheme}://{user.partition(':')[0]}@{place}"
    return f"{scheme}://{'…@' if at else ''}{place}"


def label_value(value: Any) -> str:
    """A parameter in a label. Only the size of a collection is shown."""
    if isinstance(value, BaseModel):  # a plug-in in a plug-in
        return f"({getattr(value, 'type', '…')})"
    if isinstance(value, Collection) and not isinstance(value, str):
        return f"[{len(value)}]"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _column(name: str, attribute: Attribute, recode: RecodeSection) -> dict[str, Any]:
    column: dict[str, Any] = {"role": str(attribute.role)}
    if attribute.scale is not None:
        column["scale"] = str(attribute.scale)
    if attribute.role is Role.QUASI_IDENTIFIER and attribute.scale is not None:
        recoder = recode.of(name, attribute.scale)
        column |= {"recoder": label_plugin(recoder), "recoder_spec": summarize_plugin(recoder)}
    if attribute.pseudonym:
        column["pseudonym"] = True
    if attribute.public:
        column["public"] = True
    if attribute.hierarchy is not None:
        column["hierarchy"] = True
    return column


def _persons(config: Config) -> str:
    kind, columns = find_persons(config)
    if kind == "unit":
        return f"unit of {count_noun(len(columns), 'column')}: {', '.join(columns)}"
    if kind == "declared":
        return "one row per person, declared"
    return f"one row per person: {', '.join(columns)}"


#: The packages whose versions are in records.
SOFTWARE = ("anonlib", "pyspark", "delta-spark", "numpy", "pyarrow", "numba", "scikit-learn")


#: Fields of a config that change no row: how a run works, what it tells, who keeps account of it,
#: what is to be looked at.
NO_ROWS = ("spark", "accountability", "context", "events", "review", "bound")


def note_seed(seed: int) -> Iterator[str]:
    """A note if the seed is the default, which all can guess, whoever set it."""
    if seed == Config.model_fields["seed"].default:
        yield f"seed is {seed}, as all can guess: set one of your own, and keep it private"


def describe_config(config: Config) -> dict[str, Any]:
    """What the private record of a release says of its config, and of the software."""
    return {
        "config_sha256": digest_config(config),
        "settings": summarize_config(config),
        "specs": summarize_specs(config),
        **summarize_use(config.accountability, config.context),
        "seed": config.seed,
        "software": list_software(),
    }


def digest_config(config: Config) -> str:
    """SHA-256 of a config, in hex. It includes the contents of hierarchies, and leaves out the
    fields NO_ROWS."""

    def to_json(value: Any) -> Any:
        # pydantic would dump a plug-in with the fields of its declared base class only.
        if isinstance(value, registry.Plugin):
            return registry.spec(value)
        return dict(value) if isinstance(value, BaseModel) else str(value)

    files = digest_hierarchies(config.attributes)
    settings = {name: value for name, value in config if name not in NO_ROWS}
    content = {**settings, **({"hierarchies": files} if files else {})}
    text = json.dumps(content, default=to_json, sort_keys=True)
    return sha256(text.encode()).hexdigest()


def digest_hierarchies(attributes: Mapping[str, Attribute]) -> dict[str, str | None]:
    """By column: SHA-256 of its hierarchy's file, in hex; None if the file can't be read."""
    paths = {name: a.hierarchy for name, a in attributes.items() if a.hierarchy is not None}
    return {name: _digest(Path(path)) for name, path in paths.items()}


def _digest(file: Path) -> str | None:
    try:
        return sha256(file.read_bytes()).hexdigest()
    except OSError:  # the run has read the file before, and must not fail now
        return None


def list_software() -> dict[str, str]:
    """By package: its version, for Python and the packages that a run depends on."""
    return {
        "python": platform.python_version(),
        **{name: find_installed_version(name) for name in SOFTWARE},
    }


def find_installed_version(name: str) -> str:
    """The version of a package; "unknown" if none is installed."""
    try:
        return version(name)
    except PackageNotFoundError:  # spark-submit brings a pyspark that is not installed as a package
        return str(getattr(sys.modules.get(name), "__version__", "unknown"))

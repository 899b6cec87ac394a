"""Reads a config: YAML, overrides, environment variables, plug-ins, validation.

All problems are reported together.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import yaml
from pydantic import ValidationError

from anonlib import registry
from anonlib.config.checks import check_config
from anonlib.config.defaults import DEFAULTS, fill_defaults, list_usual_measures
from anonlib.config.environment import find_secret_variables, interpolate
from anonlib.config.extension import guess_format
from anonlib.config.model import NOT_A_NUMBER, Attribute, Config, EvaluateSection, takes_number
from anonlib.config.overrides import apply_override
from anonlib.config.paths import hint_at_file, locate, locate_all
from anonlib.config.policies import build_policy, list_policies
from anonlib.config.yaml import MAX_BYTES, MAX_DEPTH, check_sizes, read_yaml
from anonlib.errors import (
    ConfigError,
    InputError,
    Problem,
    did_you_mean,
    join_path,
    problems_of,
)
from anonlib.table.schema import Role, Scale

#: A config as verbs take it: a Config, a dict, or the path of a YAML file.
GivenConfig: TypeAlias = Config | Mapping[str, Any] | str | Path

#: Fields of models that may stand elsewhere by mistake.
_OF_MODELS = {"k": "privacy.models.0.k", "l": "privacy.models.1.l"}
#: Fields whose checks read attributes. Their problems may follow from a wrong attribute.
_ON_ATTRIBUTES = (
    *("attributes", "one_row_per_person", "unit", "pseudonyms", "recode.columns"),
    *("privacy.models", "release.partition_by"),
)


def load(path: str | Path, overrides: Sequence[str] = ()) -> Config:
    """Loads a config from a YAML file.

    Args:
        path: The file. Paths in it are relative to its folder; those that begin with `cwd:` are
            relative to the working directory.
        overrides: `key=value` each, with dotted keys and YAML values, as for `--set`. Paths in them
            are relative to the working directory.

    Raises:
        InputError: The path is not one, or the file can't be read, or is not YAML.
        ConfigError: The content is not valid. The error has all problems.
    """
    if not isinstance(path, str | Path):
        raise InputError(
            f"config: load takes the path of a YAML file, not an object of the type "
            f"{type(path).__name__}; anonlib.parse takes a dict"
        )
    return parse(read_raw(path), overrides, Path(path).parent)


def load_columns(
    path: str | Path, names: Sequence[str], overrides: Sequence[str] = ()
) -> tuple[Config, frozenset[str]]:
    """Loads a config only to read some columns, all as nominal quasi-identifiers.

    For tools that read values before the config is complete. Only the sections `source` and
    `spark`, the types of the columns and `privacy.missing_tokens` of the file are used.

    Args:
        path: The file.
        names: The columns.
        overrides: As in `load`.

    Returns:
        The config, and the names of the columns that are sensitive or the target.

    Raises:
        InputError: As in `load`.
        ConfigError: As in `load`.
    """
    raw = read_raw(path)
    problems: list[Problem] = []
    tree = copy_tree(raw if isinstance(raw, Mapping) else {}, "", problems)
    for override in overrides:
        apply_override(tree, override, problems)
    if problems:
        raise ConfigError(problems)

    def entry(section: str, field: str) -> Any:
        fields = tree.get(section)
        value = fields.get(field) if isinstance(fields, dict) else None
        return value if isinstance(value, dict | list) else {}

    columns = {name: entry("attributes", name) for name in names}
    attribute = {"role": "quasi_identifier", "scale": "nominal"}
    minimal: dict[str, Any] = {
        "source": tree.get("source"),
        "spark": tree.get("spark"),
        "attributes": {n: {**attribute, "type": c.get("type")} for n, c in columns.items()},
        "one_row_per_person": True,
        "privacy": {"models": [{"type": "k_anonymity", "k": 2}]},
        "release": {"path": "none://none/none"},  # a place that overlaps with no source
    }
    if isinstance(tokens := entry("privacy", "missing_tokens"), list):
        minimal["privacy"]["missing_tokens"] = tokens
    protected = {n for n, c in columns.items() if c.get("role") in ("sensitive", "target")}
    minimal = interpolate(minimal, problems, secret=find_secret_variables(tree))
    return build_config(minimal, Path(path).parent, problems), frozenset(protected)


def read_raw(path: str | Path, what: str = "config") -> Any:
    """Reads a YAML file. Raises InputError, whose text has no value of the file.

    what: What the file is, for the error.
    """
    try:
        raw = _read(path, what)
    except InputError:
        if not _is_table(Path(path)):
            raise
        raw = None
    if isinstance(raw, Mapping) or not _is_table(Path(path)):
        return raw
    raise InputError(
        f"{what} {path}: this is a table; `anonlib init {path}` drafts a config for it"
    )


def _is_table(path: Path) -> bool:
    """Whether there is a file of rows, by its name. A config may be JSON."""
    return path.is_file() and guess_format(path.name) is not None


def _read(path: str | Path, what: str) -> Any:
    try:
        with Path(path).open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        text = data.decode("utf-8-sig")
    except (OSError, ValueError) as error:
        hint = hint_at_file(path) if isinstance(error, FileNotFoundError) else ""
        raise InputError(f"{what} {path}: can't be read ({_reason(error)}){hint}") from None
    if len(data) > MAX_BYTES:
        raise InputError(f"{what} {path}: larger than {MAX_BYTES:,} bytes")
    try:
        return read_yaml(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f", line {mark.line + 1}" if mark else ""
        reason = getattr(error, "problem", None) or "not valid YAML"
        raise InputError(f"{what} {path}{place}: {reason}") from None


def parse(raw: Any, overrides: Sequence[str] = (), folder: Path | None = None) -> Config:
    """Makes a config from a mapping.

    Args:
        raw: The mapping, as read from YAML. A Config is returned as it is.
        overrides: As in `load`.
        folder: The folder that paths are relative to; by default the working directory.

    Raises:
        ConfigError: The config is not valid. The error has all problems.
    """
    if isinstance(raw, Config):
        return raw
    if raw is None:
        text = "this is empty; a mapping of sections is needed: `anonlib init` drafts one"
        raise ConfigError([Problem("", text)])
    if not isinstance(raw, Mapping):
        raise ConfigError(
            [
                Problem(
                    "",
                    "a config must be a mapping of sections (see `anonlib schema`), the path of a "
                    f"YAML file, or a Config, not a {type(raw).__name__}",
                )
            ]
        )
    if "cases" in raw and not {"source", "attributes"} & {*raw}:
        raise ConfigError(
            [
                Problem(
                    "", "this is a sweep, not a config; `anonlib sweep`, or anonlib.sweep, runs it"
                )
            ]
        )
    problems: list[Problem] = []
    tree = copy_tree(raw, "", problems)
    for override in overrides:
        apply_override(tree, override, problems)
    return build_config(interpolate(tree, problems), folder, problems)


def as_config(config: GivenConfig) -> Config:
    """Turns the argument of a verb into a Config: a Config, a dict, or the path of a YAML file.

    Raises as `load` and `parse`.
    """
    return load(config) if isinstance(config, str | Path) else parse(config)


def build_config(tree: dict[str, Any], folder: Path | None, problems: list[Problem]) -> Config:
    """Makes a config from a tree with overrides and environment variables already applied.

    Args:
        tree: The sections and fields. It is changed.
        folder: As in `parse`.
        problems: Problems so far.

    Raises:
        ConfigError: All problems, including those so far.
    """
    if large := [*check_sizes(tree)]:
        raise ConfigError([*problems, *large])
    tree = locate_all(fill_defaults(tree), folder)
    _build_plugins(tree, problems)
    _build_policy(tree, folder, problems)
    given = tree.get("attributes")
    names = [*given] if isinstance(given, dict) else []
    config = _validate(tree, problems)
    if config is not None:
        problems += _unless_implied(config, names, problems)
    if problems or config is None:
        raise ConfigError(problems)
    return config


def _reason(error: Exception) -> str:
    return error.strerror or "I/O error" if isinstance(error, OSError) else "not UTF-8 text"


def copy_tree(value: object, where: str, problems: list[Problem], depth: int = 0) -> Any:
    """Copies a tree into new dicts and lists, which later steps may change."""
    if depth > MAX_DEPTH:
        problems.append(
            Problem(where, f"nested too deeply; at most {MAX_DEPTH} levels are allowed")
        )
        return None
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, list | tuple):
        return [copy_tree(v, join_path(where, i), problems, depth + 1) for i, v in enumerate(value)]
    if not isinstance(value, Mapping):
        return value
    if not all(isinstance(key, str) for key in value):
        problems.append(Problem(where, "keys must be text; put them in quotes"))
    items = [(key, item) for key, item in value.items() if isinstance(key, str)]
    return {key: copy_tree(item, join_path(where, key), problems, depth + 1) for key, item in items}


def add_usual_measures(config: Config) -> Config:
    """Adds the usual measures to a config without section `evaluate`."""
    if config.evaluate is not None:
        return config
    measures = tuple(cls() for cls in list_usual_measures())
    return config.model_copy(update={"evaluate": EvaluateSection(measures=measures, metrics=None)})


def _build_plugins(tree: dict[str, Any], problems: list[Problem]) -> None:
    """Replaces the specs of plug-ins in the tree by plug-ins."""

    def build_list(family: str, specs: Any, where: str) -> Any:
        if not isinstance(specs, list):
            return specs
        return tuple(
            build_plugin(family, spec, f"{where}.{i}", problems) for i, spec in enumerate(specs)
        )

    tree["kernel"] = build_plugin("kernel", tree["kernel"], "kernel", problems)
    for section, field, family in (
        ("privacy", "models", "privacy model"),
        ("partition", "steps", "partitioner"),
        ("evaluate", "measures", "measure"),
    ):
        if isinstance(tree.get(section), dict) and field in tree[section]:
            where = f"{section}.{field}"
            tree[section][field] = build_list(family, tree[section][field], where)
    recode = tree["recode"]
    if isinstance(recode, dict):
        for scale in ("continuous", "ordinal", "nominal"):
            recode[scale] = build_plugin("recoder", recode[scale], f"recode.{scale}", problems)
        if isinstance(columns := recode.get("columns"), dict):
            for name, spec in columns.items():
                where = f"recode.columns.{name}"
                columns[name] = build_plugin("recoder", spec, where, problems)


def _build_policy(tree: dict[str, Any], folder: Path | None, problems: list[Problem]) -> None:
    """Replaces the name or the file of a policy in the tree by the policy."""
    given = tree.get("policy")
    if given is None:
        return
    tree["policy"] = None
    where = "policy"
    if isinstance(given, str):
        text = list_policies().get(given)
        if text is None and not given.lower().endswith((".yaml", ".yml")):
            known = f"there are: {', '.join(list_policies())}, or the path of a .yaml file"
            near = did_you_mean(given, list_policies())
            problems.append(Problem("policy", f"unknown policy{near or ';'} {known}"))
            return
        where = f"policy {given}" if text is None else where
        try:
            given = read_raw(locate(given, folder), "policy") if text is None else read_yaml(text)
        except InputError as error:
            problems.append(Problem("policy", str(error)))
            return
    tree["policy"] = build_policy(given, where, problems)  # an empty file is no policy: a problem


def build_plugin(family: str, spec: Any, where: str, problems: list[Problem]) -> Any:
    """Builds a plug-in from its spec.

    Args:
        family: The family.
        spec: The type, or a mapping with `type` and parameters. A plug-in is returned as it is.
        where: The path of the spec in the config.
        problems: Problems are added here. Then another plug-in of the family stands in.
    """
    if isinstance(spec, registry.Plugin):
        return spec
    spec = {"type": spec} if isinstance(spec, str) else spec
    if not isinstance(spec, dict) or not isinstance(spec.get("type"), str):
        known = ", ".join(registry.plugins(family))
        problems.append(Problem(where, f"name a {family} by `type`: {known}"))
        return _stand_in(family)
    try:
        cls = registry.plugin(family, spec["type"], f"{where}.type")
        parameters = {key: value for key, value in spec.items() if key != "type"}
        booleans = [key for key, value in parameters.items() if isinstance(value, bool)]
        if wrong := [key for key in booleans if takes_number(cls, key)]:
            raise ConfigError([Problem(f"{where}.{key}", NOT_A_NUMBER) for key in wrong])
        return registry.construct(cls, parameters, where)
    except ConfigError as error:
        problems.extend(error.problems)
    return _stand_in(family)


def _stand_in(family: str) -> Any:
    """Any plug-in of the family, so that the rest of the config can be checked. No caller gets
    this config, since it has a problem."""
    # The default kernel needs nothing that the rest of the config might lack.
    usual = DEFAULTS["kernel"]["type"]
    known = sorted(registry.plugins(family).values(), key=lambda cls: cls.type != usual)
    ready = [c for c in known if not any(f.is_required() for f in c.model_fields.values())]
    return next((cls.model_construct() for cls in ready or known), None)


def _validate(tree: dict[str, Any], problems: list[Problem]) -> Config | None:
    """Validates a tree. Invalid parts are removed, so that the rest can still be checked.

    Args:
        tree: The tree. Invalid parts are removed from it.
        problems: Problems are added here.

    Returns:
        The config without the invalid parts; None if nothing is left.
    """
    reported = {problem.where.removesuffix(".type") for problem in problems}
    for attempt in range(MAX_DEPTH):
        try:
            return Config.model_validate(tree)
        except ValidationError as error:
            if attempt == 0:  # later errors follow from the removals
                problems += [
                    _hint_at_model(problem)
                    for problem in problems_of(error, Config)
                    # Plug-ins that could not be built were reported with their own fields.
                    if not any(_within(where, problem.where) for where in reported)
                ]
            for item in error.errors(include_url=False, include_input=False, include_context=False):
                if not _remove(tree, item["loc"][: -1 if item["type"] == "missing" else None]):
                    return None
    return None


def _hint_at_model(problem: Problem) -> Problem:
    """The problem, which says where k and l stand if they stand elsewhere."""
    place = _OF_MODELS.get(problem.where.removeprefix("privacy."))
    if place is None:
        return problem
    return Problem(problem.where, f"unknown field; did you mean {place}, a field of a model?")


def _remove(tree: dict[str, Any], loc: Sequence[int | str]) -> bool:
    """Removes the value at `loc`. Returns whether there was one."""
    node: Any = tree
    for part in loc[:-1]:
        below = node.get(part) if isinstance(node, dict) else None
        if not isinstance(below, dict):  # in a list, all items are removed
            return isinstance(node, dict) and node.pop(part, None) is not None
        node = below
    return bool(loc) and isinstance(node, dict) and node.pop(loc[-1], None) is not None


def _unless_implied(
    config: Config, names: Sequence[str], others: Sequence[Problem]
) -> list[Problem]:
    """The problems of a config that do not merely follow from earlier ones, which are `others`.

    names: The columns under `attributes`, also those that were removed since they are wrong.
    """
    places = {_place(problem.where) for problem in others}
    wrong_attributes = any(place.startswith("attributes") for place in places)
    wrong_measures = any(place.startswith("evaluate") for place in places)
    wrong = [n for n in names if any(_within(p.where, f"attributes.{n}") for p in others)]
    lasting = _find_lasting(config, wrong) if wrong else set()
    return [
        problem
        for problem in check_config(config)
        if _place(problem.where) not in places
        and not (
            wrong_attributes
            and _place(problem.where).startswith(_ON_ATTRIBUTES)
            and problem.where not in lasting
        )
        and not (wrong_measures and problem.where.startswith("gates"))
    ]


def _find_lasting(config: Config, wrong: Sequence[str]) -> set[str]:
    """The places of the problems that a config has whatever role and scale the wrong attributes
    have."""
    found = []
    others = [(role, None) for role in Role if role is not Role.QUASI_IDENTIFIER]
    for role, scale in [*others, *((Role.QUASI_IDENTIFIER, scale) for scale in Scale)]:
        stand_in = Attribute.model_validate({"role": role, "scale": scale})
        attributes = {**config.attributes, **dict.fromkeys(wrong, stand_in)}
        changed = config.model_copy(update={"attributes": attributes})
        found.append({problem.where for problem in check_config(changed)})
    return set.intersection(*found)


def _place(where: str) -> str:
    """The section and field of a problem.

    `unit` and `one_row_per_person` are one place, since both say what a person is. The whole kernel
    is one place, since another kernel stands in for a wrong one.
    """
    if where.startswith("kernel"):
        return "kernel"
    if where.startswith("unit"):
        return "one_row_per_person"
    return ".".join(where.split(".")[:2])


def _within(where: str, other: str) -> bool:
    return bool(other) and (where == other or where.startswith(f"{other}."))

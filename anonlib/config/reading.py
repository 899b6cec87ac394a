"""Reading a config: YAML, overrides, environment, plug-ins, validation - and every problem of all
of these in one report."""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from anonlib import registry
from anonlib.config.checks import check_config
from anonlib.config.environment import find_secret_variables, interpolate
from anonlib.config.model import NOT_A_NUMBER, Config, EvaluateSection, takes_number
from anonlib.config.yaml import MAX_BYTES, MAX_DEPTH, apply_override, check_sizes, read_yaml
from anonlib.errors import ConfigError, InputError, Problem, join_path, problems_of
from anonlib.kernels import Kernel
from anonlib.measure import Measure

DEFAULTS: dict[str, Any] = {
    "partition": {"steps": [{"type": "kmeans"}]},
    "kernel": {"type": "mdav"},
    "recode": {"continuous": "centroid", "ordinal": "median", "nominal": "mode"},
}
#: The same with a kernel that generalizes along hierarchies.
GENERALIZING: dict[str, Any] = {
    "partition": {"steps": [{"type": "tuples"}]},
    "recode": {**DEFAULTS["recode"], "nominal": "lca"},
}
#: Where the checks look at attributes, so find what a wrong attribute entails.
_ON_ATTRIBUTES = (
    *("attributes", "one_row_per_person", "unit", "pseudonyms", "recode.columns"),
    *("privacy.models", "release.partition_by"),
)


def load(path: str | Path, overrides: Sequence[str] = ()) -> Config:
    """The config in a YAML file, with `key=value` overrides (dotted keys, YAML values).

    Raises InputError when the file can't be read or is no YAML, ConfigError with all problems
    when its content is wrong.
    """
    return parse(read_raw(path), overrides, Path(path).parent)


def load_columns(
    path: str | Path, names: Sequence[str], overrides: Sequence[str] = ()
) -> tuple[Config, frozenset[str]]:
    """The source of the config in a file, and some of its columns, as nominal quasi-identifiers:
    for tools that look at values before the config is done, so the rest of it may be missing or
    wrong. And which of the columns are sensitive or the target. Raises as `load`."""
    raw = read_raw(path)
    problems: list[Problem] = []
    tree = copy_tree(raw if isinstance(raw, Mapping) else {}, "", problems)
    for override in overrides:
        apply_override(tree, override, problems)
    if problems:
        raise ConfigError(problems)

    def given(section: str, field: str) -> Any:
        found = tree.get(section)
        found = found.get(field) if isinstance(found, dict) else None
        return found if isinstance(found, dict | list) else {}

    columns = {name: given("attributes", name) for name in names}
    attribute = {"role": "quasi_identifier", "scale": "nominal"}
    least: dict[str, Any] = {
        "source": tree.get("source"),
        "spark": tree.get("spark"),
        "attributes": {n: {**attribute, "type": c.get("type")} for n, c in columns.items()},
        "one_row_per_person": True,
        "privacy": {"models": [{"type": "k_anonymity", "k": 2}]},
        "release": {"path": "none://none/none"},  # nowhere: in no source
    }
    if isinstance(tokens := given("privacy", "missing_tokens"), list):
        least["privacy"]["missing_tokens"] = tokens
    protected = {n for n, c in columns.items() if c.get("role") in ("sensitive", "target")}
    filled = interpolate(least, problems, secret=find_secret_variables(tree))
    return build_config(filled, None, problems), frozenset(protected)


def read_raw(path: str | Path) -> Any:
    """What the YAML of a config says."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        text = data.decode("utf-8-sig")
    except (OSError, ValueError) as error:
        raise InputError(f"config {path}: can't be read ({_reason(error)})") from None
    if len(data) > MAX_BYTES:
        raise InputError(f"config {path}: larger than {MAX_BYTES:,} bytes")
    try:
        return read_yaml(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f", line {mark.line + 1}" if mark else ""
        what = getattr(error, "problem", None) or "not valid YAML"
        raise InputError(f"config {path}{place}: {what}") from None


def parse(raw: Any, overrides: Sequence[str] = (), folder: Path | None = None) -> Config:
    """The config in a mapping, as YAML would give it; the paths of its hierarchies are relative to
    `folder`, by default the working directory. Raises ConfigError with all problems."""
    if isinstance(raw, Config):
        return raw
    if not isinstance(raw, Mapping):
        raise ConfigError([Problem("", "a config is a mapping of sections; see `anonlib schema`")])
    problems: list[Problem] = []
    tree = copy_tree(raw, "", problems)
    for override in overrides:
        apply_override(tree, override, problems)
    return build_config(interpolate(tree, problems), folder, problems)


def build_config(tree: dict[str, Any], folder: Path | None, problems: list[Problem]) -> Config:
    """The config in a tree that is all texts and numbers, without variables and overrides: what of
    it looks like a variable is none. Raises ConfigError with these problems and all others."""
    if large := [*check_sizes(tree)]:
        raise ConfigError([*problems, *large])
    tree = _with_defaults(tree)
    if folder is not None:
        _locate_hierarchies(tree, folder)
    _build_plugins(tree, problems)
    config = _validate(tree, problems)
    if config is not None:
        problems += _unless_implied(check_config(config), problems)
    if problems or config is None:
        raise ConfigError(problems)
    return config


def _reason(error: Exception) -> str:
    return error.strerror or "I/O error" if isinstance(error, OSError) else "not UTF-8 text"


def copy_tree(value: object, where: str, problems: list[Problem], depth: int = 0) -> Any:
    """The same in fresh dicts and lists, which the steps that follow may change."""
    if depth > MAX_DEPTH:
        problems.append(Problem(where, f"nested too deeply; at most {MAX_DEPTH} levels"))
        return None
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, list | tuple):
        return [copy_tree(v, join_path(where, i), problems, depth + 1) for i, v in enumerate(value)]
    if not isinstance(value, Mapping):
        return value
    if not all(isinstance(key, str) for key in value):
        problems.append(Problem(where, "keys are text; put the others in quotes"))
    items = [(key, item) for key, item in value.items() if isinstance(key, str)]
    return {key: copy_tree(item, join_path(where, key), problems, depth + 1) for key, item in items}


def _with_defaults(tree: dict[str, Any]) -> dict[str, Any]:
    """What is left out, or left empty, filled in."""
    result = {key: value for key, value in tree.items() if value is not None}
    kernel = result.get("kernel", DEFAULTS["kernel"])
    name = kernel.get("type") if isinstance(kernel, dict) else kernel
    defaults = DEFAULTS | (GENERALIZING if _generalizes(name) else {})
    for key, default in defaults.items():
        given = result.setdefault(key, {})
        if isinstance(given, dict) and (key != "kernel" or not given):
            result[key] = {**default, **given}
    if isinstance(evaluate := result.get("evaluate"), dict):
        evaluate.setdefault("measures", [{"type": cls.type} for cls in _usual_measures()])
    return result


def add_usual_measures(config: Config) -> Config:
    """The config, with the usual measures if it says nothing of any."""
    if config.evaluate is not None:
        return config
    measures = tuple(cls() for cls in _usual_measures())
    return config.model_copy(update={"evaluate": EvaluateSection(measures=measures, metrics=None)})


def _usual_measures() -> list[type[Measure]]:
    """What is measured where a config names no measures."""
    known = registry.plugins("measure").values()
    return [cls for cls in known if issubclass(cls, Measure) and cls.usual]


def _generalizes(kernel: Any) -> bool:
    known = registry.plugins("kernel")
    found = known.get(kernel) if isinstance(kernel, str) else None
    return found is not None and issubclass(found, Kernel) and found.needs_hierarchies


def _locate_hierarchies(tree: dict[str, Any], folder: Path) -> None:
    attributes = tree.get("attributes")
    for attribute in attributes.values() if isinstance(attributes, dict) else ():
        path = attribute.get("hierarchy") if isinstance(attribute, dict) else None
        if path and isinstance(path, str):
            attribute["hierarchy"] = str(folder / path)


def _build_plugins(tree: dict[str, Any], problems: list[Problem]) -> None:
    """Replaces every plug-in named in the tree by the plug-in itself."""

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


def build_plugin(family: str, spec: Any, where: str, problems: list[Problem]) -> Any:
    """The plug-in that `spec` names; what is wrong with it is added to `problems`, and another one
    stands in for it."""
    if isinstance(spec, registry.Plugin):
        return spec
    spec = {"type": spec} if isinstance(spec, str) else spec
    if not isinstance(spec, dict) or not isinstance(spec.get("type"), str):
        known = ", ".join(registry.plugins(family))
        problems.append(Problem(where, f"name a {family} by `type`: {known}"))
        return _stand_in(family)
    try:
        cls = registry.plugin(family, spec["type"], f"{where}.type")
        given = {key: value for key, value in spec.items() if key != "type"}
        flags = [key for key in given if isinstance(given[key], bool) and takes_number(cls, key)]
        if flags:
            raise ConfigError([Problem(f"{where}.{key}", NOT_A_NUMBER) for key in flags])
        return registry.construct(cls, given, where)
    except ConfigError as error:
        problems.extend(error.problems)
    return _stand_in(family)


def _stand_in(family: str) -> Any:
    """Something of the family, so that the rest is checked; its config is never returned."""
    # The default kernel asks for nothing that the rest of the config might lack.
    usual = DEFAULTS["kernel"]["type"]
    known = sorted(registry.plugins(family).values(), key=lambda cls: cls.type != usual)
    ready = [c for c in known if not any(f.is_required() for f in c.model_fields.values())]
    return next((cls.model_construct() for cls in ready or known), None)


def _validate(tree: dict[str, Any], problems: list[Problem]) -> Config | None:
    """The config, if need be without its wrong parts, so that the rest is checked all the same;
    None when nothing is left."""
    reported = {problem.where.removesuffix(".type") for problem in problems}
    for attempt in range(MAX_DEPTH):
        try:
            return Config.model_validate(tree)
        except ValidationError as error:
            if attempt == 0:  # later errors come from what was taken out
                problems += [
                    problem
                    for problem in problems_of(error, Config)
                    # A plug-in that could not be built has been reported with its own fields.
                    if not any(_within(where, problem.where) for where in reported)
                ]
            for item in error.errors(include_url=False, include_input=False, include_context=False):
                if not _remove(tree, item["loc"][: -1 if item["type"] == "missing" else None]):
                    return None
    return None


def _remove(tree: dict[str, Any], loc: Sequence[int | str]) -> bool:
    """Takes out what is at `loc`; whether there was something to take out."""
    node: Any = tree
    for part in loc[:-1]:
        below = node.get(part) if isinstance(node, dict) else None
        if not isinstance(below, dict):  # a list loses all its items
            return isinstance(node, dict) and node.pop(part, None) is not None
        node = below
    return bool(loc) and isinstance(node, dict) and node.pop(loc[-1], None) is not None


def _unless_implied(found: Iterable[Problem], reported: Sequence[Problem]) -> list[Problem]:
    """The problems that are not mere consequences of those reported before."""
    places = {_place(problem.where) for problem in reported}
    blurred = any(place.startswith("attributes") for place in places)
    return [
        problem
        for problem in found
        if _place(problem.where) not in places
        and not (blurred and _place(problem.where).startswith(_ON_ATTRIBUTES))
    ]


def _place(where: str) -> str:
    """The section and field of a problem; the two ways to say what a person is are one place, and
    so is the kernel: if it is wrong, another one stands in for it."""
    if where.startswith("kernel"):
        return "kernel"
    if where.startswith("unit"):
        return "one_row_per_person"
    return ".".join(where.split(".")[:2])


def _within(where: str, other: str) -> bool:
    return bool(other) and (where == other or where.startswith(f"{other}."))

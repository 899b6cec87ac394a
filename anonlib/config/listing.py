"""Descriptions of plug-ins, read from their classes, for listings."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from anonlib import registry
from anonlib.config.defaults import DEFAULTS
from anonlib.errors import ConfigError, InputError
from anonlib.measure import Measure
from anonlib.registry import Plugin

#: By verb of the command line: the family that it lists.
LISTED = {
    "kernels": "kernel",
    "models": "privacy model",
    "partitioners": "partitioner",
    "recoders": "recoder",
    "measures": "measure",
}
_DEFAULT_OF = {
    ("kernel", DEFAULTS["kernel"]["type"]): "default",
    ("partitioner", DEFAULTS["partition"]["steps"][0]["type"]): "default",
    **{("recoder", name): f"default, {scale}" for scale, name in DEFAULTS["recode"].items()},
}
_BOUNDS = {"minimum": ">=", "exclusiveMinimum": ">", "maximum": "<=", "exclusiveMaximum": "<"}


@dataclass(frozen=True)
class Parameter:
    """A parameter of a plug-in, as texts in the form of a config.

    Attributes:
        name: Its key in configs.
        default: Its default; None if it is required.
        allowed: Its type and range.
        description: Its meaning.
    """

    name: str
    default: str | None
    allowed: str
    description: str


@dataclass(frozen=True)
class PluginInfo:
    """The description of a plug-in.

    Attributes:
        type: Its name in configs.
        default_of: What it is the default of, if it is: configs, or columns of a scale.
        summary: The first paragraph of its docstring.
        parameters: Its parameters, in order.
        figures: By name of a measure's figure: its meaning. Empty for other plug-ins.
        cost: Its running time in n, k and d; empty if the family has none.
        reference: Where it is published; empty if the family has none.
    """

    type: str
    default_of: str
    summary: str
    parameters: tuple[Parameter, ...]
    figures: Mapping[str, str]
    cost: str
    reference: str


def list_plugins(family: str) -> tuple[PluginInfo, ...]:
    """All plug-ins of a family, by name."""
    return tuple(map(_describe, registry.plugins(family).values()))


def describe_plugin(family: str, name: str) -> PluginInfo:
    """One plug-in of a family. Raises InputError if there is no such plug-in."""
    try:
        return _describe(registry.plugin(family, name))
    except ConfigError as error:
        raise InputError(error.line) from None


def _describe(cls: type[Plugin]) -> PluginInfo:
    return PluginInfo(
        cls.type,
        _DEFAULT_OF.get((cls.family, cls.type), ""),
        take_first_paragraph(cls),
        tuple(_parameters(cls)),
        cls.names if issubclass(cls, Measure) else {},
        getattr(cls, "cost", ""),
        getattr(cls, "reference", ""),
    )


def take_first_paragraph(plugin: type[Plugin]) -> str:
    """The first paragraph of a plug-in's docstring, as one line."""
    return " ".join((plugin.__doc__ or "").strip().split("\n\n")[0].split())


def _parameters(plugin: type[Plugin]) -> Iterator[Parameter]:
    schema = plugin.model_json_schema()
    for name, field in schema.get("properties", {}).items():
        default = _yaml(field["default"]) if "default" in field else None
        yield Parameter(name, default, _describe_range(field), field.get("description", ""))


def _describe_range(field: dict[str, Any]) -> str:
    """The type and range of a parameter, from its JSON schema."""
    if "anyOf" in field:
        return " | ".join(_describe_range(each) for each in field["anyOf"])
    if "enum" in field:
        return " | ".join(_yaml(each) for each in field["enum"])
    if field.get("type") == "boolean":
        return "true | false"
    bounds = [f"{sign} {_yaml(field[key])}" for key, sign in _BOUNDS.items() if key in field]
    return " ".join([str(field.get("type", "any")), ", ".join(bounds)]).strip()


def _yaml(value: Any) -> str:
    """A value as YAML."""
    if value is None:
        return "null"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_yaml, value))}]"
    return str(value).lower() if isinstance(value, bool) else str(value)

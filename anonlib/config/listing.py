"""Descriptions of plug-ins, read from their classes, for listings."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from anonlib import registry
from anonlib.measure import Measure
from anonlib.registry import Plugin

#: the verb of the command line -> the family that it lists
LISTED = {
    "kernels": "kernel",
    "models": "privacy model",
    "partitioners": "partitioner",
    "recoders": "recoder",
    "measures": "measure",
}
_BOUNDS = {"minimum": ">=", "exclusiveMinimum": ">", "maximum": "<=", "exclusiveMaximum": "<"}


@dataclass(frozen=True)
class Parameter:
    """A parameter of a plug-in, in texts as a config writes them.

    Attributes:
        name: its key in configs.
        default: its default; None where it is required.
        allowed: its type and range.
        description: what it is.
    """

    name: str
    default: str | None
    allowed: str
    description: str


@dataclass(frozen=True)
class PluginInfo:
    """Description of a plug-in.

    Attributes:
        type: its name in configs.
        summary: the first paragraph of its docstring.
        parameters: its parameters, in order.
        figures: of a measure, name -> meaning of its figures; else empty.
        cost: its running time in n, k and d; empty where the family has none.
        reference: where it is published; empty where the family has none.
    """

    type: str
    summary: str
    parameters: tuple[Parameter, ...]
    figures: Mapping[str, str]
    cost: str
    reference: str


def list_plugins(family: str) -> tuple[PluginInfo, ...]:
    """All plug-ins of a family, by name."""
    return tuple(
        PluginInfo(
            cls.type,
            first_paragraph(cls),
            tuple(_parameters(cls)),
            cls.names if issubclass(cls, Measure) else {},
            getattr(cls, "cost", ""),
            getattr(cls, "reference", ""),
        )
        for cls in registry.plugins(family).values()
    )


def first_paragraph(plugin: type[Plugin]) -> str:
    """The first paragraph of a plug-in's docstring, in one line."""
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
    """A value as YAML writes it."""
    if value is None:
        return "null"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_yaml, value))}]"
    return str(value).lower() if isinstance(value, bool) else str(value)

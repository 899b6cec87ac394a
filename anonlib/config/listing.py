"""What plug-ins say about themselves, read from their classes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from anonlib import registry
from anonlib.measure import Measure
from anonlib.registry import Plugin

#: the verb that lists it -> the family
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
    """A parameter as a config would write it; `default` is None where it must be given."""

    name: str
    default: str | None
    allowed: str
    description: str


@dataclass(frozen=True)
class PluginInfo:
    """A plug-in. figures: what those that a measure finds mean, by name; cost: its running time in
    n, k and d. Both are empty where the family has none."""

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
    """The first paragraph of its documentation, in one line."""
    return " ".join((plugin.__doc__ or "").strip().split("\n\n")[0].split())


def _parameters(plugin: type[Plugin]) -> Iterator[Parameter]:
    schema = plugin.model_json_schema()
    for name, field in schema.get("properties", {}).items():
        default = _written(field["default"]) if "default" in field else None
        yield Parameter(name, default, _allowed(field), field.get("description", ""))


def _allowed(field: dict[str, Any]) -> str:
    """What a parameter may be, from its JSON schema."""
    if "anyOf" in field:
        return " | ".join(_allowed(each) for each in field["anyOf"])
    if "enum" in field:
        return " | ".join(_written(each) for each in field["enum"])
    if field.get("type") == "boolean":
        return "true | false"
    bounds = [f"{sign} {_written(field[key])}" for key, sign in _BOUNDS.items() if key in field]
    return " ".join([str(field.get("type", "any")), ", ".join(bounds)]).strip()


def _written(value: Any) -> str:
    """A value as YAML has it."""
    if value is None:
        return "null"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_written, value))}]"
    return str(value).lower() if isinstance(value, bool) else str(value)

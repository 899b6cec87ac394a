"""The JSON schema of configs, for editors. It has the fields of `model.py` and all plug-ins."""

from collections.abc import Iterator
from typing import Any

from anonlib import registry
from anonlib.config.defaults import DEFAULTS
from anonlib.config.listing import take_first_paragraph
from anonlib.config.model import Config
from anonlib.config.policies import list_policies
from anonlib.registry import Plugin

#: By name of a base class, as in the schema's definitions: the family of plug-ins.
_FAMILIES = {
    "Kernel": "kernel",
    "Partitioner": "partitioner",
    "PrivacyModel": "privacy model",
    "Recoder": "recoder",
    "Measure": "measure",
}
#: Options of Spark. Numbers and booleans of YAML become texts.
_OPTION = {"type": ["string", "number", "boolean"]}


def make_json_schema() -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of configs."""
    schema = Config.model_json_schema()
    definitions: dict[str, Any] = schema["$defs"]
    for name, family in _FAMILIES.items():
        definitions[name] = _choice(family, definitions)
    for section, field in (("SourceSection", "options"), ("SparkSection", "conf")):
        definitions[section]["properties"][field]["additionalProperties"] = _OPTION
    names = ", ".join(list_policies())
    for name in ("Policy", "Rule"):
        del definitions[name]
    schema["properties"]["policy"] = {
        "description": schema["properties"]["policy"]["description"],
        "anyOf": [
            {"type": "string", "description": f"{names}, or the path of a file"},
            {"type": "object", "description": "a policy as in a file: name, title, rules"},
        ],
    }
    _apply_defaults(schema, definitions)
    for definition in [schema, *definitions.values()]:
        _tidy(definition)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "anonlib config",
        "description": "One run of anonlib: what is read, how it is anonymized, where it goes. "
        "Paths are relative to the folder of the file, or with cwd: before them to the working "
        "directory.",
    }


def _choice(family: str, definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema of a plug-in of a family: a name, or a type with parameters."""
    plugins = registry.plugins(family)
    optional = [name for name, cls in plugins.items() if not _list_required(cls)]
    choices = [_plugin(cls, definitions) for cls in plugins.values()]
    names = [{"enum": optional, "description": "by name, with its defaults"}] if optional else []
    return {"description": f"a {family}", "oneOf": [*names, *choices]}


def _plugin(cls: type[Plugin], definitions: dict[str, Any]) -> dict[str, Any]:
    schema = cls.model_json_schema(ref_template=f"#/$defs/{cls.__name__}.{{model}}")
    for name, definition in schema.pop("$defs", {}).items():
        definitions[f"{cls.__name__}.{name}"] = definition
    return {
        "type": "object",
        "title": cls.type,
        "description": take_first_paragraph(cls),
        "properties": {"type": {"const": cls.type}, **schema.get("properties", {})},
        "required": ["type", *_list_required(cls)],
        "additionalProperties": False,
    }


def _list_required(cls: type[Plugin]) -> list[str]:
    return [name for name, field in cls.model_fields.items() if field.is_required()]


def _apply_defaults(schema: dict[str, Any], definitions: dict[str, Any]) -> None:
    """Makes fields optional if `reading.py` fills them with defaults."""
    for name, default in DEFAULTS.items():
        schema["properties"][name]["default"] = default
        section = definitions.get(f"{name.capitalize()}Section", {})
        for field in default:
            if field in section.get("properties", {}):
                section["properties"][field]["default"] = default[field]
        section["required"] = [f for f in section.get("required", []) if f not in default]
    schema["required"] = [name for name in schema["required"] if name not in DEFAULTS]


def _tidy(node: Any) -> None:
    """Removes the titles that pydantic makes of field names, and an empty `required`."""
    for part in _parts(node):
        properties = part.get("properties")
        for field in properties.values() if isinstance(properties, dict) else ():
            field.pop("title", None)
        if part.get("required") == []:
            del part["required"]


def _parts(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        yield node
        for value in node.values():
            yield from _parts(value)
    elif isinstance(node, list):
        for value in node:
            yield from _parts(value)

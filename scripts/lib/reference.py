"""Writes the pages of the site that come from docstrings, fields and plug-ins: reference.py DIR."""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel

import anonlib
from anonlib.config.defaults import DEFAULTS
from anonlib.config.listing import LISTED, PluginInfo, describe_plugin, list_plugins
from anonlib.config.model import Attribute, Config, Section

#: Sections and fields that are filled where they are left out.
FILLED = ("kernel", "partition", "recode", "steps", "continuous", "ordinal", "nominal")
#: The kind of each listing, in the plural.
HEADS = {
    "kernels": "Kernels",
    "models": "Privacy models",
    "partitioners": "Partitioners",
    "recoders": "Recoders",
    "measures": "Measures",
}


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    def line(cells: Iterable[str]) -> str:
        texts = [" ".join(cell.split()).replace("|", "\\|") for cell in cells]
        return f"| {' | '.join(texts)} |"

    names = list(heads)
    return "\n".join([line(names), line("---" for _ in names), *map(line, rows)]) + "\n"


def python() -> str:
    verbs = [name for name in anonlib.__all__ if name != "__version__"]
    homes = [f"::: {anonlib._HOMES[name]}.{name}" for name in verbs]
    places = (
        "released_table.Release",
        "suggestion.Suggestion",
        "suggestion.Choice",
        "suggestion.Attempt",
    )
    classes = [f"::: anonlib.in_hand.{name}" for name in places]
    classes.append("::: anonlib.auditing.report.AuditReport")
    return "# Python\n\n" + "\n\n".join([*homes, *classes]) + "\n"


def section(model: type[BaseModel], path: str) -> str:
    """A table of a section's fields, then its sections."""
    rows, below = [], []
    for name, field in model.model_fields.items():
        key = field.alias or name
        inner = [
            each
            for each in (field.annotation, *get_args(field.annotation))
            if isinstance(each, type) and issubclass(each, BaseModel)
        ]
        default = (
            "required"
            if field.is_required()
            else shown(field.get_default(call_default_factory=True))
        )
        if key in FILLED:
            default = find_usual(DEFAULTS, f"{path}.{key}".strip("."))
        about = [(each.__doc__ or "").partition("\n\n")[0].strip() for each in inner]
        rows.append((f"`{key}`", default, field.description or " ".join(about)))
        below += [(each, f"{path}.{key}".strip(".")) for each in inner]
    head = f"## `{path}`\n{(model.__doc__ or '').strip()}\n\n" if path else ""
    parts = [head + table(("field", "default", "meaning"), rows)]
    for each, where in below:
        if issubclass(each, Section):
            parts.append(section(each, where))
    return "\n".join(parts)


def find_usual(tree: Any, path: str) -> str:
    """What a field is filled with."""
    for name in path.split("."):
        tree = tree.get(name) if isinstance(tree, dict) else None
    named = tree.get("type") if isinstance(tree, dict) else tree
    return f"`{named}`" if isinstance(named, str) else ""


def shown(value: Any) -> str:
    if value is None or value == ():
        return ""
    return "" if isinstance(value, BaseModel) else f"`{json.dumps(value)}`"


def config() -> str:
    attribute = section(Attribute, "attributes.COLUMN")
    return (
        "# Config fields\n\n`anonlib schema` prints them as a JSON schema, for editors.\n\n"
        f"{section(Config, '')}\n{attribute}"
    )


def plugin(info: PluginInfo) -> str:
    default = f" ({info.default_of})" if info.default_of else ""
    parts = [f"## `{info.type}`\n{info.summary}{default}\n"]
    rows = [
        (
            f"`{p.name}`",
            "required" if p.default is None else f"`{p.default}`",
            p.allowed,
            p.description,
        )
        for p in info.parameters
    ]
    if rows:
        parts.append(table(("parameter", "default", "allowed", "meaning"), rows))
    if info.figures:
        parts.append(table(("figure", "meaning"), [(f"`{n}`", m) for n, m in info.figures.items()]))
    parts += [f"Cost: {info.cost}\n"] * bool(info.cost)
    parts += [f"Source: {info.reference}\n"] * bool(info.reference)
    return "\n".join(parts)


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    pages = {"python": python(), "config": config()}
    for verb, family in LISTED.items():
        described = [describe_plugin(family, each.type) for each in list_plugins(family)]
        pages[verb] = f"# {HEADS[verb]}\n\n" + "\n".join(map(plugin, described))
    for name, text in pages.items():
        (folder / f"{name}.md").write_text(text, "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""Overrides of a config: `--set key=value`, and the fields of a sweep's grid."""

import copy
import re
from collections.abc import Sequence
from typing import Any

import yaml

from anonlib.config.defaults import fill_defaults
from anonlib.config.paths import from_shell
from anonlib.config.yaml import MAX_DEPTH, MAX_KEY, read_yaml, split_key
from anonlib.errors import Problem

_KEY = re.compile(r'((?:"[^"]+"|[^".=]+)(?:\.(?:"[^"]+"|[^".=]+))*)=', re.DOTALL)

#: Places of plug-ins: a text there is the plug-in's type. * is any name or index.
_PLUGINS = (
    *("kernel", "kernel.start.*", "privacy.models.*", "partition.steps.*"),
    *("partition.steps.*.models.*.*", "evaluate.measures.*", "evaluate.measures.*.models.*"),
    *("recode.continuous", "recode.ordinal", "recode.nominal", "recode.columns.*", "learn.model"),
)
#: Places with a default that a key may lead into.
_DEFAULTS = (
    *("kernel", "partition.steps", "evaluate.measures"),
    *("recode.continuous", "recode.ordinal", "recode.nominal"),
)
#: Mappings whose keys are names, which may be numbers.
_BY_NAME = (
    *("attributes", "recode.columns", "source.options", "source.secrets", "spark.conf", "cases"),
    "partition.steps.*.models",
)


def apply_override(tree: dict[str, Any], text: str, problems: list[Problem]) -> None:
    """Applies one override `a.b.0.c=value` to a tree. Paths in it are of a command line.

    Args:
        tree: The tree. It is changed.
        text: The override. A part of the key in double quotes may contain dots.
        problems: Problems are added here.
    """
    match = _KEY.match(text)
    if match is None:
        problems.append(Problem("--set", "write key=value, for example --set privacy.models.0.k=5"))
        return
    key = match.group(1)
    where = f"--set {key}"
    try:
        parsed = read_yaml(text[match.end() :])
    except yaml.YAMLError as error:
        reason = getattr(error, "problem", None)
        why = f": {reason}" if reason else ""
        problems.append(Problem(where, f"the value is not valid YAML{why}"))
        return
    put(tree, key, from_shell((*split_key(key),), parsed), where, problems)


def put(tree: dict[str, Any], key: str, value: Any, where: str, problems: list[Problem]) -> None:
    """Sets the value at a dotted key. A default on the way is written out, and the name of a
    plug-in becomes a mapping with its `type`. The index after the last of a list appends.

    Args:
        tree: The tree. It is changed.
        key: The dotted key.
        value: The value.
        where: The place of the key, for problems.
        problems: Problems with the key are added here.
    """
    parts = split_key(key)
    if not parts:
        problems.append(Problem(where, "names no field; write a key such as privacy.models.0.k"))
        return
    if len(parts) > MAX_DEPTH:
        problems.append(
            Problem(where[:MAX_KEY], f"nested too deeply; at most {MAX_DEPTH} levels are allowed")
        )
        return
    defaults = fill_defaults(tree)
    node: Any = tree
    for i, part in enumerate(parts):
        index: Any = part
        if isinstance(node, list):
            if not part.isdecimal() or int(part) > len(node):
                problems.append(Problem(where, f"a list index from 0 to {len(node)} is needed"))
                return
            index = int(part)
            if index == len(node):
                node.append(None)
        elif not isinstance(node, dict):
            problems.append(Problem(where, f"{part!r} is below a value that is no mapping or list"))
            return
        if i == len(parts) - 1:
            node[index] = value
        else:
            content = node[index] if isinstance(node, list) else node.get(index)
            node[index] = _expand(content, parts[: i + 1], parts[i + 1], defaults)
            node = node[index]


def _expand(content: Any, place: Sequence[str], following: str, defaults: dict[str, Any]) -> Any:
    """The value at a place as one that the part that follows can be in, if there is such a value.

    defaults: The whole config with defaults.
    """
    if content is None and _is_in(place, _DEFAULTS):
        content = defaults
        for part in place:
            content = content.get(part) if isinstance(content, dict) else None
        content = copy.deepcopy(content)  # defaults are shared
    if isinstance(content, str) and _is_in(place, _PLUGINS):
        return {"type": content}
    if content is None:  # a section may be empty
        return [] if following.isdecimal() and not _is_in(place, _BY_NAME) else {}
    return content


def _is_in(place: Sequence[str], patterns: Sequence[str]) -> bool:
    for pattern in patterns:
        parts = pattern.split(".")
        if len(parts) == len(place) and all(
            own in ("*", part) for own, part in zip(parts, place, strict=True)
        ):
            return True
    return False

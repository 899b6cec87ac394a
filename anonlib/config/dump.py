"""Writes a config as YAML that `load` reads as the same config."""

from enum import Enum
from pathlib import PurePath
from typing import Any

from pydantic import BaseModel

from anonlib import registry
from anonlib.config.model import Config
from anonlib.config.paths import from_shell
from anonlib.config.policies import Policy, make_policy_spec
from anonlib.config.yaml import write_yaml


def format_config(config: Config) -> str:
    """The config as YAML, without fields that have their defaults. Its relative paths, which are
    of the working directory, say so: the text may become a file anywhere."""
    return write_yaml(make_tree(config))


def make_tree(config: Config) -> dict[str, Any]:
    """The sections and fields of `format_config`, as read from YAML."""
    tree: dict[str, Any] = from_shell((), _plain(config))
    return tree


def _plain(value: Any) -> Any:
    if isinstance(value, Policy):
        return make_policy_spec(value)
    if isinstance(value, BaseModel):
        fields = type(value).model_fields
        values = {info.alias or n: (getattr(value, n), info) for n, info in fields.items()}
        kind = {"type": value.type} if isinstance(value, registry.Plugin) else {}
        return (
            kind
            | {
                name: _plain(found)
                for name, (found, info) in values.items()
                if info.is_required() or found != info.get_default(call_default_factory=True)
            }
            | {name: _plain(found) for name, found in (value.model_extra or {}).items()}
        )
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Enum):
        return value.value
    return str(value) if isinstance(value, PurePath) else value

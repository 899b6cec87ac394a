"""A config that is written is read as the same config, with all parameters of its plug-ins."""

from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin

import pytest
import yaml

from anonlib import registry
from anonlib.config.dump import format_config
from anonlib.config.reading import parse
from anonlib.errors import ConfigError

KINDS = ("kernel", "partitioner")


def config(**changes: Any) -> dict[str, Any]:
    attributes = {
        "age": {"role": "quasi_identifier", "scale": "continuous"},
        "town": {"role": "quasi_identifier", "scale": "nominal"},
        "illness": {"role": "sensitive"},
        "label": {"role": "target", "public": True},
    }
    return {
        "source": {"format": "parquet", "path": "/people"},
        "attributes": attributes,
        "one_row_per_person": True,
        "privacy": {"models": [{"type": "k_anonymity", "k": 3}]},
        "release": {"path": "/out"},
        **changes,
    }


def other_values(plugin: type[registry.Plugin]) -> Iterator[tuple[str, Any]]:
    """Parameters of a plug-in, each with a value that is not its default."""
    for name, field in plugin.model_fields.items():
        default = field.get_default(call_default_factory=True)
        if isinstance(default, bool):
            yield name, not default
        elif isinstance(default, int | float):
            yield name, default + 1
        elif get_origin(field.annotation) is Literal:
            yield from ((name, value) for value in get_args(field.annotation) if value != default)


def specs(kind: str) -> Iterator[dict[str, Any]]:
    for type, plugin in sorted(registry.plugins(kind).items()):
        for name, value in other_values(plugin):
            yield {"type": type, name: value}


def read_again(given: dict[str, Any]) -> bool:
    """Whether a config is the same after it was written and read. False if it is none."""
    try:
        made = parse(given)
    except ConfigError:
        return False
    assert parse(yaml.safe_load(format_config(made))) == made
    return True


@pytest.mark.parametrize("kind", KINDS)
def test_parameters_of_plugins(kind: str) -> None:
    read = 0
    for spec in specs(kind):
        changes = {"kernel": spec} if kind == "kernel" else {"partition": {"steps": [spec]}}
        read += read_again(config(**changes))
    assert read >= 5


def test_parameters_of_kernels_within_kernels() -> None:
    starts: list[dict[str, Any]] = [s for s in specs("kernel") if s["type"] != "refine"]
    assert sum(read_again(config(kernel={"type": "refine", "start": [s]})) for s in starts) >= 5
    both = {"type": "refine", "start": [{"type": "vmdav", "gamma": 0.5}, {"type": "mondrian"}]}
    text = format_config(parse(config(kernel=both)))
    assert yaml.safe_load(text)["kernel"]["start"] == both["start"]

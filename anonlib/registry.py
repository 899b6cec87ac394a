"""Plug-ins: found by folder (or entry point), named by `type` in the config.

A plug-in is a frozen pydantic model: its fields are its parameters, with their ranges, and serve
the config's validation, the JSON schema and the listings alike.
"""

import importlib
import inspect
import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, ClassVar, TypeVar, cast

from pydantic import BaseModel, ConfigDict, ValidationError

from anonlib.errors import AnonlibError, ConfigError, Problem, problems_of

#: family of plug-ins -> the packages whose modules define them
FOLDERS: dict[str, tuple[str, ...]] = {
    "kernel": ("anonlib.kernels",),
    "partitioner": ("anonlib.partition",),
    "privacy model": ("anonlib.privacy",),
    "recoder": ("anonlib.recode",),
    "encoding": ("anonlib.encode",),
    "metric": ("anonlib.loss",),
    "measure": ("anonlib.measure.fidelity", "anonlib.measure.risk"),
    "learner": ("anonlib.measure.learners",),
    "audit": ("anonlib.auditing.models",),
}


class Plugin(BaseModel):
    """Base of every plug-in. `type` is its name in the config."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=False)
    family: ClassVar[str]
    type: ClassVar[str]


AnyPlugin = TypeVar("AnyPlugin", bound=Plugin)


class PluginError(AnonlibError):
    """A plug-in of another package can't be loaded, or claims a name that is taken."""

    exit_code = 2


def _in_folder(folder: str) -> list[type[Plugin]]:
    package = importlib.import_module(folder)
    found = []
    for info in pkgutil.iter_modules(package.__path__):
        if info.name.startswith("_"):
            continue
        module = importlib.import_module(f"{package.__name__}.{info.name}")
        found += [
            value
            for value in vars(module).values()
            if inspect.isclass(value)
            and issubclass(value, Plugin)
            and value.__module__ == module.__name__
            and "type" in vars(value)
        ]
    return found


@cache
def plugins(family: str) -> Mapping[str, type[Plugin]]:
    """All plug-ins of a family by name, those of other packages (entry point group
    `anonlib.KIND`, blanks as `_`) included."""
    group = f"anonlib.{family.replace(' ', '_')}"
    foreign = [_loaded(family, entry) for entry in entry_points(group=group)]
    result: dict[str, type[Plugin]] = {}
    own = [plugin for folder in FOLDERS[family] for plugin in _in_folder(folder)]
    for plugin in [*own, *foreign]:
        if plugin.type in result:
            raise PluginError(f"two plug-ins of family {family} are named {plugin.type!r}")
        result[plugin.type] = plugin
    return dict(sorted(result.items()))


def _loaded(family: str, entry: EntryPoint) -> type[Plugin]:
    """Any error of its import is one of its package; there are no data yet that it could tell."""
    try:
        found = entry.load()
    except Exception as error:
        text = f"{family} {entry.name!r} ({entry.value}) can't be loaded: {type(error).__name__}"
        raise PluginError(f"{text}: {error}") from error
    plugin = inspect.isclass(found) and issubclass(found, Plugin) and hasattr(found, "type")
    if not (plugin and found.family == family):
        text = f"{entry.name!r} ({entry.value}) is not the class of a {family} that has a `type`"
        raise PluginError(text)
    return cast(type[Plugin], found)


def plugin(family: str, name: str, where: str = "") -> type[Plugin]:
    """The plug-in class of that name.

    Raises ConfigError, with the names there are, when there is none.
    """
    known = plugins(family)
    if name not in known:
        text = f"unknown {family} {name!r}; there are: {', '.join(known)}"
        raise ConfigError([Problem(where, text)])
    return known[name]


def spec(plugin: Plugin) -> dict[str, Any]:
    """The plug-in as the config would name it: its `type` and parameters."""
    return {"type": plugin.type, **plugin.model_dump()}


def build(family: str, spec: Mapping[str, Any]) -> Any:
    """The plug-in that `spec` names by its `type`: the inverse of the function `spec`.

    Raises ConfigError, without the parameters' values, when there is no such plug-in or a
    parameter is not valid.
    """
    parameters = {key: value for key, value in spec.items() if key != "type"}
    return construct(plugin(family, spec["type"]), parameters, spec["type"])


def construct(cls: type[AnyPlugin], parameters: Mapping[str, Any], where: str = "") -> AnyPlugin:
    """A plug-in of this class with these parameters; `where` is its path in the config.

    Raises ConfigError, without the parameters' values, with everything that is wrong with them.
    """
    try:
        return cls.model_validate(dict(parameters))
    except ValidationError as error:
        raise ConfigError(problems_of(error, cls, where)) from None

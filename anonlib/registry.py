"""Plug-ins: found by folder or entry point, named by `type` in the config.

A plug-in is a frozen pydantic model. Its fields are its parameters; their ranges and descriptions
serve the validation of configs, the JSON schema and the listings.

A plug-in's file is a module or package in the folder of its family, without a leading underscore.
It holds one or more plug-ins: subclasses of `Plugin`, defined in that module, with a `type` of
their own. Helper modules without plug-ins may lie there too; they are imported with the rest, so
they must be as light (no numba, scikit-learn or pyspark at their top), or begin with an underscore,
which leaves them alone.
"""

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, ClassVar, TypeVar, cast

from pydantic import BaseModel, ConfigDict, ValidationError

from anonlib.errors import (
    PROCESS_ENDS,
    AnonlibError,
    ConfigError,
    ContractError,
    Problem,
    did_you_mean,
    is_spark_error,
    problems_of,
)

#: family of plug-ins -> the folders where their modules are
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
    """Base of every plug-in.

    Attributes:
        family: what kind of plug-in it is, a key of FOLDERS.
        type: its name in configs.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=False)
    family: ClassVar[str]
    type: ClassVar[str]


AnyPlugin = TypeVar("AnyPlugin", bound=Plugin)
Result = TypeVar("Result")


class PluginError(AnonlibError):
    """A plug-in of another package can't be loaded, or has the name of another plug-in."""

    exit_code = 2


def _in_folder(folder: str) -> list[type[Plugin]]:
    package = importlib.import_module(folder)
    classes = []
    for info in pkgutil.iter_modules(package.__path__):
        if info.name.startswith("_"):
            continue
        module = importlib.import_module(f"{package.__name__}.{info.name}")
        classes += [
            value
            for value in vars(module).values()
            if inspect.isclass(value)
            and issubclass(value, Plugin)
            and value.__module__ == module.__name__
            and "type" in vars(value)
        ]
    return classes


@cache
def plugins(family: str) -> Mapping[str, type[Plugin]]:
    """All plug-ins of a family, by name.

    Includes those of other packages, from the entry point group `anonlib.FAMILY`, spaces as `_`.
    Raises PluginError where one of them can't be loaded, lacks something, or two have one name.
    """
    group = f"anonlib.{family.replace(' ', '_')}"
    foreign = [_load(family, entry) for entry in entry_points(group=group)]
    result: dict[str, type[Plugin]] = {}
    own = [plugin for folder in FOLDERS[family] for plugin in _in_folder(folder)]
    for plugin in [*own, *foreign]:
        if plugin.type in result:
            raise PluginError(f"two plug-ins of family {family} have the type {plugin.type!r}")
        if lacking := _list_lacking(plugin):
            raise PluginError(
                f"{family} {plugin.type!r} ({plugin.__module__}:{plugin.__qualname__}) lacks "
                f"{', '.join(lacking)}: its class must define what its family asks for"
            )
        result[plugin.type] = plugin
    return dict(sorted(result.items()))


def _list_lacking(plugin: type[Plugin]) -> list[str]:
    """The methods that a class leaves abstract, and the class variables that it leaves unset."""
    unset = [name for name in plugin.__class_vars__ if not hasattr(plugin, name)]
    return sorted({*getattr(plugin, "__abstractmethods__", ()), *unset})


def _load(family: str, entry: EntryPoint) -> type[Plugin]:
    """The class behind an entry point. The text of an error of its import is safe to show, since
    no data have been read yet."""
    try:
        cls = entry.load()
    except Exception as error:
        raise PluginError(
            f"{family} {entry.name!r} ({entry.value}) can't be loaded: "
            f"{type(error).__name__}: {error}"
        ) from error
    is_plugin = inspect.isclass(cls) and issubclass(cls, Plugin) and hasattr(cls, "type")
    if not (is_plugin and cls.family == family):
        raise PluginError(
            f"{entry.name!r} ({entry.value}) is not the class of a {family} with a `type`"
        )
    return cast(type[Plugin], cls)


def plugin(family: str, name: str, where: str = "") -> type[Plugin]:
    """The class of a plug-in by its name; `where` is its path in the config.

    Raises ConfigError, with all names of the family, when there is no such plug-in.
    """
    known = plugins(family)
    if name not in known:
        near = did_you_mean(name, known)
        text = f"unknown {family} {name!r}{near or ';'} there are: {', '.join(known)}"
        raise ConfigError([Problem(where, text)])
    return known[name]


def spec(plugin: Plugin) -> dict[str, Any]:
    """A plug-in as a config writes it: its `type` and its parameters."""
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


def run_plugin(plugin: Plugin, work: Callable[[], Result]) -> Result:
    """The result of what a plug-in does. Its errors name it.

    Errors of anonlib keep their type and text, and errors of Spark are left to those who know what
    they mean.

    Raises ContractError for any other exception, without its text, which may hold data. The cause
    is kept for `--debug`.
    """
    try:  # nothing before it: this may be done for every few rows
        return work()
    except ContractError as error:
        raise ContractError(f"{plugin.family} {plugin.type}: {error}") from error
    except (AnonlibError, *PROCESS_ENDS):
        raise
    except BaseException as error:
        if is_spark_error(error):
            raise
        kind = type(error).__name__
        raise ContractError(f"{plugin.family} {plugin.type} failed with {kind}") from error

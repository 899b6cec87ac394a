"""Errors that a user can cause or must act on; any other exception is a bug in anonlib.

Their texts name fields, columns, types and counts, never a raw data value.
"""

import ast
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import wraps
from importlib.util import find_spec
from inspect import Parameter, Signature, signature
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NoReturn,
    ParamSpec,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

from pydantic import BaseModel, ValidationError

Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")

#: pydantic's kinds of error -> the text for users, with what pydantic knows of the limit.
_TEXTS = {
    "missing": "required",
    "model_type": "a mapping of fields is needed",
    "model_attributes_type": "a mapping of fields is needed",
    "dict_type": "a mapping is needed",
    "tuple_type": "a list is needed",
    "too_short": "has too few items; at least {min_length} is needed",
    "too_long": "has too many items; at most {max_length} are allowed",
    "string_type": "text is needed; put it in quotes",
    **dict.fromkeys(("int_type", "int_parsing"), "must be an integer"),
    "int_from_float": "must be an integer, without a fraction",
    **dict.fromkeys(("float_type", "float_parsing"), "must be a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "must be true or false"),
    "date_from_datetime_parsing": "there is no such day; a date is needed, such as 2027-11-30",
}
#: Kinds of error of a single value where there is another thing.
_OF_ONE = ("int_type", "float_type", "bool_type", "string_type")
#: By type of a field that takes several: what it takes, in words.
_KINDS: dict[Any, str] = {
    bool: "true or false",
    str: "text",
    int: "an integer",
    float: "a number",
    tuple: "a list",
    dict: "a mapping",
}


#: The fewest letters of which a known name may be the continuation.
LEAST_PREFIX = 3
#: How near a name is to the beginning of a known one that it may mean, from 0 to 1.
LIKENESS = 0.8

#: What is said if Spark's JVM is gone: the process can't read or write any more.
JVM_LOST = (
    "Spark's JVM died during the run: it was killed, or the machine had no memory left; run it "
    "again"
)

#: What is said where a verb needs Spark, and only the core of anonlib is installed.
NO_SPARK = "Spark is not installed: pip install 'anonlib[spark]'"


@dataclass(frozen=True, order=True)
class Problem:
    """One thing that is wrong.

    Attributes:
        where: its place: a path in the config such as `privacy.models.0.k`, a column, or empty.
        text: what is wrong, what is allowed, what to do.
    """

    where: str
    text: str

    def __str__(self) -> str:
        return f"{self.where}: {self.text}" if self.where else self.text


class AnonlibError(Exception):
    """Base of all user errors; `exit_code` is that of the command line."""

    exit_code = 1


class ProblemsError(AnonlibError):
    """Problems that were found together, reported together, sorted and without duplicates."""

    exit_code = 2

    def __init__(self, problems: Sequence[Problem]):
        self.problems = tuple(sorted(set(problems)))
        super().__init__("\n".join(map(str, self.problems)))

    @property
    def line(self) -> str:
        """All problems in one line."""
        return "; ".join(map(str, self.problems))


class ConfigError(ProblemsError):
    """The config is not valid, or does not fit its source."""


class InfeasibleError(ProblemsError):
    """No release of these rows can satisfy the privacy models of the config."""


class InputError(AnonlibError):
    """A file, table or argument can't be used."""

    exit_code = 2


class AuditError(AnonlibError):
    """The audit did not pass; nothing was released."""

    exit_code = 3


class GateError(AnonlibError):
    """A figure of the release is outside the config's gates; nothing was released."""

    exit_code = 4


class StorageError(AnonlibError):
    """Reading or writing failed: no space, no permission, a broken file."""


class PublishedError(StorageError):
    """What a run does after its commit failed: the release is published all the same."""


class BusyError(AnonlibError):
    """Another run holds the lease of the target, or changed the target meanwhile."""


class BlockError(AnonlibError):
    """Work on a block failed; only the type of the cause is named, since its text may hold data."""


class ContractError(AnonlibError):
    """A plug-in failed, or gave what its contract does not allow. The text names it; of a cause it
    has only the type, since its text may hold data."""


#: Errors that end the process, whoever raised them. Rust's panics are none of them, though they are
#: no Exception either.
PROCESS_ENDS = (KeyboardInterrupt, SystemExit, GeneratorExit)


def run_sanitized(what: str, work: Callable[[], Result]) -> Result:
    """The result of `work`, which reads rows in a task; `what` names it in errors.

    Raises BlockError for any exception but PROCESS_ENDS, without its text and cause, which may hold
    data.
    """
    try:
        return work()
    except PROCESS_ENDS:
        raise
    except AnonlibError as error:
        text = str(error)
    except BaseException as error:
        text = f"{what} failed with {type(error).__name__}"
    raise BlockError(text) from None


def describe_unexpected(error: BaseException, more: str) -> str:
    """What is said of an error that is not of anonlib, without its text, which may hold data.

    Args:
        error: The error.
        more: How to see its text.
    """
    if is_jvm_lost(error):
        return JVM_LOST
    if is_spark_missing(error):
        return NO_SPARK
    kind = type(error).__name__
    return f"unexpected {kind}; its text is held back, since it may contain data: {more}"


def is_spark_error(error: BaseException) -> bool:
    """Whether an error is of Spark, or of its absence: others say what it means."""
    of = type(error).__module__.partition(".")[0]
    return of in ("pyspark", "py4j") or is_jvm_lost(error) or is_spark_missing(error)


def is_spark_missing(error: BaseException) -> bool:
    """Whether an import failed because Spark is not installed."""
    name = error.name or "" if isinstance(error, ModuleNotFoundError) else ""
    return name.partition(".")[0] in ("pyspark", "py4j", "delta")


def is_jvm_lost(error: BaseException) -> bool:
    """Whether the connection to Spark's JVM broke: py4j then raises errors of sockets, or one of
    its own."""
    lost = isinstance(error, ConnectionRefusedError | ConnectionResetError)
    return lost or type(error).__name__ == "Py4JNetworkError"


def stand_in(module: str, name: str) -> Callable[..., Any]:
    """A verb of a module that can't be imported without Spark: help and completion show it, with
    its arguments, and a call says what to install."""
    found = find_spec(module)
    text = getattr(found and found.loader, "get_source", lambda _: None)(module) or ""
    verbs = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    (node,) = (node for node in verbs if node.name == name)

    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise InputError(f"anonlib.{name}: {NO_SPARK}")

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__module__, refuse.__doc__ = module, ast.get_docstring(node)
    vars(refuse)["__signature__"] = Signature([*_read_parameters(node.args)])
    return refuse


def _read_parameters(args: ast.arguments) -> Iterator[Parameter]:
    """The parameters that may be named. Their defaults are plain values."""
    required = [None] * (len(args.args) - len(args.defaults))
    named = zip(args.args, [*required, *args.defaults], strict=True)
    by_name = zip(args.kwonlyargs, args.kw_defaults, strict=True)
    for kind, pairs in (
        (Parameter.POSITIONAL_OR_KEYWORD, named),
        (Parameter.KEYWORD_ONLY, by_name),
    ):
        for arg, default in pairs:
            value = Parameter.empty if default is None else ast.literal_eval(default)
            yield Parameter(arg.arg, kind, default=value)


def without_cause(verb: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """The verb, whose errors bring no other error with them: tracebacks and tools that log errors
    show causes, and those of Spark and pandas may quote data.

    An error that is not of anonlib becomes an AnonlibError with its type only. With ANONLIB_DEBUG
    in the environment all errors stay as they are.
    """

    @wraps(verb)
    def public(*args: Arguments.args, **options: Arguments.kwargs) -> Result:
        if os.environ.get("ANONLIB_DEBUG"):
            return verb(*args, **options)
        signature(verb).bind(*args, **options)  # TypeError for arguments that it does not have
        try:
            return verb(*args, **options)
        except PROCESS_ENDS:
            raise
        except AnonlibError as error:
            known = error
        except BaseException as error:
            known = AnonlibError(
                describe_unexpected(error, "ANONLIB_DEBUG=1 in the environment shows it")
            )
        known.__cause__ = known.__context__ = None
        raise known.with_traceback(None)

    return public


def refuse_to_write(path: str | Path, error: OSError) -> InputError:
    """The error for a local file that can't be written."""
    place = Path(path)
    if isinstance(error, FileExistsError):
        return InputError(f"{path}: is there already; name another")
    if place.is_dir():
        return InputError(f"{path}: is a folder; name a file")
    if not place.parent.is_dir():
        return InputError(f"{path}: there is no folder {place.parent}; make it, or name another")
    return InputError(f"{path}: can't be written ({error.strerror or 'I/O error'})")


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """`; did you mean X?` with the known name that is nearest to a name, or else that begins with
    it, or nearly so; empty if there is none."""
    folded = {each.casefold(): each for each in known}
    text = str(name).casefold()
    longer = [each for each in folded if len(text) >= LEAST_PREFIX and each.startswith(text)]
    begins = {each[: len(text)]: each for each in folded if len(text) > LEAST_PREFIX}
    nearly = [begins[start] for start in get_close_matches(text, begins, 1, LIKENESS)]
    found = get_close_matches(text, folded, 1) or longer or nearly
    return f"; did you mean {folded[found[0]]}?" if found else ""


def join_path(where: str, part: int | str) -> str:
    """The path of a field or list item within `where`, as in `privacy.models.0`."""
    return f"{where}.{part}" if where else str(part)


def problems_of(error: ValidationError, model: type[BaseModel], where: str = "") -> list[Problem]:
    """pydantic's errors as problems, without the values that it quotes.

    Args:
        error: raised by the validation of `model`.
        model: names the fields that are allowed.
        where: the path of `model` in the config.
    """
    problems = []
    for item in error.errors(include_url=False):
        # Of a list whose items fail, pydantic counts those that are left: what is wrong is told.
        if item["type"] == "too_short" and len(item["input"]) >= item["ctx"]["min_length"]:
            continue
        loc, several = _leave_union(model, item["loc"])
        if several:
            text = f"must be {several}"
        elif item["type"] == "extra_forbidden":
            allowed = _field_names(model, loc[:-1])
            near = did_you_mean(str(loc[-1]), allowed)
            text = f"unknown field{near or ';'} allowed: {', '.join(allowed) or 'none'}"
        elif item["type"] == "string_pattern_mismatch":
            field = _section(model, loc[:-1]).model_fields.get(str(loc[-1]))
            about = field.description if field is not None else None
            text = f"not valid; {about or item['msg']}"
        elif item["type"] == "missing":
            text = _say_missing(model, loc)
        else:
            text = _say(item)
        if item["input"] is None and item["type"] != "missing":
            text = f"is empty: {text}; give it a value, or leave it out"
        place = where
        for part in loc:
            place = join_path(place, part)
        problems.append(Problem(place, text[:1].lower() + text[1:]))
    return [*dict.fromkeys(problems)]


def _say_missing(model: type[BaseModel], loc: Sequence[int | str]) -> str:
    """That a field is required; of a plug-in, which it is and what the field is."""
    field = model.model_fields.get(str(loc[-1])) if len(loc) == 1 else None
    if field is None or not field.description or not hasattr(model, "type"):
        return _TEXTS["missing"]
    return f"required by {model.type}: {field.description}"


def _say(item: Any) -> str:
    """An error of pydantic in plain words, without the value."""
    kind, value = item["type"], item["input"]
    text = _TEXTS.get(kind)
    if text is None:
        text = item["msg"].removeprefix("Value error, ")
        text = text.replace("Input should", "must").replace("String should", "must")
        if kind in ("enum", "literal_error") and isinstance(value, str):
            text += did_you_mean(value, re.findall("'([^']+)'", text))
        return str(text)
    if kind == "tuple_type" and isinstance(value, str | int | float | dict):
        return f"{text}, also of one: put it in brackets, [...]"
    if kind in _OF_ONE and isinstance(value, list | tuple | dict):
        what = "mapping" if isinstance(value, dict) else "list"
        return f"one value is needed, not a {what}: {text}"
    return text.format(**item.get("ctx", {}))


def _leave_union(
    model: type[BaseModel], loc: tuple[int | str, ...]
) -> tuple[tuple[int | str, ...], str]:
    """The place of a field that takes values of several kinds, and these in words: pydantic has an
    error for each kind, at a place of its own. Any other place as it is, and no words."""
    for i, part in enumerate(loc):
        info = _section(model, loc[:i]).model_fields.get(str(part))
        kinds = () if info is None else get_args(info.annotation)
        union = info is not None and get_origin(info.annotation) in (Union, UnionType)
        named = [kind for kind in kinds if kind is not NoneType]
        if union and len(named) > 1 and i + 1 < len(loc):
            return loc[: i + 1], ", or ".join(map(_describe_kind, named))
    return loc, ""


def _describe_kind(kind: Any) -> str:
    """A type of a field in words, such as `a number, greater than 0`."""
    origin, args = get_origin(kind), get_args(kind)
    if origin is Literal:
        return "one of " + ", ".join(map(str, args))
    if origin is Annotated:
        limits = [f", greater than {m.gt:g}" for m in args[1:] if hasattr(m, "gt")]
        return "".join([_describe_kind(args[0]), *limits])
    if origin is tuple:
        return f"a list of {_KINDS[args[0]]}s" if args[0] is str else "a list"
    return _KINDS.get(origin or kind, "a mapping of fields")


def _field_names(model: type[BaseModel], loc: Iterable[int | str]) -> list[str]:
    """The names of the fields of the section at `loc`, as configs write them."""
    return [f.alias or name for name, f in _section(model, loc).model_fields.items()]


def _section(model: type[BaseModel], loc: Iterable[int | str]) -> type[BaseModel]:
    """The model of the section at `loc`."""
    for part in loc:
        field = model.model_fields.get(str(part))
        if field is None:
            continue
        candidates = [field.annotation, *get_args(field.annotation)]
        models = [c for c in candidates if isinstance(c, type) and issubclass(c, BaseModel)]
        if models:
            model = models[0]
    return model

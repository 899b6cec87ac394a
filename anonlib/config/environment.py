"""Environment variables in configs: ${NAME} and ${NAME:-default}.

A value of the environment can fill in a name, and no more: it can't leave the folder, the quotation
or the option that the config's writer put it in.
"""

import os
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from anonlib.config.paths import CWD, PATHS, SWEEP_PATHS
from anonlib.config.secrets import is_secret_variable
from anonlib.config.yaml import MAX_BYTES, MAX_TEXT, split_key
from anonlib.errors import Problem, join_path

#: The variable with the fields of `accountability` and `context` that every release must have.
REQUIRE = "ANONLIB_REQUIRE"
#: The variable with the path of this installation's table of runs; it goes before the path in a
#: config.
RUNS = "ANONLIB_RUNS"
#: The variable that says where events go, where the config does not.
EVENTS = "ANONLIB_EVENTS"

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
#: Fields that are places. A value at the beginning may be any place, since the writer left the
#: whole place open. Any other value is a name below the text before it: no way up, no glob.
_PLACES = frozenset(path[-1] for path in (*PATHS, *SWEEP_PATHS))
#: Sections of settings. Settings may be places or URLs, so a value at the beginning may be
#: anything, too.
_SETTINGS = frozenset({"options", "conf"})
#: Fields that are SQL. The fields under a sweep's `derive` are SQL, too. A value there is one
#: literal: a number, a text, or a part of the text in quotes around it.
_SQL = frozenset({"where"})
#: Fields and options that name a table or a column. They are SQL if they hold more than a name.
_NAMES = frozenset({"table", "dbtable", "partitioncolumn"})
#: Options of readers (JDBC's) that are SQL, in lower case.
SQL_OPTIONS = frozenset(
    {"query", "dbtable", "preparequery", "sessioninitstatement", "predicates", "partitioncolumn"}
)
#: Fields whose texts name columns or other fields, and are never filled in, as keys are not.
_NAMED_PLACES = frozenset({"review"})
#: Fields whose texts are only compared with texts of the table, or only kept.
_FREE = frozenset({"order", "missing_tokens", "approver", "purpose", "recipients"})
#: By kind of field: the pattern of a value there, and the same in words. "" is any other field.
_WITHIN = {
    "place": (r"[\w .,=+%/-]*", "within a path: letters, digits, / and any of _ . , = + % - only"),
    "setting": (r"[\w.:=+-]*", "within a setting: letters, digits and any of _ . : = + - only"),
    "sql": (
        r"(?!.*--)[\w .:+-]*",
        "in SQL: letters, digits, spaces and any of _ . : + - only, no --",
    ),
    "name": (r"(?!.*--)\w[\w.-]*", "in a name: letters, digits and any of _ . - only, no --"),
    "": (r"[\w .,:=+@-]*", "in a text: letters, digits, spaces and any of _ . , : = + @ - only"),
}
#: The beginning of a path. URLs of databases are no paths.
_PATH = re.compile(r"/|(?!jdbc:)[a-z][a-z0-9+.-]*:/", re.IGNORECASE)
_NAME = re.compile(r"[\w.`-]*")
_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
#: Parts of SQL that make it uncertain, in some database, where a text in quotes begins and ends.
_UNCERTAIN = re.compile(r"--|/\*|[\\#$]")
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`")
_UP = re.compile(r"(?:^|/)\.\.(?=/|$)")
#: Mappings of a sweep whose keys are dotted fields.
_DOTTED = frozenset({"set", "grid"})
_SECRET = "holds a secret, and no value of a config may: "
_NAMED = _SECRET + "`key_env` or `secrets` names it; use another one"
_BY_NAME = _SECRET + (
    "its name says so; name it under key_env or source.secrets instead, or give it another name"
)


def interpolate(
    tree: Any, problems: list[Problem], where: str = "", secret: frozenset[str] = frozenset()
) -> Any:
    """Replaces ${NAME} and ${NAME:-default} in the texts of a tree from the environment.

    The YAML was read before, so a value stays a text, whatever YAML it looks like. Control
    characters, variables that hold secrets, and values that would reach beyond their field are
    refused. Keys stay as they are. So does a text that is the name of a column under `attributes`,
    except in paths, settings and SQL: a column may be called `${HOME}`.

    Args:
        tree: The config, as read from YAML.
        problems: Problems are added here, one for each refusal.
        where: The path of the tree in the config.
        secret: Names of variables that hold secrets, in addition to those that the tree or their
            own names show.

    Returns:
        A new tree.
    """
    columns = frozenset(_find_columns(tree))
    environment = _Environment(find_secret_variables(tree) | secret, columns, problems)
    return environment.fill(tree, where, ())


def _find_columns(tree: Any) -> Iterator[str]:
    """The names of columns whose text a variable could stand in, of a config or of all cases of a
    sweep."""
    for key, below in tree.items() if isinstance(tree, dict) else ():
        if key == "attributes" and isinstance(below, dict):
            yield from (name for name in below if "${" in name)
        else:
            yield from _find_columns(below)


def find_secret_variables(tree: Any) -> frozenset[str]:
    """The variables that `key_env` and `secrets` name, directly or through another variable."""
    names = (
        text
        for keys, text in _texts(tree, ())
        if "key_env" in keys[-1:] or "secrets" in keys[-2:-1]
    )
    return frozenset(
        _VARIABLE.sub(lambda m: os.environ.get(m[1], m[2] or ""), text) for text in names
    )


def _texts(value: Any, keys: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """All texts of a tree, with the keys that lead to them."""
    if isinstance(value, dict):
        for key, below in value.items():
            yield from _texts(below, _below(keys, key))
    elif isinstance(value, list):
        for below in value:
            yield from _texts(below, keys)
    elif isinstance(value, str):
        yield keys, value


def _below(keys: tuple[str, ...], key: str) -> tuple[str, ...]:
    """The keys that lead to what is below a key, without indices of lists."""
    if _DOTTED.isdisjoint(keys):
        return *keys, key
    return *keys, *(part for part in split_key(key) if not part.isdecimal())


@dataclass
class _Environment:
    """Replaces variables in a tree.

    Attributes:
        secret: Names of variables that hold secrets.
        columns: Names of columns that look like variables.
        problems: Problems are added here, one for each refusal.
        left: The number of characters that values may still add to the config.
    """

    secret: frozenset[str]
    columns: frozenset[str]
    problems: list[Problem]
    left: int = MAX_BYTES

    def fill(self, value: Any, where: str, keys: tuple[str, ...]) -> Any:
        """Replaces the variables in a value. `keys` lead to it, and `where` is its path."""
        if isinstance(value, dict):
            return {k: self.fill(v, join_path(where, k), _below(keys, k)) for k, v in value.items()}
        if isinstance(value, list):
            return [self.fill(v, join_path(where, i), keys) for i, v in enumerate(value)]
        if not isinstance(value, str) or "${" not in value:
            return value
        kind = _kind(keys)
        if kind == "column" or (kind == "" and value in self.columns):
            return value
        return self._fill_text(value, where, kind)

    def _fill_text(self, template: str, where: str, kind: str) -> str:
        """Replaces the variables in a text."""
        plain = _VARIABLE.sub("", template)
        if kind == "table":
            kind = "name" if _NAME.fullmatch(plain) else "sql"
        # skeleton: the result, with x for each value of the environment that must be a name
        result, skeleton, end = "", "", 0
        for match in _VARIABLE.finditer(template):
            between = template[end : match.start()]
            name, default = match.groups()
            before = (result + between).removeprefix(CWD if kind == "place" else "")
            text, wrong = self._value(name, default, before, kind)
            if wrong:
                self.problems.append(Problem(where, f"environment variable {name} {wrong}"))
            elif kind == "sql":
                text = _as_sql(text, _VARIABLE.sub("", template[: match.start()]))
            start = kind in ("place", "setting") and not before
            skeleton += between + (text if start or name not in os.environ else "x")
            result += between + text
            end = match.end()
        result, skeleton = result + template[end:], skeleton + template[end:]
        # Spark and Hadoop have similar forms, which read the environment too.
        if kind != "free" and "${" in plain:
            text = "${ begins an environment variable: write ${NAME} or ${NAME:-default}"
            self.problems.append(Problem(where, text))
        elif kind == "sql" and _UNCERTAIN.search(plain):
            text = "SQL with environment variables holds no comment, backslash, # or $; remove it"
            self.problems.append(Problem(where, text))
        if kind != "free" and len(_UP.findall(result)) > len(_UP.findall(skeleton)):
            self.problems.append(
                Problem(where, "environment variables add a way up (..) to the path; remove it")
            )
            result = skeleton  # so that the place gives no second problem
        if kind in ("sql", "name") and result.count("--") > skeleton.count("--"):
            self.problems.append(
                Problem(where, "environment variables add a comment (--) to the SQL; remove it")
            )
        return result

    def _value(self, name: str, default: str | None, before: str, kind: str) -> tuple[str, str]:
        """The value of a variable, and what is wrong with it at this place; empty if nothing."""
        if name in self.secret:
            return "", _NAMED
        if is_secret_variable(name):
            return "", _BY_NAME
        if default is not None and "${" in default:
            return "", "has another variable in its default; write a text there"
        value = os.environ.get(name)
        if value is None and default is None:
            return "", f"is not set; set it, or give a default: ${{{name}:-...}}"
        if value is None and kind != "sql":
            return default or "", ""
        value = value if value is not None else default or ""
        self.left -= len(value)
        if len(before) + len(value) > MAX_TEXT or self.left < 0:
            return "", f"is too long: at most {MAX_TEXT:,} characters, and {MAX_BYTES:,} in all"
        if any(unicodedata.category(c) == "Cc" for c in value):
            return "", "has control characters, such as ends of lines"
        if kind == "free" or (kind in ("place", "setting") and not before):
            return value, ""
        if kind == "setting" and _PATH.match(before):
            kind = "place"
        pattern, allowed = _WITHIN[kind]
        return (value, "") if re.fullmatch(pattern, value) else ("", f"stands {allowed}")


def _as_sql(value: str, before: str) -> str:
    """A value as one literal of SQL, or as a part of a text in quotes that began in `before`."""
    within = bool(re.search("['\"`]", _QUOTED.sub("", before)))
    return value if within or _NUMBER.fullmatch(value) else f"'{value}'"


def _kind(keys: tuple[str, ...]) -> str:
    """The kind of a field: a key of _WITHIN, "table", "free", or "column" for no template."""
    section, field = ("", "", *keys)[-2:]
    if field in _NAMED_PLACES:
        return "column"
    option = section == "options" and field.lower() in SQL_OPTIONS
    if field in _NAMES or (option and field.lower() in _NAMES):
        return "table"
    if field in _SQL or section == "derive" or option:
        return "sql"
    if field in _PLACES:
        return "place"
    if section in _SETTINGS:
        return "setting"
    return "free" if field in _FREE else ""

"""${NAME} in configs: what the environment says is put in its place, and can do no more there than
name what the config's writer left open."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from anonlib.config_limits import MAX_BYTES, MAX_TEXT
from anonlib.config_yaml import join
from anonlib.errors import Problem

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
#: Fields that are a place. A value that begins one may be any place: the writer has left all of it
#: open. Any other is a name below what stands before it: no way up, no glob.
_PLACES = frozenset({"path", "record", "metrics", "hierarchy", "key_file", "out", "config"})
_NAMES = re.compile(r"[\w .,=+%/-]*")
_UP = re.compile(r"(?:^|/)\.\.(?=/|$)")
#: Fields that are SQL, as are a sweep's under `derive`, or name a table. A value can neither end a
#: text in quotes nor begin a comment, a call, a path in backquotes or another statement.
_SQL = frozenset({"where", "table"})
#: The same among the options of readers (JDBC's), in lower case.
_SQL_OPTIONS = frozenset(
    {"query", "dbtable", "preparequery", "sessioninitstatement", "predicates", "partitioncolumn"}
)
_WORDS = re.compile(r"(?!.*--)[\w .:+-]*")


def interpolated(tree: Any, problems: list[Problem], where: str = "") -> Any:
    """The tree with ${NAME} and ${NAME:-default} in its texts replaced from the environment.

    It was read as YAML before, so values stay texts, whatever YAML they look like. Refused are
    values with control characters, those of variables that hold a key, and, in places and in SQL,
    what would reach beyond them.
    """
    environment = _Environment(frozenset(_key_names(tree)), problems)
    return environment.into(tree, where, ())


def _key_names(tree: Any) -> Iterator[str]:
    """The variables that keys are read from, as they are named or by another variable."""
    if isinstance(tree, list):
        tree = dict(enumerate(tree))
    for key, value in tree.items() if isinstance(tree, dict) else ():
        if key == "key_env" and isinstance(value, str):
            yield _VARIABLE.sub(lambda m: os.environ.get(m[1], m[2] or ""), value)
        yield from _key_names(value)


@dataclass
class _Environment:
    """`left` is how many more characters values may add to the config."""

    keys: frozenset[str]
    problems: list[Problem]
    left: int = MAX_BYTES

    def into(self, value: Any, where: str, keys: tuple[str, ...]) -> Any:
        """What is at `where`, which `keys` lead to."""
        if isinstance(value, dict):
            return {k: self.into(v, join(where, k), (*keys, k)) for k, v in value.items()}
        if isinstance(value, list):
            return [self.into(v, join(where, i), keys) for i, v in enumerate(value)]
        if not isinstance(value, str) or "${" not in value:
            return value
        return self._filled(value, where, keys)

    def _filled(self, template: str, where: str, keys: tuple[str, ...]) -> str:
        """A text with its variables replaced."""
        result, known, end = "", "", 0  # known: with what the writer has not left open
        for match in _VARIABLE.finditer(template):
            between = template[end : match.start()]
            name, default = match.groups()
            text, wrong = self._value(name, default, result + between, keys)
            if wrong:
                self.problems.append(Problem(where, f"environment variable {name} {wrong}"))
            start = _place(keys) and not result + between
            known += between + (text if start or name not in os.environ else "x")
            result += between + text
            end = match.end()
        result, known = result + template[end:], known + template[end:]
        if (_place(keys) or _sql(keys)) and "${" in _VARIABLE.sub("", template):
            text = "${ stands for a variable of the environment: ${NAME} or ${NAME:-default}"
            self.problems.append(Problem(where, text))
        if _place(keys) and len(_UP.findall(result)) > len(_UP.findall(known)):
            self.problems.append(Problem(where, "environment variables make a way up (..) in it"))
        if _sql(keys) and result.count("--") > known.count("--"):
            self.problems.append(Problem(where, "environment variables make a comment (--) in it"))
        return result

    def _value(
        self, name: str, default: str | None, before: str, keys: tuple[str, ...]
    ) -> tuple[str, str]:
        """The value of a variable, and what is wrong with it here."""
        if name in self.keys:
            return "", "holds a key, which is never part of a config"
        found = os.environ.get(name)
        if found is None:
            missing = f"is not set (a default is ${{{name}:-...}})"
            return ("", missing) if default is None else (default, "")
        self.left -= len(found)
        if len(before) + len(found) > MAX_TEXT or self.left < 0:
            return "", f"is too long: at most {MAX_TEXT:,} characters, and {MAX_BYTES:,} in all"
        if any(ord(c) < 32 or ord(c) == 127 for c in found):
            return "", "has control characters, such as ends of lines"
        if _place(keys) and before and not _NAMES.fullmatch(found):
            return "", "stands within a path: letters, digits, / and any of _ . , = + % - only"
        if _sql(keys) and not _WORDS.fullmatch(found):
            return "", "stands in SQL: letters, digits, spaces and any of _ . : + - only, no --"
        return found, ""


def _place(keys: tuple[str, ...]) -> bool:
    return bool(keys) and keys[-1] in _PLACES


def _sql(keys: tuple[str, ...]) -> bool:
    section, field = ("", "", *keys)[-2:]
    option = section == "options" and field.lower() in _SQL_OPTIONS
    return field in _SQL or section == "derive" or option

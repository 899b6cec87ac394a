"""${NAME} in configs: what the environment says is put in its place, and can do no more there than
name what the config's writer left open."""

import os
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from anonlib.config.secrets import is_secret_variable
from anonlib.config.yaml import MAX_BYTES, MAX_TEXT, split_key
from anonlib.errors import Problem, join_path

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
#: Fields that are a place. A value that begins one may be any place: the writer has left all of it
#: open. Any other is a name below what stands before it: no way up, no glob.
_PLACES = frozenset(
    {"path", "record", "metrics", "runs", "events", "hierarchy", "key_file", "out", "config"}
)
#: Sections of settings, which may be places or URLs: a value that begins one may be anything, too.
_SETTINGS = frozenset({"options", "conf"})
#: Fields that are SQL, as are a sweep's under `derive`, or name a table. A value can neither end a
#: text in quotes nor begin a comment, a call, a path in backquotes or another statement.
_SQL = frozenset({"where", "table"})
#: The same among the options of readers (JDBC's), in lower case.
SQL_OPTIONS = frozenset(
    {"query", "dbtable", "preparequery", "sessioninitstatement", "predicates", "partitioncolumn"}
)
#: Fields of texts that are compared with those of the table, or kept, and do nothing else.
_FREE = frozenset({"order", "missing_tokens", "approver", "purpose", "recipients"})
#: What a value may be within a place, within a setting, in SQL, and anywhere else, in words too.
_WITHIN = {
    "place": (r"[\w .,=+%/-]*", "within a path: letters, digits, / and any of _ . , = + % - only"),
    "setting": (r"[\w.:=+-]*", "within a setting: letters, digits and any of _ . : = + - only"),
    "sql": (
        r"(?!.*--)[\w .:+-]*",
        "in SQL: letters, digits, spaces and any of _ . : + - only, no --",
    ),
    "": (r"[\w .,:=+@-]*", "in a text: letters, digits, spaces and any of _ . , : = + @ - only"),
}
#: How a path begins; URLs of databases are none.
_PATH = re.compile(r"/|(?!jdbc:)[a-z][a-z0-9+.-]*:/", re.IGNORECASE)
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
    """The tree with ${NAME} and ${NAME:-default} in its texts replaced from the environment.

    It was read as YAML before, so values stay texts, whatever YAML they look like. Refused are
    values with control characters, variables that hold secrets (by their names, as the tree says,
    or as `secret` does), and what would reach beyond the field that it stands in.
    """
    environment = _Environment(find_secret_variables(tree) | secret, problems)
    return environment.into(tree, where, ())


def find_secret_variables(tree: Any) -> frozenset[str]:
    """The variables that keys and secrets are read from, as they are named or by another one."""
    named = (
        text
        for keys, text in _texts(tree, ())
        if "key_env" in keys[-1:] or "secrets" in keys[-2:-1]
    )
    return frozenset(
        _VARIABLE.sub(lambda m: os.environ.get(m[1], m[2] or ""), text) for text in named
    )


def _texts(value: Any, keys: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """All texts, and the keys that lead to them."""
    if isinstance(value, dict):
        for key, below in value.items():
            yield from _texts(below, _below(keys, key))
    elif isinstance(value, list):
        for below in value:
            yield from _texts(below, keys)
    elif isinstance(value, str):
        yield keys, value


def _below(keys: tuple[str, ...], key: str) -> tuple[str, ...]:
    """The keys that lead below a key; places in lists are none."""
    if _DOTTED.isdisjoint(keys):
        return *keys, key
    return *keys, *(part for part in split_key(key) if not part.isdecimal())


@dataclass
class _Environment:
    """`left` is how many more characters values may add to the config."""

    secret: frozenset[str]
    problems: list[Problem]
    left: int = MAX_BYTES

    def into(self, value: Any, where: str, keys: tuple[str, ...]) -> Any:
        """What is at `where`, which `keys` lead to."""
        if isinstance(value, dict):
            return {k: self.into(v, join_path(where, k), _below(keys, k)) for k, v in value.items()}
        if isinstance(value, list):
            return [self.into(v, join_path(where, i), keys) for i, v in enumerate(value)]
        if not isinstance(value, str) or "${" not in value:
            return value
        return self._filled(value, where, _kind(keys))

    def _filled(self, template: str, where: str, kind: str) -> str:
        """A text with its variables replaced."""
        result, known, end = "", "", 0  # known: with what the writer has not left open
        for match in _VARIABLE.finditer(template):
            between = template[end : match.start()]
            name, default = match.groups()
            text, wrong = self._value(name, default, result + between, kind)
            if wrong:
                self.problems.append(Problem(where, f"environment variable {name} {wrong}"))
            start = kind in ("place", "setting") and not result + between
            known += between + (text if start or name not in os.environ else "x")
            result += between + text
            end = match.end()
        result, known = result + template[end:], known + template[end:]
        # Spark and Hadoop have such forms of their own, which read the environment too.
        if kind != "free" and "${" in _VARIABLE.sub("", template):
            text = "${ stands for a variable of the environment: ${NAME} or ${NAME:-default}"
            self.problems.append(Problem(where, text))
        if kind != "free" and len(_UP.findall(result)) > len(_UP.findall(known)):
            self.problems.append(Problem(where, "environment variables make a way up (..) in it"))
            result = known  # where it leads is no other problem
        if kind == "sql" and result.count("--") > known.count("--"):
            self.problems.append(Problem(where, "environment variables make a comment (--) in it"))
        return result

    def _value(self, name: str, default: str | None, before: str, kind: str) -> tuple[str, str]:
        """The value of a variable, and what is wrong with it here."""
        if name in self.secret:
            return "", _NAMED
        if is_secret_variable(name):
            return "", _BY_NAME
        found = os.environ.get(name)
        if found is None:
            missing = f"is not set (a default is ${{{name}:-...}})"
            return ("", missing) if default is None else (default, "")
        self.left -= len(found)
        if len(before) + len(found) > MAX_TEXT or self.left < 0:
            return "", f"is too long: at most {MAX_TEXT:,} characters, and {MAX_BYTES:,} in all"
        if any(unicodedata.category(c) == "Cc" for c in found):
            return "", "has control characters, such as ends of lines"
        if kind == "free" or (kind in ("place", "setting") and not before):
            return found, ""
        if kind == "setting" and _PATH.match(before):
            kind = "place"
        pattern, allowed = _WITHIN[kind]
        return (found, "") if re.fullmatch(pattern, found) else ("", f"stands {allowed}")


def _kind(keys: tuple[str, ...]) -> str:
    """What a value may be at a field: a key of _WITHIN, or "free"."""
    section, field = ("", "", *keys)[-2:]
    option = section == "options" and field.lower() in SQL_OPTIONS
    if field in _SQL or section == "derive" or option:
        return "sql"
    if field in _PLACES:
        return "place"
    if section in _SETTINGS:
        return "setting"
    return "free" if field in _FREE else ""

"""What a config says of databases, secrets and catalogs, checked without them."""

import re
from collections.abc import Iterator

from anonlib.config import Release, Source
from anonlib.config_environment import SQL_OPTIONS
from anonlib.errors import Problem
from anonlib.secret_names import has_secret, is_secret_setting

#: Oracle's drivers take a user and a password before the @ of a URL without //.
_ORACLE = re.compile(r":(?:thin|oci8?):(?!@)(.*)", re.IGNORECASE | re.DOTALL)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
#: What every catalog takes as a name, Hive's included.
_NAME = re.compile(r"[A-Za-z0-9_]{1,128}(\.[A-Za-z0-9_]{1,128}){1,2}")
_BOUNDS = ("partitionColumn", "lowerBound", "upperBound")


def secret_problems(source: Source) -> Iterator[Problem]:
    """Secrets that stand in the config, or are not named as they should be."""
    kept = "name an environment variable that has it under source.secrets"
    for name, value in source.options.items():
        sql = name.lower() in SQL_OPTIONS  # where `token = 1` is a condition
        if is_secret_setting(name):
            yield Problem(f"source.options.{name}", f"is secret: take it out, and {kept}")
        elif (has_secret(value) and not sql) or (name.lower() == "url" and _has_user(value)):
            text = "has a user or a password in it: give the user as an option of its own, and "
            yield Problem(f"source.options.{name}", f"{text}{kept}")
    plain = {name.lower() for name in source.options}
    for name, variable in source.secrets.items():
        where = f"source.secrets.{name}"
        if name.lower() in plain:
            yield Problem(where, "is under source.options too; keep one of them")
        if not _VARIABLE.fullmatch(variable):  # it may be the secret itself: never shown
            text = "must be the name of an environment variable, of letters, digits and _"
            yield Problem(where, text)


def _has_user(url: str) -> bool:
    """Whether a user or a password stands before the host in the URL of a database. A password may
    have a slash."""
    host = re.split(r"[?#;]", url.partition("//")[2], maxsplit=1)[0]
    oracle = _ORACLE.search(url)
    return "@" in host or (oracle is not None and "@" in oracle[1])


def database_problems(source: Source) -> Iterator[Problem]:
    """What is wrong with the options of `format: jdbc`. Spark takes their names in any case."""
    given = {name.lower(): text for name, text in source.options.items()}
    where = "source.options"
    if source.path is not None:
        yield Problem("source.path", "a database is named by options.url; remove it")
    url = given.get("url", "")
    if not url.startswith("jdbc:"):
        text = "required with `format: jdbc`, for example jdbc:postgresql://HOST/DATABASE"
        yield Problem(f"{where}.url", text)
    if ("dbtable" in given) == ("query" in given):
        yield Problem(where, "exactly one of dbtable (a table, or `(SELECT ...) AS t`) and query")
    for name in ("numPartitions", "fetchsize"):
        text = given.get(name.lower(), "1")
        if not (text.isascii() and text.isdigit() and int(text) > 0):
            yield Problem(f"{where}.{name}", "must be a whole number, at least 1")
    yield from _parts(given)


def _parts(given: dict[str, str]) -> Iterator[Problem]:
    """What is wrong with how a table is read in parts."""
    wanted = [*_BOUNDS, "numPartitions"]
    there = [name for name in wanted if name.lower() in given]
    for name in wanted:
        if there and name not in there:
            text = f"required with {', '.join(there)}: a table is read in parts by all four"
            yield Problem(f"source.options.{name}", text)
    if "query" in given and "partitioncolumn" in given:
        text = "a query can't be read in parts: use `dbtable: (SELECT ...) AS t` instead of it"
        yield Problem("source.options.query", text)
    low, high = (_whole(given.get(name.lower(), "")) for name in _BOUNDS[1:])
    if low is not None and high is not None and low >= high:
        yield Problem("source.options.lowerBound", "must be less than upperBound")


def _whole(text: str) -> int | None:
    return int(text) if re.fullmatch(r"[+-]?[0-9]{1,30}", text) else None


def name_problems(release: Release) -> Iterator[Problem]:
    """What is wrong with the name in the catalog."""
    name = release.catalog_table
    if name is not None and not _NAME.fullmatch(name):
        text = "must be [catalog.]schema.table, each of letters, digits and _"
        yield Problem("release.register", text)

"""What a config says of databases, secrets and catalogs, checked without them."""

import re
from collections.abc import Iterator

from anonlib.config import Release, Source
from anonlib.errors import Problem

#: Options with such names are secret, whatever the reader.
_SECRET = re.compile(
    r"passw|passphrase|\bpwd\b|secret|credential|token|(access|account|private).?key", re.I
)
#: A user or a password inside a URL, as drivers take it.
_IN_URL = re.compile(
    r"(passw|pwd|secret|token|credential)[\w.]*\s*=|//[^/?#;]*@|:(thin|oci8?):[^@]+@", re.I
)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
#: What every catalog takes as a name, Hive's included.
_NAME = re.compile(r"[A-Za-z0-9_]{1,128}(\.[A-Za-z0-9_]{1,128}){1,2}")
_BOUNDS = ("partitionColumn", "lowerBound", "upperBound")


def secret_problems(source: Source) -> Iterator[Problem]:
    """Secrets that stand in the config, or are not named as they should be."""
    for name in source.options:
        if _SECRET.search(name):
            text = "is secret: take it out, and name an environment variable that has it under "
            yield Problem(f"source.options.{name}", f"{text}source.secrets")
    plain = {name.lower() for name in source.options}
    for name, variable in source.secrets.items():
        where = f"source.secrets.{name}"
        if name.lower() in plain:
            yield Problem(where, "is under source.options too; keep one of them")
        if not _VARIABLE.fullmatch(variable):  # it may be the secret itself: never shown
            text = "must be the name of an environment variable, of letters, digits and _"
            yield Problem(where, text)


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
    elif _IN_URL.search(url):
        text = "has a user or a password in it: give options.user, and the name of an environment "
        yield Problem(f"{where}.url", f"{text}variable under source.secrets")
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

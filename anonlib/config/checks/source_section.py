"""Checks of `source`: which fields a format takes, options of databases, secrets."""

import re
from collections.abc import Iterator, Mapping

from anonlib.config.environment import SQL_OPTIONS
from anonlib.config.model import SourceSection
from anonlib.config.reader_options import check_reader_options
from anonlib.config.secrets import has_secret, is_secret_setting
from anonlib.errors import Problem, did_you_mean

#: Formats of files and folders.
FILES = ("delta", "parquet", "csv", "json", "orc")
#: Formats that anonlib knows. Spark may have others.
KNOWN = (*FILES, "jdbc", "table", "generator", "dataframe", "text", "avro", "xml")

#: URLs of Oracle's drivers. They have a user and a password before the @, and no //.
_ORACLE = re.compile(r":(?:thin|oci8?):(?!@)(.*)", re.IGNORECASE | re.DOTALL)

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_BOUNDS = ("partitionColumn", "lowerBound", "upperBound")


def check_source(source: SourceSection) -> Iterator[Problem]:
    """Checks the fields of `source`, its options and its secrets."""
    if source.format != source.format.lower():
        yield Problem("source.format", "write it in lower case")
    yield from check_format(source)
    if source.format in ("generator", "dataframe"):
        for field in ("path", "table", "version", "options", "secrets"):
            if getattr(source, field) not in (None, {}):
                yield Problem(
                    f"source.{field}", f"not used with `format: {source.format}`; remove it"
                )
    elif source.format == "table":
        if source.table is None:
            yield Problem("source.table", "required with `format: table`: a catalog table's name")
        if source.path is not None:
            yield Problem("source.path", "a catalog table is named by `table`; remove it")
    else:
        if source.table is not None:
            yield Problem("source.table", "only used with `format: table`; remove it")
        if source.format == "jdbc":
            yield from check_database(source)
        elif not source.path and _needs_path(source):
            yield Problem("source.path", f"required with `format: {source.format}`")
    if source.format != "generator":
        for field in sorted({"rows", "seed"} & source.model_fields_set):
            yield Problem(f"source.{field}", "only used with `format: generator`; remove it")
    if source.version is not None and source.format not in ("delta", "table"):
        yield Problem("source.version", "only Delta tables have versions; remove it")
    yield from check_reader_options(source)
    yield from check_secrets(source)


def check_format(source: SourceSection) -> Iterator[Problem]:
    """A problem if the format is nearly one that anonlib knows: Spark, which may have others, would
    say so late."""
    if source.format.lower() not in KNOWN and (near := did_you_mean(source.format, KNOWN)):
        yield Problem("source.format", f"unknown format{near}")


def _needs_path(source: SourceSection) -> bool:
    """Whether `path` is required: no option says where the rows are."""
    if source.format in FILES:
        return "path" not in map(str.lower, source.options)
    return not source.options


def check_secrets(source: SourceSection) -> Iterator[Problem]:
    """Problems: secrets in the config itself, and wrong names of their variables."""
    for name, value in source.options.items():
        sql = name.lower() in SQL_OPTIONS  # in SQL, `token = 1` is a condition
        if is_secret_setting(name):
            yield Problem(
                f"source.options.{name}",
                "a secret does not belong in a config: remove it, and name an environment "
                "variable that has it under source.secrets",
            )
        elif (has_secret(value) and not sql) or (name.lower() == "url" and _has_user(value)):
            yield Problem(
                f"source.options.{name}",
                "has a user or a password in it: give the user as an option of its own, and "
                "name an environment variable that has the password under source.secrets",
            )
    options = {name.lower() for name in source.options}
    for name, variable in source.secrets.items():
        where = f"source.secrets.{name}"
        if name.lower() in options:
            yield Problem(where, "is under source.options too; remove one of them")
        if not _VARIABLE.fullmatch(variable):  # it may be the secret itself: never shown
            yield Problem(
                where, "must be the name of an environment variable, of letters, digits and _"
            )


def _has_user(url: str) -> bool:
    """Whether the URL of a database has a user or a password before its host. A password may
    contain a slash."""
    host = re.split(r"[?#;]", url.partition("//")[2], maxsplit=1)[0]
    oracle = _ORACLE.search(url)
    return "@" in host or (oracle is not None and "@" in oracle[1])


def check_database(source: SourceSection) -> Iterator[Problem]:
    """Checks the options of `format: jdbc`. Spark ignores the case of their names."""
    options = {name.lower(): text for name, text in source.options.items()}
    where = "source.options"
    if source.path is not None:
        yield Problem("source.path", "a database is named by options.url; remove it")
    if not options.get("url", "").startswith("jdbc:"):
        yield Problem(
            f"{where}.url",
            "required with `format: jdbc`, for example jdbc:postgresql://HOST/DATABASE",
        )
    if ("dbtable" in options) == ("query" in options):
        yield Problem(
            where, "give exactly one of dbtable (a table, or `(SELECT ...) AS t`) and query"
        )
    for name in ("numPartitions", "fetchsize"):
        text = options.get(name.lower(), "1")
        if not (text.isascii() and text.isdigit() and int(text) > 0):
            yield Problem(f"{where}.{name}", "must be a whole number, at least 1")
    yield from _check_parts(options)


def _check_parts(options: Mapping[str, str]) -> Iterator[Problem]:
    """Checks the options for reading a database's table in parts. Names are in lower case."""
    wanted = [*_BOUNDS, "numPartitions"]
    present = [name for name in wanted if name.lower() in options]
    for name in wanted:
        if present and name not in present:
            yield Problem(
                f"source.options.{name}",
                f"required with {', '.join(present)}: to read a table in parts, give all four",
            )
    if "query" in options and "partitioncolumn" in options:
        yield Problem(
            "source.options.query",
            "a query can't be read in parts: use `dbtable: (SELECT ...) AS t` instead",
        )
    low, high = (_whole_number(options.get(name.lower(), "")) for name in _BOUNDS[1:])
    if low is not None and high is not None and low >= high:
        yield Problem("source.options.lowerBound", "must be less than upperBound")


def _whole_number(text: str) -> int | None:
    return int(text) if re.fullmatch(r"[+-]?[0-9]{1,30}", text) else None

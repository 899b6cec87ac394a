"""Checks the options of Spark's readers: none may lose rows, or move values to other columns."""

from collections.abc import Iterator, Mapping

from anonlib.config.model import SourceSection
from anonlib.config.secrets import is_secret_setting
from anonlib.errors import Problem

#: Options of all formats of files. They do not change how the content of a file is read.
_PLACES = frozenset({"path", "basepath", "recursivefilelookup", "pathglobfilter"})
#: Options, in lower case, that let Spark guess or read types: of `14:30` it makes a time of today.
_TYPES = frozenset(
    {"inferschema", "infertimestamp", "preferdate", "dateformat", "timestampformat"}
    | {"timestampntzformat", "timezone", "locale"}
)
#: By format: safe options, in lower case. With them, every row is read or counted as unreadable.
SAFE: Mapping[str, frozenset[str]] = {
    "csv": _PLACES
    | {"header", "sep", "delimiter", "encoding", "charset", "quote", "escape", "comment"}
    | {"multiline", "linesep", "mode"}
    | {"ignoreleadingwhitespace", "ignoretrailingwhitespace", "nullvalue", "emptyvalue"}
    | {"nanvalue", "positiveinf", "negativeinf", "maxcolumns"}
    | {"enforceschema"},
    "json": _PLACES
    | {"multiline", "linesep", "encoding", "charset", "mode", "primitivesasstring"}
    | {"prefersdecimal", "allowcomments", "allowunquotedfieldnames"}
    | {"allowsinglequotes", "allownumericleadingzeros", "allownonnumericnumbers"}
    | {"allowbackslashescapinganycharacter", "allowunquotedcontrolchars"},
    "parquet": _PLACES | {"mergeschema", "datetimerebasemode", "int96rebasemode"},
    "orc": _PLACES | {"mergeschema"},
}
#: Options, in lower case, that leave rows or files out. Refused for all formats but jdbc.
LOSSY = frozenset(
    {"badrecordspath", "ignorecorruptfiles", "ignoremissingfiles", "samplingratio"}
    | {"modifiedbefore", "modifiedafter", "columnnameofcorruptrecord"}
)
#: Prefix of Hadoop's settings of stores, which may be options, too.
_STORES = "fs."
#: Encodings in which every byte below 128 is an ASCII character, and every other one that is a
#: character is one by itself. Java and Python know them.
ONE_BYTE = frozenset(
    {f"windows-{n}" for n in (1250, 1251, 1252, 1253, 1254, 1257)}
    | {f"iso-8859-{n}" for n in (1, 2, 5, 7, 9, 13, 15)}
    | {"latin1"}
)
_ENCODINGS = ONE_BYTE | {"utf-8", "utf8", "us-ascii", "ascii"}


def check_reader_options(source: SourceSection) -> Iterator[Problem]:
    """Checks the options of a reader. Spark ignores the case of their names."""
    if source.format in ("jdbc", "generator", "dataframe"):
        return
    safe = SAFE.get(source.format)
    for name, text in source.options.items():
        where, key = f"source.options.{name}", name.lower()
        if key == "mode":
            yield from _check_mode(text, where, proved=safe is not None and "mode" in safe)
        elif key in LOSSY:
            yield Problem(where, "rows would be lost and nobody told; remove it")
        elif safe is not None and key in _TYPES:
            yield Problem(
                where,
                "Spark guesses no types here; remove it, and give each column its `type`, and a "
                "`layout` if its texts are such as 31.12.1980 or 1.234,5",
            )
        elif not is_known_option(key, safe):
            yield Problem(
                where,
                f"could lose rows or move values; remove it. Options of {source.format} are: "
                f"{', '.join(sorted(safe or ()))}, and fs.* of the store",
            )
    for name in source.secrets:
        if (
            name.lower() == "mode"
            or name.lower() in LOSSY
            or not is_known_option(name.lower(), safe)
        ):
            yield Problem(f"source.secrets.{name}", "is no secret, or could lose rows; remove it")
    if source.format == "csv":
        yield from _check_csv({name.lower(): text for name, text in source.options.items()})


def is_known_option(key: str, safe: frozenset[str] | None) -> bool:
    """Whether an option is harmless. Secret options are: they are for stores.

    Args:
        key: The name of the option, in lower case.
        safe: The safe options of the format; None if they are not known, then all pass.
    """
    return safe is None or key in safe or key.startswith(_STORES) or is_secret_setting(key)


def _check_mode(mode: str, where: str, *, proved: bool) -> Iterator[Problem]:
    """Checks the mode of a reader. `proved`: whether anonlib counts rows that can't be read."""
    mode = mode.strip().upper()
    if mode == "DROPMALFORMED":
        yield Problem(where, "rows would be lost and nobody told; use PERMISSIVE or FAILFAST")
    elif mode == "FAILFAST" and not proved:
        yield Problem(
            where,
            "remove it: with FAILFAST, Spark's event log and UI would show the rows of this "
            "format that can't be read",
        )
    elif mode not in ("PERMISSIVE", "FAILFAST"):
        yield Problem(where, "must be PERMISSIVE or FAILFAST; a row that can't be read ends both")


def _check_csv(options: Mapping[str, str]) -> Iterator[Problem]:
    """Problems: options of CSV with which rows can't be checked. Names are in lower case."""
    for name in ("encoding", "charset"):
        encoding = options.get(name, "utf-8").strip().lower()
        by_lines = options.get("multiline", "false").strip().lower() != "true"
        if encoding == "utf-16" and by_lines:
            yield Problem(
                f"source.options.{name}",
                'UTF-16 can\'t be cut into lines of bytes; set source.options.multiLine: "true"',
            )
        elif encoding not in _ENCODINGS and encoding != "utf-16":
            yield Problem(
                f"source.options.{name}",
                "must be UTF-8, UTF-16, US-ASCII, or one of "
                f"{', '.join(sorted(ONE_BYTE - {'latin1'}))}; convert the files to UTF-8",
            )
    if options.get("comment", "#").isalnum() or len(options.get("comment", "#")) > 1:
        yield Problem(
            "source.options.comment",
            "must be one character that no row begins with, such as #; rows would be lost",
        )
    for name in ("quote", "escape"):
        if len(options.get(name, '"')) > 1 or options.get(name, '"').isalnum():
            yield Problem(f"source.options.{name}", 'must be one character, such as "')

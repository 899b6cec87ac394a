"""How a text file is to be read, guessed from its first lines."""

import csv
import re
from collections import Counter
from collections.abc import Sequence

_DELIMITERS = ",;\t|"
_NUMBER = re.compile(r"\s*[+-]?(\d+([.,]\d*)?|[.,]\d+)\s*")
#: What Spark puts where bytes are no UTF-8.
_BROKEN = "\ufffd"


def sniff(kind: str, head: Sequence[str], options: dict[str, str], notes: list[str]) -> None:
    """Adds the reader's options that the user has not given, and notes for the draft."""
    given = {key.lower() for key in options}
    if kind == "json":
        if head[0].lstrip().startswith("[") and "multiline" not in given:
            options["multiLine"] = "true"
        return
    found = _csv(head, options.get("delimiter", options.get("sep")))
    if "sep" in given:
        found.pop("delimiter", None)
    options |= {key: text for key, text in found.items() if key.lower() not in given}
    if options.get("header") == "false":
        notes.append("the first line does not look like column names")
    if "encoding" in found and "encoding" not in given:
        notes.append("the file is not UTF-8; the encoding is a guess")


def _csv(head: Sequence[str], delimiter: str | None) -> dict[str, str]:
    delimiter = delimiter or _delimiter(head)
    options = {"header": "true" if _has_header(head[0], delimiter) else "false"}
    if delimiter != ",":
        options["delimiter"] = delimiter
    n_delimiters = sum(line.count(delimiter) for line in head)
    if delimiter.strip() and n_delimiters:
        padded = sum(line.count(f"{delimiter} ") for line in head)
        if padded > 0.9 * n_delimiters:
            options["ignoreLeadingWhiteSpace"] = "true"
    empty = re.compile(rf'(?<![^{re.escape(delimiter)}])""(?![^{re.escape(delimiter)}])')
    doubled = any('""' in empty.sub("", line) for line in head)
    if doubled and not any('\\"' in line for line in head):
        options["escape"] = '"'  # quotes within quotes are doubled, not escaped
    if any(_BROKEN in line for line in head):
        options["encoding"] = "ISO-8859-1"
    return options


def _delimiter(head: Sequence[str]) -> str:
    """The one that gives most lines the same number of fields, the more fields the better."""

    def score(delimiter: str) -> tuple[float, int]:
        n_fields, n_lines = Counter(len(_fields(line, delimiter)) for line in head).most_common(1)[
            0
        ]
        return (n_lines / len(head) if n_fields > 1 else 0.0, n_fields)

    return max(_DELIMITERS, key=score)


def _has_header(line: str, delimiter: str) -> bool:
    cells = [cell.strip() for cell in _fields(line, delimiter)]
    return len(set(cells)) == len(cells) and not any(
        not cell or _NUMBER.fullmatch(cell) for cell in cells
    )


def _fields(line: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])
    except csv.Error:  # a field of more than 128 KB
        return []

"""The first lines of a CSV file: how their cells are parted, and which of them is the header. Lines
above a header may hold a person's name, so nothing tells their text."""

import codecs
import csv
import re
from collections import Counter
from collections.abc import Collection, Sequence

from anonlib.table.layouts import LAYOUTS, find_doubts
from anonlib.text import DATE_TEXT, DECIMAL_TEXT, MISSING_TOKENS, TEXT_TOKENS, TIME_TEXT

#: With what UTF-16 begins, in either order of its bytes.
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
#: Most lines that may stand above a header.
MOST_ABOVE = 20

_DELIMITERS = ",;\t|"
_NUMBER = re.compile(r"\s*[+-]?(\d+([.,]\d*)?|[.,]\d+)\s*")
#: Numbers, however they are written.
_NUMBERS = (
    _NUMBER,
    re.compile(DECIMAL_TEXT),
    *(re.compile(shape) for type, shape in LAYOUTS.values() if type == "double"),
)
#: Dates and times, however they are written.
_TIMES = (
    *map(re.compile, (DATE_TEXT, TIME_TEXT)),
    *(re.compile(shape) for type, shape in LAYOUTS.values() if type != "double"),
)
#: Numbers that may be years, which columns of dates have where no more is known.
_YEAR = re.compile("(19|20)[0-9]{2}")
#: The first line by which Excel is told the delimiter.
_SEP = re.compile(r'"?sep=(.)"?[,;\t|]*', re.IGNORECASE)
#: The fewest rows by whose numbers another row is known to be of units.
_FEWEST_ROWS = 5


def split_lines(start: bytes, encoding: str) -> list[str]:
    """The lines of the first bytes of a file, blank ones included. An encoding that Python does not
    know is read as ISO-8859-1, in which every byte is a character."""
    if encoding.strip().lower() in ("utf-8", "utf8"):
        encoding = "utf-8-sig"
    try:
        text = start.decode(encoding, "replace")
    except LookupError:
        text = start.decode("iso-8859-1")
    return re.split(r"\r\n|\n|\r", text)


def split_fields(line: str, delimiter: str) -> list[str]:
    """The fields of a line."""
    if len(delimiter) != 1:
        return line.split(delimiter)
    try:
        return next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])
    except csv.Error:  # a field of more than 128 KB
        return []


def split_cells(line: str, delimiter: str) -> list[str]:
    """The fields of a line, without blanks at their ends."""
    return [cell.strip() for cell in split_fields(line, delimiter)]


def find_names(lines: Sequence[str], delimiter: str, names: Collection[str]) -> int | None:
    """The first line, counted from 1, that has all these names; None if there is none."""
    wanted = {name.strip() for name in names}
    tried = enumerate(lines[: MOST_ABOVE + 1], 1)
    return next((n for n, line in tried if wanted <= {*split_cells(line, delimiter)}), None)


def guess_delimiter(head: Sequence[str]) -> str:
    """That which Excel is told, else the one that gives most lines the same number of fields, the
    more fields the better. head: Lines that are not blank."""

    def score(delimiter: str) -> tuple[float, int]:
        counts = Counter(len(split_fields(line, delimiter)) for line in head)
        n_fields, n_lines = counts.most_common(1)[0]
        return (n_lines / len(head) if n_fields > 1 else 0.0, n_fields)

    told = _SEP.fullmatch(head[0])
    return told[1] if told else max(_DELIMITERS, key=score)


def find_lower_header(lines: Sequence[str], delimiter: str) -> int | None:
    """The line, counted from 1, that seems to be the header below others that are no rows: `sep=;`,
    titles, lines of delimiters. None if none are above it.

    A line above a header has another number of fields than most lines, or half of them are empty.
    Spark skips lines of blanks.
    """
    there = [(n, line) for n, line in enumerate(lines, 1) if line.strip(" ")]
    rows = [(n, split_cells(line, delimiter)) for n, line in there]
    width = Counter(len(cells) for _, cells in rows).most_common(1)[0][0]
    whole = (
        i
        for i, (_, cells) in enumerate(rows[: MOST_ABOVE + 1])
        if len(cells) == width and sum(map(bool, cells)) > width / 2
    )
    if _SEP.fullmatch(there[0][1]) and len(rows) > 1:
        return rows[next((i for i in whole if i), 1)][0]
    place = next(whole, 0)
    first, *others = [cells for _, cells in rows[place:]]
    # Months are taken for names here, even above gaps: else a line of titles would be the header.
    names = [f"month {i}" if _may_be_month(cell) else cell for i, cell in enumerate(first)]
    if width > 1 and place and has_header([names, *others]):
        return rows[place][0]
    return None


def has_header(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first row names columns: no cell seems to be a value, and at most half of the
    cells are values of their columns further down. No cell may be one if some cells are empty, as
    pandas writes the head of its index, or equal. rows: Cells without blanks at their ends."""
    first, *others = rows
    names = {i: name for i, name in enumerate(first) if name}
    columns = {i: ["".join(row[i : i + 1]) for row in others] for i in names}
    if not names or any(_is_value(name, columns[i]) for i, name in names.items()):
        return False
    below = [row for row in others if row != first]  # headers of files that were put together
    n_again = sum(any(row[i : i + 1] == [name] for row in below) for i, name in names.items())
    return n_again <= (len(first) / 2 if len({*names.values()}) == len(first) else 0)


def _is_value(name: str, below: Collection[str]) -> bool:
    """Whether a cell may be a value of a person: a number, or a date, a time or an amount, however
    it is written. A month names a column of figures: there a number is in every cell below."""
    if any(shape.fullmatch(name) for shape in _NUMBERS):
        return True
    if not _may_be_month(name):
        return False
    are_numbers = all(any(shape.fullmatch(cell) for shape in _NUMBERS) for cell in below)
    return not are_numbers or all(map(_YEAR.fullmatch, below))


def _may_be_month(cell: str) -> bool:
    return bool(find_doubts([cell])) or any(shape.fullmatch(cell) for shape in _TIMES)


def seems_of_units(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first row below a header says in what units the columns of numbers are: it has
    texts in them, and no number, where all others have numbers."""
    if len(rows) <= _FEWEST_ROWS:
        return False
    first, *others = rows
    columns = [*zip(first, *[row for row in others if len(row) == len(first)], strict=True)]
    texts = [
        text
        for text, *cells in columns
        if len([*filter(_NUMBER.fullmatch, cells)]) >= _FEWEST_ROWS
        and all(_NUMBER.fullmatch(cell) for cell in cells if cell)
        and text.upper().casefold() not in (*MISSING_TOKENS, *TEXT_TOKENS)
    ]
    return bool(texts) and not any(map(_NUMBER.fullmatch, texts))


def breaks_lines(head: Sequence[str], delimiter: str) -> bool:
    """Whether a quote opens a field that another line closes."""
    one = delimiter if len(delimiter) == 1 else ","

    def is_open(line: str) -> bool:
        try:
            return len([*csv.reader([f"{line}\n", "x"], delimiter=one)]) == 1
        except csv.Error:
            return False

    return any('"' in line and is_open(line) for line in head)

"""How texts write dates and numbers that are not written as computers do: `31.12.1980`, `1.234,5`.

A layout is named as a config names it (`attributes.NAME.layout`): that of dates by a pattern of
Spark, that of numbers by how it writes 1234.5.
"""

import re
from collections.abc import Collection, Iterable
from typing import NamedTuple

#: The fewest digits of numbers that may be codes, if all have as many.
LEAST_CODE = 6
#: The white space between three digits: blank, no-break blank, narrow no-break blank, thin blank.
_BLANKS = " \u00a0\u202f\u2009"


class Reading(NamedTuple):
    """What texts can be read as.

    Attributes:
        type: The Spark type.
        layout: How they write it; None for the way of computers.
    """

    type: str
    layout: str | None = None


class NumberLayout(NamedTuple):
    """How numbers are written. groups: What may stand before three digits; decimal: the mark."""

    groups: str
    decimal: str

    @property
    def shape(self) -> str:
        """A pattern of all its texts, the same in Java, Python and Arrow. Groups never begin with
        0."""
        group, mark = f"[{self.groups}]", re.escape(self.decimal)
        return rf"^[+-]?([0-9]+|[1-9][0-9]{{0,2}}({group}[0-9]{{3}})+)({mark}[0-9]+)?$"


NUMBERS = {
    "1.234,5": NumberLayout(".", ","),
    "1,234.5": NumberLayout(",", "."),
    "1 234,5": NumberLayout(_BLANKS, ","),
    "1 234.5": NumberLayout(_BLANKS, "."),
    "1'234.5": NumberLayout("'\u2019", "."),
}
_DAY, _MONTH, _YEAR = r"(0?[1-9]|[12][0-9]|3[01])", r"(0?[1-9]|1[0-2])", r"[0-9]{4}"
_CLOCK = r"([01]?[0-9]|2[0-3]):[0-5][0-9]"
_PARTS = {"d": _DAY, "M": _MONTH, "yyyy": _YEAR}
_ORDERS = ("d.M.yyyy", "d/M/yyyy", "M/d/yyyy", "d-M-yyyy", "yyyy/M/d", "yyyy.M.d")
#: By pattern of a date: the shape of its texts.
DATES = {
    order: f"^{''.join(_PARTS.get(p, re.escape(p)) for p in re.findall('[a-zA-Z]+|.', order))}$"
    for order in _ORDERS
}
#: By pattern of a date with a time: the same.
TIMES = {
    f"{order} {clock}": f"{shape[:-1]} {_CLOCK}{seconds}$"
    for order, shape in DATES.items()
    for clock, seconds in (("H:mm", ""), ("H:mm:ss", ":[0-5][0-9]"))
}
_NEAR_YEAR, _TWO = "(19[0-9]{2}|20[0-9]{2})", r"(0[1-9]|1[0-2])"
#: By pattern of a date without marks, which looks like a number: its type, and the shape of its
#: texts. By chance, one in a thousand numbers of eight digits is such a day.
COMPACT = {
    "yyyyMMdd": ("date", f"^{_NEAR_YEAR}{_TWO}(0[1-9]|[12][0-9]|3[01])$"),
    "yyyyMMddHHmm": (
        "timestamp",
        f"^{_NEAR_YEAR}{_TWO}(0[1-9]|[12][0-9]|3[01])([01][0-9]|2[0-3])[0-5][0-9]$",
    ),
}
#: By layout that is looked for: the type that its texts are read as, and their shape.
LAYOUTS = {
    **COMPACT,
    **{name: ("date", shape) for name, shape in DATES.items()},
    **{name: ("timestamp", shape) for name, shape in TIMES.items()},
    **{name: ("double", layout.shape) for name, layout in NUMBERS.items()},
}
#: What is after the decimal mark of a number.
DECIMALS = r"[.,][0-9]+$"
_SIGNS = r"(?:[€$£¥%‰]|EUR|USD|GBP|CHF|PLN|zł|kg|mg|cm|mm|km|ml)"
_AMOUNT = rf"[+-]?[0-9](?:[0-9.,'{_BLANKS}]*[0-9])?"
_AND_CLOCK = f"(?: {_CLOCK}(?::[0-5][0-9])?)?"
_LAYOUT = "name `type` and `layout`, or convert them"
_CONVERT = "convert them in the source"
_DATES = "make dates of them in the source, since numbers between them may be no dates"
#: What texts look like that are not read so, since it leaves a doubt: their shape, and what to do.
_OF_TEXTS = {
    "dates of which day and month can't be told apart": (
        re.compile(rf"^{_MONTH}[/-]{_MONTH}[/-]{_YEAR}{_AND_CLOCK}$"),
        _LAYOUT,
    ),
    "dates with a year of two digits": (
        re.compile(rf"^{_DAY}[./-]{_DAY}[./-][0-9]{{2}}{_AND_CLOCK}$"),
        _CONVERT,
    ),
    "dates with the name of a month": (
        re.compile(
            r"^(?:[0-9]{1,2}\.?[ -][^\W\d_]{3,10}\.?[ -]|[^\W\d_]{3,10}\.? [0-9]{1,2},? )[0-9]{4}$"
        ),
        _CONVERT,
    ),
    "numbers with a unit or a currency": (
        re.compile(rf"^(?:{_SIGNS} ?{_AMOUNT}|{_AMOUNT}[{_BLANKS}]?{_SIGNS})$"),
        _CONVERT,
    ),
    "numbers in groups of three digits, or with a decimal mark": (
        re.compile(rf"^[+-]?[1-9][0-9]{{0,2}}(?:[.,'{_BLANKS}][0-9]{{3}})+$"),
        _LAYOUT,
    ),
}
#: The same of whole numbers, also in texts.
_OF_NUMBERS = {
    "days written as yyyyMMdd": (re.compile(COMPACT["yyyyMMdd"][1]), _DATES),
    "moments written as yyyyMMddHHmm": (re.compile(COMPACT["yyyyMMddHHmm"][1]), _DATES),
    "months written as yyyyMM": (re.compile(f"^{_NEAR_YEAR}{_TWO}$"), _DATES),
    **{
        f"codes of {n} digits": (
            re.compile(f"^[1-9][0-9]{{{n - 1}}}$"),
            "make them nominal, or leave them out, since means of codes say nothing",
        )
        for n in range(LEAST_CODE, 19)
    },
}
DOUBTS = {**_OF_TEXTS, **_OF_NUMBERS}
#: Parts of patterns that a config may name. A year of two digits would be of this century.
_PATTERN = re.compile(r"(?:yyyy|MMM?|M|dd?|HH?|mm|ss|S{1,9}|'T'|[ .,:/_-])+")


def choose_reading(fitting: Iterable[str], *, plain: str | None, marked: bool) -> Reading | None:
    """What texts are read as that all have some layouts. None if they leave a doubt, as 1/2/1980
    does, or 1,234; or if they are whole numbers in groups, which may be keys.

    Args:
        fitting: The layouts of LAYOUTS.
        plain: The type that they are in the way of computers; None if they are of none.
        marked: Whether a text has a decimal mark.
    """
    names = [*fitting]
    if names and names[0] in COMPACT:
        return Reading(COMPACT[names[0]][0], names[0])
    if plain is not None:
        return Reading(plain)
    numbers = [NUMBERS[name] for name in names if name in NUMBERS]
    if not names or (numbers and not marked) or (not numbers and len(names) > 1):
        return None
    if any(a.decimal in b.groups for a in numbers for b in numbers):
        return None
    return Reading(LAYOUTS[names[0]][0], names[0])


def split_pattern(pattern: str) -> list[str]:
    """The parts of a pattern of dates: `dd.MM.yyyy` and `ddMMyyyy` have dd, MM, yyyy."""
    return [part[0] for part in re.finditer(r"([a-zA-Z])\1*", pattern)]


def make_shape(pattern: str) -> str:
    """The shape of texts that have a pattern of dates. Spark itself also reads a sign before a
    year, and after a sign years of five digits."""

    def spell(part: re.Match[str]) -> str:
        letter, n = part[1], len(part[0])
        if letter is None:
            return re.escape(part[0].strip("'"))
        if part[0] == "MMM":
            return r"\D+"
        return f"[0-9]{{{1 if letter == 'S' else n},{max(n, 2)}}}"

    shape = re.sub(r"'T'|([a-zA-Z])\1*|.", spell, pattern)
    return f"^{shape}$"


def find_doubts(texts: Iterable[str]) -> frozenset[str]:
    """The doubts of DOUBTS that all of some texts leave; none if there is no text."""
    plain = [text.strip() for text in texts]
    return frozenset(
        doubt
        for doubt, (shape, _) in DOUBTS.items()
        if plain and all(shape.match(text) for text in plain)
    )


def choose_doubt(
    doubts: Collection[str], reading: Reading | None, *, is_number: bool
) -> str | None:
    """The doubt that is told of a column; None if there is none.

    Args:
        doubts: Those that all its texts leave, or all its numbers as texts.
        reading: What its texts can be read as.
        is_number: Whether it is a column of numbers.
    """
    are_whole = is_number or (reading is not None and reading.type in ("int", "bigint"))
    if reading is not None and not are_whole:
        return None
    return next((d for d in (_OF_NUMBERS if are_whole else _OF_TEXTS) if d in doubts), None)


def is_date_pattern(text: str) -> bool:
    """Whether a text is a pattern of dates, with day, month and year, and each part once."""
    letters = [part[0] for part in split_pattern(text.replace("'T'", " "))]
    once = len(letters) == len({*letters})
    return bool(_PATTERN.fullmatch(text)) and once and {*letters} >= {*"yMd"}

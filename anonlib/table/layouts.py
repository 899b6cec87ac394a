"""How texts write dates and numbers that are not written as computers do: `31.12.1980`, `1.234,5`.

A layout is named as a config names it (`attributes.NAME.layout`): that of dates by a pattern of
Spark, that of numbers by how it writes 1234.5.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

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
        """A pattern of all its texts, the same in Java, Python and Arrow."""
        group, mark = f"[{self.groups}]", re.escape(self.decimal)
        return rf"^[+-]?([0-9]+|[0-9]{{1,3}}({group}[0-9]{{3}})+)({mark}[0-9]+)?$"


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
#: By layout that is looked for: the type that its texts are read as, and their shape.
LAYOUTS = {
    **{name: ("date", shape) for name, shape in DATES.items()},
    **{name: ("timestamp", shape) for name, shape in TIMES.items()},
    **{name: ("double", layout.shape) for name, layout in NUMBERS.items()},
}
#: What is after the decimal mark of a number.
DECIMALS = r"[.,][0-9]+$"
#: Parts of patterns that a config may name. A year of two digits would be of this century.
_PATTERN = re.compile(r"(?:yyyy|MMM?|M|dd?|HH?|mm|ss|S{1,9}|'T'|[ .,:/_-])+")


def choose_reading(fitting: Iterable[str], *, marked: bool) -> Reading | None:
    """What texts are read as that all have some layouts. None if they leave a doubt, as 1/2/1980
    does, or 1,234; or if they are whole numbers in groups, which may be keys.

    fitting: The layouts of LAYOUTS. marked: Whether a text has a decimal mark.
    """
    names = [*fitting]
    numbers = [NUMBERS[name] for name in names if name in NUMBERS]
    if not names or (numbers and not marked) or (not numbers and len(names) > 1):
        return None
    if any(a.decimal in b.groups for a in numbers for b in numbers):
        return None
    return Reading(LAYOUTS[names[0]][0], names[0])


def is_date_pattern(text: str) -> bool:
    """Whether a text is a pattern of dates, with day, month and year, and each part once."""
    parts = re.findall("[a-zA-Z]+", text.replace("'T'", " "))
    letters = [part[0] for part in parts]
    once = len(letters) == len({*letters})
    return bool(_PATTERN.fullmatch(text)) and once and {*letters} >= {*"yMd"}

"""What the text of a token means as a number or a moment, in both engines of the audit."""

import re
from datetime import date
from decimal import Decimal, DecimalException

_PARTS = re.compile(r"([^T ]+)(?:[T ](.+))?")
_DATE = re.compile(r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})")
_TIME = re.compile(r"([0-9]{1,2}):([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]{1,6}))?)?(?: ?(\D.*))?")
_OFFSET = re.compile(r"([+-])([01][0-9]|2[0-3]):([0-5][0-9])")
#: Ordinal days, as in `datetime`: day 1 is January 1 of the year 1.
DAY_1970 = date(1970, 1, 1).toordinal()
_LAST_DAY = date(9999, 12, 31).toordinal()
#: The microseconds of a day.
DAY = 86_400 * 10**6


def finite_number(text: str) -> Decimal | None:
    """Parses a text as a number; None if it is not a finite number."""
    try:
        number = Decimal(text)
    except DecimalException:
        return None
    return number if number.is_finite() else None


def read_moment(text: str) -> int | None:
    """Microseconds since 1970, in UTC, of the text of a date, or a date and a time. None if it is
    no such text, or not in the years 1 to 9999."""
    parts = _PARTS.fullmatch(text.upper())
    numbers = _DATE.fullmatch(parts[1]) if parts else None
    if parts is None or numbers is None:
        return None
    year, month, monthday = map(int, numbers.groups())
    try:
        day = date(year, month, monthday).toordinal()
    except ValueError:
        return None
    within = 0 if parts[2] is None else _within(parts[2])
    if within is None:
        return None
    moment = (day - DAY_1970) * DAY + within
    in_range = 1 <= moment // DAY + DAY_1970 <= _LAST_DAY
    return moment if in_range else None


def _within(text: str) -> int | None:
    """Microseconds from midnight UTC to a time of day, with or without a zone; None if the text is
    no such time."""
    clock = _TIME.fullmatch(text)
    if clock is None:
        return None
    hour, minute, second = (int(part or 0) for part in clock.groups()[:3])
    ahead = _ahead(clock[5] or "Z")
    if hour > 23 or minute > 59 or second > 59 or ahead is None:
        return None
    seconds = (60 * hour + minute - ahead) * 60 + second
    return seconds * 10**6 + int((clock[4] or "0").ljust(6, "0"))


def _ahead(zone: str) -> int | None:
    """The minutes that a zone is ahead of UTC; None if the text is no zone."""
    if zone in ("Z", "UTC"):
        return 0
    offset = _OFFSET.fullmatch(zone)
    if offset is None:
        return None
    minutes = 60 * int(offset[2]) + int(offset[3])
    return minutes if offset[1] == "+" else -minutes

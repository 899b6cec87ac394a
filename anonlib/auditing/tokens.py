"""Tokens of missing values in columns that are not text. The audit reads them with its own code."""

import math
import re
from collections.abc import Callable, Sequence
from datetime import date
from decimal import Context, Decimal, DecimalException
from struct import pack

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

#: Turns the text of a token into a literal of a type; None if it is not a value of that type.
_Literal = Callable[[str, T.DataType], Column | None]
_BITS: dict[type[T.DataType], int] = {
    T.ByteType: 8,
    T.ShortType: 16,
    T.IntegerType: 32,
    T.LongType: 64,
}
_PARTS = re.compile(r"([^T ]+)(?:[T ](.+))?")
_DATE = re.compile(r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})")
_TIME = re.compile(r"([0-9]{1,2}):([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]{1,6}))?)?(?: ?(\D.*))?")
_OFFSET = re.compile(r"([+-])([01][0-9]|2[0-3]):([0-5][0-9])")
#: Ordinal days, as in `datetime`: day 1 is January 1 of the year 1.
_DAY_1970 = date(1970, 1, 1).toordinal()
_LAST_DAY = date(9999, 12, 31).toordinal()
_DAY = 86_400 * 10**6


def missing_values(tokens: Sequence[str], dtype: T.DataType) -> list[Column] | None:
    """The tokens as literals of a type. Tokens that are not values of it are left out.

    Numbers are compared exactly; for floats, the token is the nearest float. Dates and timestamps
    are compared as moments, where a date is its midnight. A text without a zone is in UTC.

    Returns:
        The literals; None if values of the type are compared by text.
    """
    literal = _LITERALS.get(type(dtype))
    if literal is None:
        return None
    made = [literal(token.strip(), dtype) for token in tokens]
    return [each for each in made if each is not None]


def _number(text: str) -> Decimal | None:
    try:
        number = Decimal(text)
    except DecimalException:
        return None
    return number if number.is_finite() else None


def _integer(text: str, dtype: T.DataType) -> Column | None:
    number = _number(text)
    bits = _BITS[type(dtype)]
    if number is None or not -(2 ** (bits - 1)) <= number < 2 ** (bits - 1):
        return None
    if number != number.to_integral_value():
        return None
    return F.lit(str(int(number))).cast(dtype)


def _float(text: str, dtype: T.DataType) -> Column | None:
    try:
        number = float(text)
        if isinstance(dtype, T.FloatType) and math.isfinite(number):
            pack("<f", number)  # raises OverflowError if it is too large
    except (ValueError, OverflowError):
        return None
    if math.isnan(number) or (math.isinf(number) and _number(text) is not None):
        return None
    return F.lit(number + 0.0).cast(dtype)


def _decimal(text: str, dtype: T.DataType) -> Column | None:
    number = _number(text)
    if number is None or not isinstance(dtype, T.DecimalType):
        return None
    try:
        kept = number.quantize(Decimal((0, (1,), -dtype.scale)), context=Context(dtype.precision))
    except DecimalException:
        return None
    return F.lit(f"{kept:f}").cast(dtype) if kept == number else None


def _date(text: str, _: T.DataType) -> Column | None:
    moment = _moment(text)
    if moment is None or moment % _DAY:
        return None
    return F.date_from_unix_date(F.lit(moment // _DAY))


def _timestamp(text: str, dtype: T.DataType) -> Column | None:
    moment = _moment(text)
    if moment is None:
        return None
    if isinstance(dtype, T.TimestampType):
        return F.timestamp_micros(F.lit(moment).cast("long"))
    # As text, since a number would be read in the session's zone.
    days, rest = divmod(moment, _DAY)
    seconds, micros = divmod(rest, 10**6)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{micros:06}"
    return F.lit(f"{date.fromordinal(_DAY_1970 + days)} {clock}").cast("timestamp_ntz")


def _moment(text: str) -> int | None:
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
    moment = (day - _DAY_1970) * _DAY + within
    in_range = 1 <= moment // _DAY + _DAY_1970 <= _LAST_DAY
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


_LITERALS: dict[type[T.DataType], _Literal] = {
    **dict.fromkeys(_BITS, _integer),
    T.FloatType: _float,
    T.DoubleType: _float,
    T.DecimalType: _decimal,
    T.DateType: _date,
    T.TimestampType: _timestamp,
    T.TimestampNTZType: _timestamp,
}

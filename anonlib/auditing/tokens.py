"""Tokens of missing values in columns that are not text. The audit reads them with its own code."""

import math
from collections.abc import Callable, Sequence
from datetime import date
from decimal import Context, Decimal, DecimalException
from struct import pack

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anonlib.auditing.token_values import DAY, DAY_1970, finite_number
from anonlib.auditing.token_values import read_moment as _moment

#: Turns the text of a token into a literal of a type; None if it is not a value of that type.
_Literal = Callable[[str, T.DataType], Column | None]
_BITS: dict[type[T.DataType], int] = {
    T.ByteType: 8,
    T.ShortType: 16,
    T.IntegerType: 32,
    T.LongType: 64,
}


def list_missing_values(tokens: Sequence[str], dtype: T.DataType) -> list[Column] | None:
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


def _integer(text: str, dtype: T.DataType) -> Column | None:
    number = finite_number(text)
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
    if math.isnan(number) or (math.isinf(number) and finite_number(text) is not None):
        return None
    return F.lit(number + 0.0).cast(dtype)


def _decimal(text: str, dtype: T.DataType) -> Column | None:
    number = finite_number(text)
    if number is None or not isinstance(dtype, T.DecimalType):
        return None
    try:
        kept = number.quantize(Decimal((0, (1,), -dtype.scale)), context=Context(dtype.precision))
    except DecimalException:
        return None
    return F.lit(f"{kept:f}").cast(dtype) if kept == number else None


def _date(text: str, _: T.DataType) -> Column | None:
    moment = _moment(text)
    if moment is None or moment % DAY:
        return None
    return F.date_from_unix_date(F.lit(moment // DAY))


def _timestamp(text: str, dtype: T.DataType) -> Column | None:
    moment = _moment(text)
    if moment is None:
        return None
    if isinstance(dtype, T.TimestampType):
        return F.timestamp_micros(F.lit(moment).cast("long"))
    # As text, since a number would be read in the session's zone.
    days, rest = divmod(moment, DAY)
    seconds, micros = divmod(rest, 10**6)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{micros:06}"
    return F.lit(f"{date.fromordinal(DAY_1970 + days)} {clock}").cast("timestamp_ntz")


_LITERALS: dict[type[T.DataType], _Literal] = {
    **dict.fromkeys(_BITS, _integer),
    T.FloatType: _float,
    T.DoubleType: _float,
    T.DecimalType: _decimal,
    T.DateType: _date,
    T.TimestampType: _timestamp,
    T.TimestampNTZType: _timestamp,
}

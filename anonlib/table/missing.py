"""The meaning of `missing_tokens` in columns that are not text. The audit has code of its own for
the same rules (`anonlib/auditing/tokens.py`)."""

import math
import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from anonlib.table.schema import PER_SECOND
from anonlib.text import fold_text

#: A date, or one with a time of day and perhaps a zone; UTC without one. As in the sources that
#: Spark reads, all but the year may lack leading zeros.
_MOMENT = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})"
    r"(?:[T ](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,6}))?)?"
    r"(?: ?(Z|UTC|[+-](?:[01]\d|2[0-3]):[0-5]\d))?)?",
    re.ASCII | re.IGNORECASE,
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def find_missing_values(tokens: tuple[str, ...], type: pa.DataType) -> pa.Array:
    """The values that tokens mean in a column of this type, which is not text.

    A token means at most one value:

    - In integers and decimals the equal number: `1e3` and `1000.0` are 1000. In floats the nearest.
    - In dates and timestamps the moment: `1900-01-01` is its midnight.
    - In booleans true or false.

    A token that is not a value of the type has no meaning in the column.
    """
    found = [pa.array([], type)]
    for token in tokens:
        with suppress(ValueError, ArithmeticError):  # Arrow's errors are ValueErrors
            value = _value(token.strip(), type)
            if value is not None:
                found.append(pa.array([value], type))
    return pa.concat_arrays(found)


def _value(text: str, type: pa.DataType) -> Any:
    """The meaning of a token, as Arrow takes it. None, or an error, if it has none."""
    at = pa.types
    if at.is_boolean(type):
        return {"true": True, "false": False}.get(fold_text(text))
    if at.is_integer(type):
        return _as_integer(Decimal(text))
    if at.is_floating(type):
        return _float(text, type)
    if at.is_decimal(type):
        return _decimal(Decimal(text), type)
    if at.is_date32(type):
        days, rest = divmod(_microseconds(text), 86_400 * 10**6)
        return None if rest else days
    if at.is_timestamp(type):
        units, rest = divmod(_microseconds(text) * PER_SECOND[type.unit], 10**6)
        return None if rest else units
    return None


def _as_integer(number: Decimal) -> int | None:
    # First its size: 1e999999 would be a long number.
    is_whole = -(2**64) < number < 2**64 and number == number.to_integral_value()
    return int(number) if is_whole else None


def _float(text: str, type: pa.DataType) -> float | None:
    number = float(text) + 0.0  # one zero
    with np.errstate(over="ignore"):
        kept = np.float32(number) if pa.types.is_float32(type) else np.float64(number)
    too_large = np.isinf(kept) and Decimal(text).is_finite()
    return None if too_large or math.isnan(number) else number


def _decimal(number: Decimal, type: pa.DataType) -> Decimal | None:
    kept = number.quantize(Decimal(1).scaleb(-type.scale), context=Context(prec=type.precision))
    return kept if kept == number else None


def _microseconds(text: str) -> int:
    return (_moment(text) - _EPOCH) // timedelta(microseconds=1)


def _moment(text: str) -> datetime:
    """The moment that a text means. Raises ValueError or OverflowError if it means none."""
    match = _MOMENT.fullmatch(text)
    if match is None:
        raise ValueError
    *numbers, fraction, zone = match.groups()
    year, month, day, hour, minute, second = (int(part or 0) for part in numbers)
    micros = int((fraction or "").ljust(6, "0"))
    zoned = _zone(zone or "Z")
    local = datetime(year, month, day, hour, minute, second, micros, zoned)
    return local.astimezone(UTC)


def _zone(text: str) -> timezone:
    if text[0] not in "+-":
        return UTC
    sign = -1 if text[0] == "-" else 1
    return timezone(sign * timedelta(hours=int(text[1:3]), minutes=int(text[4:])))

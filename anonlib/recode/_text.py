"""Values as text: exact, unambiguous, and the same on every machine."""

import pyarrow as pa
import pyarrow.compute as pc

from anonlib.recode import Column
from anonlib.recode._types import Kind, kind


def iso(values: Column) -> Column:
    """string[n], null for null, of any type that recoders take.

    Integers and decimals are without exponent, floats the shortest text that reads back as the
    same number, dates `2020-01-31`, timestamps `2020-01-31T23:59:59.000000` with as many digits as
    the unit has, and a `Z` behind where the type has a time zone (the text is in UTC). Strings
    stay as they are.
    """
    match kind(values.type):
        case Kind.TIMESTAMP:
            # without its zone, since a cast of zoned values needs a time zone database
            local = values.view(pa.int64()).view(pa.timestamp(values.type.unit))
            text = pc.replace_substring(local.cast(pa.string()), " ", "T")
            return text if values.type.tz is None else _enclosed("", text, "Z")
        case Kind.DECIMAL if not 0 <= values.type.scale <= 6:
            # Arrow would write small values with an exponent; it has no other notation
            return pa.array(
                [None if v is None else f"{v:f}" for v in values.to_pylist()], pa.string()
            )
    return values.cast(pa.string())


def json(values: Column) -> Column:
    """string[n], null for null: each value as JSON. Numbers and booleans are bare; dates and
    timestamps (see `iso`), infinite floats and strings are quoted."""
    text = iso(values)
    match kind(values.type):
        case Kind.INTEGER | Kind.DECIMAL | Kind.BOOLEAN:
            return text
        case Kind.FLOAT:
            return pc.if_else(pc.is_finite(values), text, _enclosed('"', text, '"'))
        case Kind.TEXT:
            text = _escaped(text)
    return _enclosed('"', text, '"')


def bracketed(text: Column) -> Column:
    """string[n], null for null: "[text]"."""
    return _enclosed("[", text, "]")


def _escaped(text: Column) -> Column:
    text = pc.replace_substring(text, "\\", "\\\\")
    text = pc.replace_substring(text, '"', '\\"')
    if not pc.any(pc.match_substring_regex(text, r"[\x00-\x1f]")).as_py():
        return text
    for code in range(0x20):
        text = pc.replace_substring(text, chr(code), f"\\u{code:04x}")
    return text


def _enclosed(before: str, text: Column, after: str) -> Column:
    return pc.binary_join_element_wise(before, text, after, "")

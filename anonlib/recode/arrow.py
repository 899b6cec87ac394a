"""The column types that recoders take, and values as text: exact, unambiguous, and the same on
every machine."""

from collections.abc import Collection
from enum import StrEnum

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from anonlib.errors import InputError
from anonlib.recode import Column


class Kind(StrEnum):
    """Types that are recoded in the same way; the text names them in errors."""

    INTEGER = "signed integers"
    FLOAT = "float32 and float64"
    DECIMAL = "decimal128"
    DATE = "date32"
    TIMESTAMP = "timestamps"
    BOOLEAN = "booleans"
    TEXT = "strings"


def value_type(column: pa.DataType) -> pa.DataType:
    """The type of the values, where a column is dictionary-encoded (Spark refuses such results)."""
    return column.value_type if isinstance(column, pa.DictionaryType) else column


def kind(column: pa.DataType) -> Kind | None:
    """The kind of a plain type; None where recoders can't take it."""
    tests = {
        Kind.INTEGER: at.is_signed_integer(column),
        Kind.FLOAT: at.is_float32(column) or at.is_float64(column),
        Kind.DECIMAL: at.is_decimal128(column),
        Kind.DATE: at.is_date32(column),
        Kind.TIMESTAMP: at.is_timestamp(column),
        Kind.BOOLEAN: at.is_boolean(column),
        Kind.TEXT: at.is_string(column) or at.is_large_string(column),
    }
    return next((name for name, holds in tests.items() if holds), None)


def accept_type(
    recoder: str, column: pa.DataType, kinds: Collection[Kind] = tuple(Kind)
) -> pa.DataType:
    """`plain(column)`. Raises InputError, with what is allowed, when its kind isn't in `kinds`."""
    result = value_type(column)
    if kind(result) not in kinds:
        allowed = ", ".join(each.value for each in Kind if each in kinds)
        raise InputError(
            f"recoder {recoder} can't take a column of type {column}; it takes: {allowed}"
        )
    return result


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


def bracket(text: Column) -> Column:
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

"""The column types that recoders take, and values as text.

Texts are exact, unambiguous, and the same on every machine.
"""

from collections.abc import Collection
from enum import StrEnum

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from anonlib.errors import InputError
from anonlib.recode import Column


class Kind(StrEnum):
    """Types that are recoded in the same way. The value names them in error texts."""

    INTEGER = "signed integers"
    FLOAT = "float32 and float64"
    DECIMAL = "decimal128"
    DATE = "date32"
    TIMESTAMP = "timestamps"
    BOOLEAN = "booleans"
    TEXT = "strings"


def find_value_type(column: pa.DataType) -> pa.DataType:
    """The type of the column's values, without dictionary encoding, which Spark refuses."""
    return column.value_type if isinstance(column, pa.DictionaryType) else column


def find_type_kind(column: pa.DataType) -> Kind | None:
    """The kind of a type without dictionary; None if no recoder takes it."""
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
    """`find_value_type(column)`, if a recoder takes it.

    Args:
        recoder: The recoder's name, for the error.
        column: The column's type.
        kinds: The kinds that the recoder takes.

    Raises:
        InputError: The kind of the column is not in `kinds`.
    """
    result = find_value_type(column)
    if find_type_kind(result) not in kinds:
        allowed = ", ".join(each.value for each in Kind if each in kinds)
        raise InputError(
            f"recoder {recoder} can't take a column of type {column}; it takes: {allowed}"
        )
    return result


def write_iso(values: Column) -> Column:
    """string[n]. Values as text, of any type that recoders take. Null stays null.

    - Integers and decimals have no exponent.
    - A float is the shortest text that reads back as the same number.
    - Dates are `2020-01-31`.
    - Timestamps are `2020-01-31T23:59:59.000000`, with the digits of their unit. If the type has a
      time zone, the text is in UTC and ends in `Z`.
    - Strings stay as they are.
    """
    match find_type_kind(values.type):
        case Kind.TIMESTAMP:
            # Without its zone, since casts of zoned values need a time zone database.
            local = values.view(pa.int64()).view(pa.timestamp(values.type.unit))
            text = pc.replace_substring(local.cast(pa.string()), " ", "T")
            return text if values.type.tz is None else _enclose("", text, "Z")
        case Kind.DECIMAL if not 0 <= values.type.scale <= 6:
            # Arrow writes small values with an exponent, and has no other notation.
            return pa.array(
                [None if v is None else f"{v:f}" for v in values.to_pylist()], pa.string()
            )
    return values.cast(pa.string())


def dump_json(values: Column) -> Column:
    """string[n]. Each value as JSON. Null stays null.

    Numbers and booleans are bare. Strings, dates and timestamps (see `iso`) and infinite floats are
    quoted.
    """
    text = write_iso(values)
    match find_type_kind(values.type):
        case Kind.INTEGER | Kind.DECIMAL | Kind.BOOLEAN:
            return text
        case Kind.FLOAT:
            return pc.if_else(pc.is_finite(values), text, _enclose('"', text, '"'))
        case Kind.TEXT:
            text = _escape(text)
    return _enclose('"', text, '"')


def add_brackets(text: Column) -> Column:
    """string[n]. Each text in brackets: "[text]". Null stays null."""
    return _enclose("[", text, "]")


def _escape(text: Column) -> Column:
    text = pc.replace_substring(text, "\\", "\\\\")
    text = pc.replace_substring(text, '"', '\\"')
    if not pc.any(pc.match_substring_regex(text, r"[\x00-\x1f]")).as_py():
        return text
    for code in range(0x20):
        text = pc.replace_substring(text, chr(code), f"\\u{code:04x}")
    return text


def _enclose(before: str, text: Column, after: str) -> Column:
    return pc.binary_join_element_wise(before, text, after, "")

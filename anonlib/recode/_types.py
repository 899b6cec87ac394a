"""The column types that recoders take, in the groups that they treat alike."""

from collections.abc import Collection
from enum import StrEnum

import pyarrow as pa
import pyarrow.types as at

from anonlib.errors import InputError


class Kind(StrEnum):
    """Types that are recoded in the same way; the text names them in errors."""

    INTEGER = "signed integers"
    FLOAT = "float32 and float64"
    DECIMAL = "decimal128"
    DATE = "date32"
    TIMESTAMP = "timestamps"
    BOOLEAN = "booleans"
    TEXT = "strings"


def plain(column: pa.DataType) -> pa.DataType:
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


def accepted(
    recoder: str, column: pa.DataType, kinds: Collection[Kind] = tuple(Kind)
) -> pa.DataType:
    """`plain(column)`. Raises InputError, with what is allowed, when its kind isn't in `kinds`."""
    result = plain(column)
    if kind(result) not in kinds:
        allowed = ", ".join(each.value for each in Kind if each in kinds)
        raise InputError(
            f"recoder {recoder} can't take a column of type {column}; it takes: {allowed}"
        )
    return result

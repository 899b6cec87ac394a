"""Canonical values: equal values get the same form, so that Spark's grouping and hashing agree."""

import math
import re
from collections.abc import Callable, Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anonlib.auditing.tokens import missing_values

#: White space by Unicode and Python.
WHITE = "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)
_TEXT = T.StringType | T.CharType | T.VarcharType
_ATOMIC = (
    _TEXT | T.BinaryType | T.BooleanType | T.NumericType | T.DateType | T.TimestampType
    | T.TimestampNTZType | T.DayTimeIntervalType | T.YearMonthIntervalType | T.NullType
)  # fmt: skip

Leaf = Callable[[Column, T.DataType], Column]


def groupable(dtype: T.DataType, *, maps: bool) -> bool:
    """Whether columns of this type can be grouped by value. `maps` says whether maps can be."""
    match dtype:
        case T.ArrayType():
            return groupable(dtype.elementType, maps=maps)
        case T.StructType():
            names = {name.casefold() for name in dtype.names}  # Spark finds fields by these
            types = [field.dataType for field in dtype.fields]
            return len(names) == len(types) and all(groupable(t, maps=maps) for t in types)
        case T.MapType():
            return maps and all(groupable(t, maps=True) for t in (dtype.keyType, dtype.valueType))
    return isinstance(dtype, _ATOMIC)


def canonical_key(column: Column, dtype: T.DataType, *, is_set: bool = False) -> Column:
    """The canonical form of a quasi-identifier or insensitive column.

    It has one zero, one NaN and binary collation. Sets are sorted, with their duplicates, which
    readers can see. Maps are sorted entries. Null and NaN stay different.
    """
    return _rebuild(column, dtype, _key_leaf, is_set=is_set)


def fold_value(column: Column, dtype: T.DataType) -> Column:
    """A protected column: text is trimmed and case-folded, other types stay as they are."""
    return _folded_leaf(column, dtype)


def present(column: Column, dtype: T.DataType, tokens: Sequence[str]) -> Column:
    """A folded column with null for NaN and for the tokens of missing values.

    Tokens are compared with numbers, dates and timestamps by value (`missing_values`), and with
    other types by text. For text, call this in a separate projection after folding. Else Spark
    would fold twice.
    """

    def leaf(part: Column, kind: T.DataType) -> Column:
        return _present_leaf(_folded_leaf(part, kind), kind, tokens)

    if isinstance(dtype, _TEXT):
        return _present_leaf(column, dtype, tokens)
    return _rebuild(column, dtype, leaf)


def _rebuild(column: Column, dtype: T.DataType, leaf: Leaf, *, is_set: bool = False) -> Column:
    """`column` with `leaf` applied to every atomic part of it."""
    match dtype:
        case T.ArrayType():
            inner = dtype.elementType
            if not _unchanged(inner, leaf):
                column = F.transform(column, lambda part: _rebuild(part, inner, leaf))
            return F.sort_array(column) if is_set else column
        case T.StructType():
            if _unchanged(dtype, leaf):
                return column
            parts = [
                _rebuild(column.getField(field.name), field.dataType, leaf).alias(f"f{i}")
                for i, field in enumerate(dtype.fields)
            ]
            return F.when(column.isNotNull(), F.struct(*parts))
        case T.MapType():
            key, value = dtype.keyType, dtype.valueType
            entries = F.transform(
                F.map_entries(column),
                lambda entry: F.struct(
                    _rebuild(entry.getField("key"), key, leaf).alias("f0"),
                    _rebuild(entry.getField("value"), value, leaf).alias("f1"),
                ),
            )
            return F.sort_array(entries)
    return leaf(column, dtype)


def _unchanged(dtype: T.DataType, leaf: Leaf) -> bool:
    """Whether a rebuild of this type would change nothing. Then it is skipped, since higher-order
    functions are slow."""
    match dtype:
        case T.ArrayType():
            return _unchanged(dtype.elementType, leaf)
        case T.StructType():
            return all(_unchanged(field.dataType, leaf) for field in dtype.fields)
        case T.MapType():
            return False
    return leaf is _key_leaf and not (_is_float(dtype) or _is_collated(dtype))


def _is_float(dtype: T.DataType) -> bool:
    return isinstance(dtype, T.FloatType | T.DoubleType)


def _is_collated(dtype: T.DataType) -> bool:
    return isinstance(dtype, T.StringType) and dtype.collation != "UTF8_BINARY"


def _binary(column: Column, dtype: T.DataType) -> Column:
    return F.collate(column, "UTF8_BINARY") if _is_collated(dtype) else column


def _key_leaf(column: Column, dtype: T.DataType) -> Column:
    if _is_float(dtype):
        nan, zero = (F.lit(value).cast(dtype) for value in (math.nan, 0.0))
        return F.when(F.isnan(column), nan).otherwise(column + zero)
    return _binary(column, dtype)


def _folded_leaf(column: Column, dtype: T.DataType) -> Column:
    return _fold(_binary(column, dtype)) if isinstance(dtype, _TEXT) else column


def _present_leaf(column: Column, dtype: T.DataType, tokens: Sequence[str]) -> Column:
    if isinstance(dtype, T.BinaryType | T.NullType):
        return column
    if _is_float(dtype):
        column = F.when(~F.isnan(column), column + F.lit(0.0).cast(dtype))
    missing = missing_values(tokens, dtype)
    text = column
    if missing is None:
        if not isinstance(dtype, _TEXT):
            # A token without letters or digits can't be a boolean or an interval.
            tokens = [token for token in tokens if re.search(r"\w", token)]
            text = _fold(column.cast("string"))
        missing = [_fold(F.lit(token)) for token in tokens]
    return F.when(~text.isin(missing), column) if missing else column


def _fold(text: Column) -> Column:
    """Trimmed and case-folded text: lower case, then upper case, merges all that Unicode folds.

    The trim stands between the two, since Spark's optimizer would turn upper(lower(x)) into
    upper(x).
    """
    return F.upper(F.trim(F.lower(text), F.lit(WHITE)))

"""Canonical values: equal values get the same form, so that Spark's grouping and hashing agree."""

import math
import re
from collections.abc import Callable, Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anonlib.auditing.tokens import list_missing_values

#: White space by Unicode and Python, and the Braille pattern without a dot.
BLANKS = r"[\t-\r\x1c- \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\u2800]+"
#: Invisible characters: format and control characters, fillers, joiners and selectors.
INVISIBLE = (
    r"[\p{Cf}\p{Cc}\u034f\u115f\u1160\u17b4\u17b5\u0890\u0891\u180b-\u180f\u2065\u3164\ufe00-\ufe0f"
    r"\uffa0\ufff0-\ufff8\x{e0000}-\x{e0fff}]+"
)
#: Signs that look like a hyphen, an apostrophe or a quote, and what each of them counts as.
SIGNS = "\u02bc\u2010\u2011\u2012\u2013\u2018\u2019\u201b\u201c\u201d\u2212"
PLAIN_SIGNS = "'----'''\"\"-"
#: Texts that need no normal form: printable ASCII, and the letters and signs of many languages that
#: Unicode has as one character, that combine with no neighbour, and whose case is simple. ASCII is
#: looked for first, since classes of many ranges are slow; nothing is tried twice (`*+`).
SIMPLE_TEXT = (
    r"^(?:[ -~]*+\z|"
    r"[ -~\u00c0-\u00d6\u00d8-\u00de\u00e0-\u00f6\u00f8-\u012f\u0134-\u013e\u0141-\u0148"
    r"\u014a-\u017e\u0400-\u045f\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fff\uac00-\ud7a3]*+\z)"
)
_TEXT = T.StringType | T.CharType | T.VarcharType
_ATOMIC = (
    _TEXT | T.BinaryType | T.BooleanType | T.NumericType | T.DateType | T.TimestampType
    | T.TimestampNTZType | T.DayTimeIntervalType | T.YearMonthIntervalType | T.NullType
)  # fmt: skip

#: The types whose values count as those of a protected column, alone or within other values.
_COUNTED = (
    _TEXT | T.BooleanType | T.NumericType | T.DateType | T.TimestampType | T.TimestampNTZType
    | T.NullType
)  # fmt: skip

Leaf = Callable[[Column, T.DataType], Column]


def is_groupable(dtype: T.DataType, *, maps: bool) -> bool:
    """Whether columns of this type can be grouped by value. `maps` says whether maps can be."""
    match dtype:
        case T.ArrayType():
            return is_groupable(dtype.elementType, maps=maps)
        case T.StructType():
            names = {name.lower() for name in dtype.names}  # Spark finds fields by these
            types = [field.dataType for field in dtype.fields]
            return len(names) == len(types) and all(is_groupable(t, maps=maps) for t in types)
        case T.MapType():
            return maps and all(
                is_groupable(t, maps=True) for t in (dtype.keyType, dtype.valueType)
            )
    return isinstance(dtype, _ATOMIC)


def is_countable(dtype: T.DataType) -> bool:
    """Whether values of this type count as those of a protected column: text, numbers, booleans,
    dates and timestamps, also within other values. Bytes don't: nobody knows which mean the same,
    or which mean that a value is missing."""
    match dtype:
        case T.ArrayType():
            return is_countable(dtype.elementType)
        case T.StructType():
            return all(is_countable(field.dataType) for field in dtype.fields)
        case T.MapType():
            return is_countable(dtype.keyType) and is_countable(dtype.valueType)
    return isinstance(dtype, _COUNTED)


def make_key(column: Column, dtype: T.DataType, *, is_set: bool = False) -> Column:
    """The canonical form of a quasi-identifier or insensitive column.

    It has one zero, one NaN and binary collation. Sets are sorted and keep their duplicates, since
    readers can see them. Maps become sorted entries. Null and NaN stay different.
    """
    return _rebuild(column, dtype, _key_leaf, is_set=is_set)


def fold_value(column: Column, dtype: T.DataType) -> Column:
    """A protected column: text becomes as people see it (`_fold`), other types stay as they are."""
    return _folded_leaf(column, dtype)


def clear_missing(column: Column, dtype: T.DataType, tokens: Sequence[str]) -> Column:
    """A folded column with null for NaN, for the tokens of missing values, and for nested values
    without any present part.

    Tokens are compared with numbers, dates and timestamps by value (`list_missing_values`), and
    with other types by text. Text must be folded before, in a projection of its own: else Spark
    would fold it twice.
    """

    def leaf(part: Column, kind: T.DataType) -> Column:
        return _present_leaf(_folded_leaf(part, kind), kind, tokens)

    if isinstance(dtype, _TEXT):
        return _present_leaf(column, dtype, tokens)
    column = _rebuild(column, dtype, leaf)
    if isinstance(dtype, T.ArrayType | T.StructType | T.MapType):
        return F.when(_has_part(column, dtype), column)
    return column


def _has_part(column: Column, dtype: T.DataType) -> Column:
    """Whether a value, as `_rebuild` makes it, has a part that is not null. Never true of null."""
    match dtype:
        case T.ArrayType():
            return F.exists(column, lambda part: _has_part(part, dtype.elementType))
        case T.StructType():
            types = [field.dataType for field in dtype.fields]
        case T.MapType():
            pair = T.StructType().add("f0", dtype.keyType).add("f1", dtype.valueType)
            return F.exists(column, lambda entry: _has_part(entry, pair))
        case _:
            return column.isNotNull()
    found = F.lit(False)
    for i, kind in enumerate(types):
        found = found | _has_part(column.getField(f"f{i}"), kind)
    return found


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
    if isinstance(dtype, _TEXT):
        plain = [token for token in tokens if token.isascii() and token.isprintable()]
        same = column.isin([F.lit(_fold_plain(token)) for token in ["", *plain]])
        for token in set(tokens) - set(plain):
            same = same | (column == _fold(F.lit(token)))
        return F.when(~same, column)
    if _is_float(dtype):
        column = F.when(~F.isnan(column), column + F.lit(0.0).cast(dtype))
    missing_literals = list_missing_values(tokens, dtype)
    text = column
    if missing_literals is None:
        # A token without letters or digits can't be a boolean or an interval.
        words = [token for token in tokens if re.search(r"\w", token)]
        text = F.lower(column.cast("string"))
        missing_literals = [F.lit(_fold_plain(token)) for token in words]
    return F.when(~text.isin(missing_literals), column) if missing_literals else column


def _fold_plain(text: str) -> str:
    """`_fold` for a text in printable ASCII."""
    return " ".join(text.lower().split())


def _fold(text: Column) -> Column:
    """Text as people see it: NFKC, folded case, nothing invisible, one hyphen and one sign for each
    kind of quotes, single blanks between words.

    The column needs its own projection before it is grouped or aggregated (`_fold_any`).
    """
    lower = F.lower(text)
    single = F.when(text.contains("  "), F.regexp_replace(lower, " +", " ")).otherwise(lower)
    simple = F.trim(single)
    return F.when(text.rlike(SIMPLE_TEXT), simple).when(text.isNotNull(), _fold_any(text))


def _fold_any(text: Column) -> Column:
    """`_fold` for any text. It needs ICU, which is part of Spark, but is reached only through
    `java_method`, and Spark treats that as nondeterministic."""
    seen = F.regexp_replace(F.regexp_replace(text, BLANKS, " "), INVISIBLE, "")
    folded = _icu("lang.UCharacter", "foldCase", F.upper(_icu("text.Normalizer", "compose", seen)))
    normal = _icu("text.Normalizer", "compose", folded)
    signs = F.translate(normal, SIGNS, PLAIN_SIGNS)
    return F.trim(F.regexp_replace(signs, " +", " "))


def _icu(name: str, method: str, text: Column) -> Column:
    call = (F.lit(f"com.ibm.icu.{name}"), F.lit(method), text, F.lit(True))
    return F.call_function("java_method", *call)

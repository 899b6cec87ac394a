"""How the texts of a source become numbers, dates and times: as the config says, or as all values
of a CSV's column can be read."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import NullType, StringType

from anonlib.auditing.canonical import BLANKS
from anonlib.config.model import Attribute, Config
from anonlib.config.resolve import find_ordered_columns
from anonlib.errors import ConfigError, InputError, Problem
from anonlib.table.layouts import NUMBERS, make_shape
from anonlib.table.schema import Role, Scale
from anonlib.text import TEXT_TYPES, fold_text

_NUMBER = r"(?i)[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|nan|inf(inity)?)"
_DAY = "[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
_CLOCK = r"[T ][0-9]{1,2}:[0-9]{1,2}(:[0-9]{1,2}(\.[0-9]+)?)?"
_ZONE = "( ?(Z|[+-][0-9:]+|[A-Za-z][A-Za-z0-9/_+:-]*))?"
#: By type: what a text must look like to be read so. For Spark `1d` is a number, `14:30` a time of
#: today, and `2024` a day. It drops the zone of a text where the type has none, though midnight in
#: one zone may be another day in others.
_SHAPES = {
    **dict.fromkeys(("double", "float"), _NUMBER),
    "timestamp": f"{_DAY}({_CLOCK}{_ZONE})?",
    "timestamp_ntz": f"{_DAY}({_CLOCK})?",
    "date": rf"{_DAY}([T ]00:00(:00(\.0+)?)?( ?(Z|[+-]00:?00))?)?",
}
_DECIMAL = re.compile(r"decimal\([0-9]+, ?([0-9]+)\)")


class Cast(NamedTuple):
    """What a column is read as.

    Attributes:
        type: The Spark type.
        layout: How its texts write that (`anonlib.table.layouts`); None for Spark's own way.
        was_seen: Whether all its texts were seen to be written so, and need no second look.
    """

    type: str
    layout: str | None = None
    was_seen: bool = False

    def __str__(self) -> str:
        return self.type if self.layout is None else f"{self.type} written as {self.layout}"


def declare_cast(attribute: Attribute) -> Cast | None:
    """What a column is read as by the config; None if it does not say."""
    return None if attribute.type is None else Cast(attribute.type, attribute.layout)


def find_casts(config: Config, names: Sequence[str], raw: DataFrame) -> dict[str, Cast]:
    """By id: what columns are read as, as declared, or inferred from the text of CSV. A column
    without a value or a type is text, as in memory: any type would do.

    Args:
        config: The config.
        names: The columns of the source.
        raw: Its rows, with columns c0, c1, ...

    Raises ConfigError where Spark can't read the column's type so.
    """
    attributes = [config.attributes.get(name) for name in names]
    declared = {
        f"c{i}": cast
        for i, a in enumerate(attributes)
        if a is not None and a.role is not Role.DROP and (cast := declare_cast(a)) is not None
    }
    problems = [
        Problem(f"attributes.{names[int(id[1:])]}", problem)
        for id, cast in declared.items()
        if (problem := _refuse(raw, id, cast)) is not None
    ]
    if problems:
        raise ConfigError(problems)
    void = [id for id in raw.columns if isinstance(raw.schema[id].dataType, NullType)]
    return {
        **dict.fromkeys(void, Cast("string", was_seen=True)),
        **declared,
        **infer_casts(raw, list_inferred(config, names, raw), config.privacy.missing_tokens),
    }


def _refuse(raw: DataFrame, id: str, cast: Cast) -> str | None:
    """Why a column can't be read so, whatever its values; None if it can."""
    there = raw.schema[id].dataType
    if cast.layout is not None and not isinstance(there, StringType):
        return f"`layout` is for text, and the column is {there.simpleString()}: remove it"
    try:
        raw.select(read_as(F.col(id), cast))
    except AnalysisException:
        return (
            f"its type {there.simpleString()} can't be read as {cast.type}: remove `type`, or "
            f"make it {cast.type} in the source"
        )
    return None


def list_inferred(config: Config, names: Sequence[str], raw: DataFrame) -> list[str]:
    """The ids of CSV columns whose type must be inferred from their text."""
    if config.source.format != "csv":
        return []
    ordered = find_ordered_columns(config.all_models, config.attributes)
    inferred = []
    for i, name in enumerate(names):
        attribute = config.attributes.get(name)
        if attribute is None or attribute.role is Role.DROP or attribute.type is not None:
            continue
        has_order = attribute.scale is Scale.ORDINAL or name in ordered
        number = attribute.scale is Scale.CONTINUOUS or (has_order and attribute.order is None)
        if number and isinstance(raw.schema[i].dataType, StringType):
            inferred.append(f"c{i}")
    return inferred


def infer_casts(
    raw: DataFrame, ids: Sequence[str], missing_tokens: tuple[str, ...]
) -> dict[str, Cast]:
    """By id: the first of TEXT_TYPES that all values of a text column can be read as. One pass
    over the rows, if there are columns."""
    if not ids:
        return {}
    failures = [
        F.count_if(
            is_unreadable(F.col(id), Cast(type, was_seen=True), missing_tokens)
            | (~F.trim(id).rlike(look) & ~_is_token(F.col(id), missing_tokens))
        ).alias(f"{id}_{type}")
        for id in ids
        for type, look in TEXT_TYPES.items()
    ]
    counts = raw.agg(*failures).collect()[0]
    found = {}
    for id in ids:
        fitting = [type for type in TEXT_TYPES if counts[f"{id}_{type}"] == 0]
        if fitting:
            found[id] = Cast(fitting[0], was_seen=True)
    return found


def read_as(column: Column, cast: Cast | None) -> Column:
    """The column in another type: null where a value can't be read."""
    if cast is None:
        return column
    if cast.was_seen:
        return column.try_cast(cast.type)
    if cast.layout is None:
        fits = ~F.typeof(column).startswith("string") | _is_plain(column.cast("string"), cast.type)
        return F.when(fits, column.try_cast(cast.type))
    text = F.trim(column)
    if cast.layout not in NUMBERS:
        moment = F.try_to_timestamp(text, F.lit(cast.layout)).cast(cast.type)
        return F.when(text.rlike(make_shape(cast.layout)), moment)
    layout = NUMBERS[cast.layout]
    plain = F.translate(text, layout.decimal + layout.groups, ".")
    return F.when(text.rlike(layout.shape), read_as(plain, Cast(cast.type)))


def _is_plain(text: Column, type: str) -> Column:
    """Whether a text is as texts of a type are, and loses no digit: Spark rounds decimals."""
    if (found := _DECIMAL.fullmatch(type)) is None:
        return text.rlike(rf"^\s*{_SHAPES[type]}\s*$") if type in _SHAPES else F.lit(True)
    same = text.try_cast(type).cast("double") == text.try_cast("double")
    is_exact = text.rlike(rf"^\s*[+-]?[0-9]*\.?[0-9]{{0,{found[1]}}}0*\s*$")
    return is_exact | (text.rlike("[0-9][eE]") & same)


def is_unreadable(column: Column, cast: Cast, missing_tokens: tuple[str, ...]) -> Column:
    """Whether a value is present and can't be read."""
    return column.isNotNull() & ~_is_token(column, missing_tokens) & read_as(column, cast).isNull()


def _is_token(column: Column, missing_tokens: tuple[str, ...]) -> Column:
    """Whether a text means a missing value. Texts that only look like a token do not."""
    if not missing_tokens:
        return F.lit(False)
    text = F.trim(F.regexp_replace(F.lower(column.cast("string")), BLANKS, " "))
    return column.isNotNull() & text.isin([fold_text(token) for token in missing_tokens])


def require_readable_as(
    raw: DataFrame,
    casts: Mapping[str, Cast],
    missing_tokens: tuple[str, ...],
    names: Mapping[str, str],
) -> None:
    """Raises InputError if values can't be read as their column's type; it says how many.

    casts: By id: the type. names: By id: the name.
    """
    counts = [F.count_if(is_unreadable(F.col(id), t, missing_tokens)) for id, t in casts.items()]
    row = raw.agg(*counts).collect()[0] if counts else ()
    found = [
        f"{n} values as {cast} in column {names[id]}"
        for n, (id, cast) in zip(row, casts.items(), strict=True)
        if n
    ]
    if found:
        raise InputError(
            f"can't read {', '.join(found)}; clean them, list what means missing under "
            "privacy.missing_tokens, or say how they are written (`layout`)"
        )

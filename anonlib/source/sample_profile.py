"""The profiles of the columns of a sample, for `anonlib init`; and what only the whole table or
other columns tell of them: unique values, and parts of dates."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    DateType,
    NullType,
    NumericType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from anonlib.arrays import Ints
from anonlib.guesses.draft import write_scalar
from anonlib.guesses.guess import MIN_UNIQUE, ColumnProfile
from anonlib.source.casts import Cast, read_as
from anonlib.source.frame_profile import profile_sample

#: Most rows, and most values, that are looked at for distinct counts.
MAX_SAMPLE, MAX_VALUES = 100_000, 10_000_000
#: Most columns whose uniqueness is counted on the whole table.
MAX_COUNTED = 8
#: Most columns of times, and of numbers that may be parts of them, that are compared.
MAX_TIMES, MAX_PARTS = 5, 50

#: The types of columns that are looked at: those that can be released.
_SEEN = (StringType, NumericType, BooleanType, DateType, TimestampType, TimestampNTZType)
#: What of a moment a column of numbers may be. Weekdays begin with Sunday or Monday, from 1 or 0.
_PARTS: tuple[tuple[str, Callable[[Column], Column]], ...] = (
    ("year", F.year),
    ("quarter", F.quarter),
    ("month", F.month),
    ("day of the month", F.dayofmonth),
    ("day of the year", F.dayofyear),
    ("week", F.weekofyear),
    ("weekday", F.dayofweek),
    ("weekday", F.weekday),
    ("weekday", lambda moment: F.weekday(moment) + 1),
    ("hour", F.hour),
    ("minute", F.minute),
    ("second", F.second),
)


def profile_columns(
    raw: DataFrame, names: Sequence[str], n_rows: int
) -> tuple[int, tuple[ColumnProfile, ...], dict[str, Ints]]:
    """The number of rows of a sample, the profiles of its columns, and the hashes of their values.

    Args:
        raw: The table, with columns c0, c1, ...
        names: The names of these columns.
        n_rows: The rows of the table.
    """
    types = {name: field.dataType for name, field in zip(raw.columns, raw.schema, strict=True)}
    most = max(1_000, min(MAX_SAMPLE, MAX_VALUES // max(1, len(names))))
    sample = raw if n_rows <= most else raw.sample(fraction=most / n_rows, seed=0)
    seen, hashes = profile_sample(sample, [id for id in types if isinstance(types[id], _SEEN)])
    n_sample = len(next(iter(hashes.values()))) if hashes else sample.count()
    if n_sample < n_rows:
        alike = [id for id, each in seen.items() if each.unique]
        unique = _find_unique(raw, alike, n_rows)
        seen = {id: replace(each, unique=id in unique) for id, each in seen.items()}
    name_of = dict(zip(types, names, strict=True))
    parts = _find_parts(sample, seen, name_of)
    columns = tuple(
        replace(seen[id], name=name_of[id], part=parts.get(id))
        if id in seen
        # Of nothing but null, all is seen.
        else ColumnProfile(
            name_of[id], type.simpleString(), 0, 0, is_seen=isinstance(type, NullType)
        )
        for id, type in types.items()
    )
    return n_sample, columns, {name_of[id]: each for id, each in hashes.items()}


def _find_unique(raw: DataFrame, ids: Iterable[str], n_rows: int) -> set[str]:
    """Of the first MAX_COUNTED columns, those without a repeated or missing value in the whole
    table."""
    unique = set()
    for id in [*ids][:MAX_COUNTED]:  # apart, since Spark copies every row for each of several
        n_distinct = raw.agg(F.count_distinct(id)).head()
        if n_distinct is not None and n_distinct[0] == n_rows:
            unique.add(id)
    return unique


def _find_parts(
    sample: DataFrame, profiles: Mapping[str, ColumnProfile], name_of: Mapping[str, str]
) -> dict[str, str]:
    """By id of a column that is a part of a date in another one: which, such as `the hour of
    visit`."""
    several = {id: each for id, each in profiles.items() if each.n_distinct > 1}
    times = [id for id, each in several.items() if each.is_time][:MAX_TIMES]
    whole = [id for id, each in several.items() if each.is_whole][:MAX_PARTS]
    if not times or not (whole or len(times) > 1):
        return {}
    hashes = {f"n{id}": F.col(id).try_cast("bigint") for id in whole}
    for id in times:
        moment = read_as(F.col(id), Cast(several[id].read_as, several[id].layout))
        hashes[f"n{id}"] = moment.cast("timestamp_ntz")
        hashes[f"d{id}"] = moment.cast("date").cast("timestamp_ntz")
        for i, (_, part) in enumerate(_PARTS):
            hashes[f"p{i}{id}"] = part(moment).cast("bigint")
    found = sample.select(*[F.xxhash64(h).alias(name) for name, h in hashes.items()]).toArrow()
    columns = {name: found[name].to_numpy() for name in found.column_names}
    parts = {}
    for time in times:
        named = {f"d{time}": "date"} | {f"p{i}{time}": part for i, (part, _) in enumerate(_PARTS)}
        for id in [*whole, *times]:
            equal = [p for name, p in named.items() if _agree(columns[f"n{id}"], columns[name])]
            if equal and id != time:
                parts[id] = f"the {equal[0]} of {write_scalar(name_of[time])}"
    return parts


def _agree(hashes: Ints, others: Ints) -> bool:
    return len(hashes) >= MIN_UNIQUE and bool((hashes == others).all())

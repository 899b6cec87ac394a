"""Counts the columns of a sample for `anonlib init`. The driver sees hashes, flags and counts of
values, but no value."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DatetimeType,
    MapType,
    NumericType,
    StringType,
    StructType,
)

from anonlib.arrays import Bools, Ints
from anonlib.auditing.canonical import fold_value
from anonlib.guesses.draft import scalar
from anonlib.guesses.guess import MIN_UNIQUE, ColumnProfile
from anonlib.guesses.token_codes import (
    ABOVE,
    DAY,
    DAYS,
    FIRST_FAR,
    FIRST_NUMBER,
    NEAR,
    NEGATIVE,
    SHORT,
    THIRDS,
    TOKENS,
    name_tokens,
    read_codes,
)
from anonlib.identifiers.direct import KindCounts, count_kinds, list_texts, main_kind, merge_kinds
from anonlib.source.casts import Cast, read_as
from anonlib.table.layouts import (
    DECIMALS,
    LAYOUTS,
    Reading,
    choose_doubt,
    choose_reading,
    find_doubts,
)
from anonlib.text import (
    DATE_TEXT,
    DECIMAL_TEXT,
    FAR_NUMBERS,
    MISSING_TOKENS,
    NUMBERS_MISSING,
    TIME_TEXT,
    TWO_LETTERS,
    WHOLE_TEXT,
)

#: Most rows, and most values, that are looked at for distinct counts.
MAX_SAMPLE, MAX_VALUES = 100_000, 10_000_000
#: Most columns whose uniqueness is counted on the whole table.
MAX_COUNTED = 8
#: Most columns of times, and of numbers that may be parts of them, that are compared.
MAX_TIMES, MAX_PARTS = 5, 50

#: Types that texts are tried as, from the narrowest to the widest, by the bit of their flag.
_TYPES = {"int": 1, "bigint": 2, "double": 4, "date": 8, "timestamp": 16}
#: By layout of dates and numbers: the bit of its flag; and that of a text with a decimal mark.
_LAYOUTS = {layout: 32 << i for i, layout in enumerate(LAYOUTS)}
_DECIMAL_MARK = 32 << len(LAYOUTS)
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


class _Traits(NamedTuple):
    """What is seen of a column in the sample.

    Attributes:
        hashes: int64[n]. A hash of each value; 0 where it is missing.
        present: bool[n].
        tokens: By token that may mean a missing value: its rows. These are not present.
        far: As in ColumnProfile.
        reading: What all texts can be read as; None if there is no such type.
    """

    hashes: Ints
    present: Bools
    tokens: dict[str, int]
    far: tuple[str, ...]
    reading: Reading | None

    @property
    def n_distinct(self) -> int:
        return len(np.unique(self.hashes[self.present]))


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
    texts = [id for id, type in types.items() if isinstance(type, StringType)]
    # In a projection of their own: else Spark would fold them for each use.
    folded = sample.withColumns({f"s{id}": fold_value(F.col(id), types[id]) for id in texts})
    found = folded.select(F.lit(1).alias("row"), *_fingerprints(types)).toArrow()
    n_sample = found.num_rows
    seen = {
        id: _look(found, id, type) for id, type in types.items() if f"h{id}" in found.schema.names
    }
    counts = {id: (int(each.present.sum()), each.n_distinct) for id, each in seen.items()}
    alike = [id for id, (n, distinct) in counts.items() if n == distinct == n_sample]
    unique = _unique(raw, [id for id in alike if n_sample >= MIN_UNIQUE], n_rows, n_sample)
    name_of = dict(zip(types, names, strict=True))
    read = {id: each.reading for id, each in seen.items() if each.reading is not None}
    kinds, doubts = _look_within(sample, {id: types[id] for id in seen})
    parts = _find_parts(sample, types, seen, name_of)
    columns = tuple(
        ColumnProfile(
            name=name_of[id],
            type=type.simpleString(),
            n_present=counts.get(id, (0, 0))[0],
            n_distinct=counts.get(id, (0, 0))[1],
            unique=id in unique,
            parses_as=read[id].type if id in read else None,
            layout=read[id].layout if id in read else None,
            kind=kinds.get(id),
            tokens=seen[id].tokens if id in seen else {},
            far=seen[id].far if id in seen else (),
            doubt=choose_doubt(
                doubts.get(id, ()), read.get(id), is_number=isinstance(type, NumericType)
            ),
            part=parts.get(id),
            is_seen=id in seen or type.simpleString() == "void",  # of which all are missing
        )
        for id, type in types.items()
    )
    return n_sample, columns, {name_of[id]: each.hashes for id, each in seen.items()}


def _fingerprints(types: Mapping[str, DataType]) -> Iterator[Column]:
    """Per column a hash (h) of its value, null where the value is missing; its code (t), as
    `anonlib/guesses/token_codes.py` has it; and for texts, which are there as people see them, too
    (s), flags (f) of what they can be read as."""
    tokens = F.array(*map(F.lit, TOKENS))  # once: each literal is a call of the JVM
    for id, type in types.items():
        column = F.col(id)
        if isinstance(type, StringType):
            text = F.col(f"s{id}")
            present = column.isNotNull() & ~text.isin(*MISSING_TOKENS)
            code = F.array_position(tokens, text).cast("int")
            number = F.when(text.rlike(DECIMAL_TEXT), text.try_cast("double"))
            code = F.when((code == 0) & text.rlike(TWO_LETTERS), SHORT).otherwise(code)
            yield F.when(present, _flags(F.trim(column))).alias(f"f{id}")
        elif not isinstance(type, ArrayType | MapType | StructType) and _hashable(type):
            present = column.isNotNull()
            if type.simpleString() in ("float", "double"):
                present &= ~F.isnan(column)
            code, number = F.lit(0), F.lit(None).cast("double")
            if isinstance(type, NumericType):
                number = column.cast("double")
                for i, token in enumerate(NUMBERS_MISSING):
                    code = F.when(number == token, FIRST_NUMBER + i).otherwise(code)
            text = column.cast("string") if isinstance(type, DatetimeType) else F.lit("")
        else:
            continue
        code = F.when(code != 0, code).when(text.rlike(DAY), _code_days(text))
        yield F.when(present, F.xxhash64(column)).alias(f"h{id}")
        yield F.when(present, code.otherwise(_size(number))).alias(f"t{id}")


def _code_days(text: Column) -> Column:
    """The code of a text of a day."""
    first, *others = DAYS.items()
    code = F.when(text.rlike(first[1]), first[0])
    for each, shape in others:
        code = code.when(text.rlike(shape), each)
    return code


def _size(number: Column) -> Column:
    """The code of a number that is no token, as `code_numbers` gives it; 0 for null."""
    code = F.when(number == FAR_NUMBERS[0], FIRST_FAR)
    for i, far in enumerate(FAR_NUMBERS[1:], 1):
        code = code.when(number == far, FIRST_FAR + i)
    code = code.when(number < 0, NEGATIVE).when(number < 1, NEAR)
    for third, size in THIRDS.items():
        code = code.when(number <= third, size)
    return code.when(number.isNotNull(), ABOVE).otherwise(0)


def _hashable(type: DataType) -> bool:
    return not type.simpleString().startswith(("variant", "void", "geo"))


def _flags(text: Column) -> Column:
    whole = text.rlike(WHOLE_TEXT)
    fits = {
        "int": whole & text.try_cast("int").isNotNull(),
        "bigint": whole & text.try_cast("bigint").isNotNull(),
        "double": text.rlike(DECIMAL_TEXT) & text.try_cast("double").isNotNull(),
        "date": text.rlike(DATE_TEXT) & text.try_cast("date").isNotNull(),
        "timestamp": text.rlike(TIME_TEXT) & text.try_cast("timestamp").isNotNull(),
    }
    flags = F.lit(0).cast("bigint")
    bits = {bit: fits[type] for type, bit in _TYPES.items()}
    bits |= {bit: text.rlike(LAYOUTS[layout][1]) for layout, bit in _LAYOUTS.items()}
    bits[_DECIMAL_MARK] = text.rlike(DECIMALS)
    for bit, holds in bits.items():
        flags = flags + F.when(holds, bit).otherwise(0)
    return flags


def _look(sketch: pa.Table, id: str, type: DataType) -> _Traits:
    """What the fingerprints of a column say."""
    hashes, codes = (sketch[f"{kind}{id}"].combine_chunks() for kind in "ht")
    present = hashes.is_valid().to_numpy(zero_copy_only=False)
    hashes, code = hashes.fill_null(0).to_numpy(), codes.fill_null(0).to_numpy()
    is_value = present & ~((code > 0) & (code < FIRST_NUMBER))
    reading = None
    is_number, is_time = isinstance(type, NumericType), isinstance(type, DatetimeType)
    if f"f{id}" in sketch.schema.names:
        flags = sketch[f"f{id}"].fill_null(0).to_numpy()[is_value]
        reading = _parse_flags(flags)
        is_number = reading is not None and reading.type in ("int", "bigint", "double")
        is_time = reading is not None and reading.type in ("date", "timestamp")
    n_distinct = len(np.unique(hashes[is_value]))
    codes = {*code[present].tolist()}
    meaning = read_codes(codes, n_distinct, is_number=is_number, is_time=is_time)
    tokens = present & np.isin(code, [*meaning.tokens])
    present &= ~tokens
    return _Traits(
        hashes=np.where(present, hashes, 0),
        present=present,
        tokens=name_tokens(Counter(code[tokens].tolist())),
        far=meaning.far,
        reading=reading,
    )


def _parse_flags(flags: Ints) -> Reading | None:
    """The narrowest type that all texts can be read as."""
    common = int(np.bitwise_and.reduce(flags)) if len(flags) else 0
    plain = next((type for type, bit in _TYPES.items() if common & bit), None)
    marked = bool(np.bitwise_or.reduce(flags) & _DECIMAL_MARK) if len(flags) else False
    fitting = (name for name, bit in _LAYOUTS.items() if common & bit)
    return choose_reading(fitting, plain=plain, marked=marked)


def _unique(raw: DataFrame, ids: list[str], n_rows: int, n_sample: int) -> set[str]:
    """Those of the columns without a repeated or missing value in the whole table."""
    if n_sample == n_rows:
        return set(ids)
    unique = set()
    for id in ids[:MAX_COUNTED]:  # apart, since Spark copies every row for each of several
        n_distinct = raw.agg(F.count_distinct(id)).head()
        if n_distinct is not None and n_distinct[0] == n_rows:
            unique.add(id)
    return unique


def _look_within(
    sample: DataFrame, types: Mapping[str, DataType]
) -> tuple[dict[str, str], dict[str, frozenset[str]]]:
    """By id of a column whose values name or reach persons: what they are; and by id, the doubts
    that all values leave. The executors look, and tell counts and hashes."""
    is_number = {
        id: not isinstance(type, StringType)
        for id, type in types.items()
        if isinstance(type, StringType | NumericType)
    }
    if not is_number:
        return {}, {}

    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            texts = [list_texts(batch[id]) for id in batch.schema.names]
            counts = [count_kinds(each).to_json() for each in texts]
            found = [[*find_doubts(each)] if each else None for each in texts]
            yield pa.record_batch(
                {
                    "id": batch.schema.names,
                    "counts": counts,
                    "doubts": pa.array(found, pa.list_(pa.string())),
                }
            )

    counted = sample.select(*is_number).mapInArrow(
        count, "id string, counts string, doubts array<string>"
    )
    parts: dict[str, list[KindCounts]] = {id: [] for id in is_number}
    doubts: dict[str, frozenset[str]] = {}
    for id, text, left in counted.collect():
        parts[id].append(KindCounts.from_json(text))
        if left is not None:
            doubts[id] = doubts.get(id, frozenset(left)).intersection(left)
    kinds = {
        id: main_kind(merge_kinds(each), is_number=is_number[id]) for id, each in parts.items()
    }
    return {id: kind for id, kind in kinds.items() if kind is not None}, doubts


def _find_parts(
    sample: DataFrame,
    types: Mapping[str, DataType],
    traits: Mapping[str, _Traits],
    name_of: Mapping[str, str],
) -> dict[str, str]:
    """By id of a column that is a part of a date in another one: which, such as `the hour of
    visit`."""
    casts = {
        id: Cast(types[id].simpleString()) if each.reading is None else Cast(*each.reading)
        for id, each in traits.items()
    }
    several = [id for id, each in traits.items() if each.n_distinct > 1]
    times = [id for id in several if casts[id].type.startswith(("date", "timestamp"))][:MAX_TIMES]
    whole = [id for id in several if casts[id].type in ("tinyint", "smallint", "int", "bigint")]
    if not times or not (whole or len(times) > 1):
        return {}
    hashes = {f"n{id}": F.col(id).try_cast("bigint") for id in whole[:MAX_PARTS]}
    for id in times:
        moment = read_as(F.col(id), casts[id])
        hashes[f"n{id}"] = moment.cast("timestamp_ntz")
        hashes[f"d{id}"] = moment.cast("date").cast("timestamp_ntz")
        for i, (_, part) in enumerate(_PARTS):
            hashes[f"p{i}{id}"] = part(moment).cast("bigint")
    found = sample.select(*[F.xxhash64(h).alias(name) for name, h in hashes.items()]).toArrow()
    columns = {name: found[name].to_numpy() for name in found.column_names}
    parts = {}
    for time in times:
        named = {f"d{time}": "date"} | {f"p{i}{time}": part for i, (part, _) in enumerate(_PARTS)}
        for id in [*whole[:MAX_PARTS], *times]:
            equal = [p for name, p in named.items() if _agree(columns[f"n{id}"], columns[name])]
            if equal and id != time:
                parts[id] = f"the {equal[0]} of {scalar(name_of[time])}"
    return parts


def _agree(hashes: Ints, others: Ints) -> bool:
    return len(hashes) >= MIN_UNIQUE and bool((hashes == others).all())

"""The content gate: looks at the values of columns, whatever roles the config gives them.

A released column must not show who a person is. It must not share values with an identifying
column, be a key, repeat a quasi-identifier, or have values that belong to one person each. The gate
looks at the source: digests prove that the release is made of these rows. Its rules are in
`anonlib/local/content_rules.py`; this module counts for them.
"""

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

from anonlib.auditing.canonical import fold_value, present
from anonlib.config.model import PrivacySection
from anonlib.errors import Problem
from anonlib.local.content_rules import (
    WHOLE_NUMBER,
    Content,
    ContentCounter,
    Sketch,
    bound_hashes,
    judge_columns,
    list_compared,
)
from anonlib.source import Source
from anonlib.spark.constants import look_up
from anonlib.spark.values import compute_once
from anonlib.table.schema import Column

#: Distinct values of a column that a sketch keeps, about.
SKETCH_SIZE = 50_000
#: A column with at most this many distinct values has few: all are kept.
SET_SIZE = 200_000


def judge_content(
    source: Source,
    n_rows: int,
    sample: pa.Table,
    privacy: PrivacySection,
    protected: frozenset[str],
) -> tuple[Content, list[Problem]]:
    """Judges the columns of a source that are released.

    Cost: one aggregate over the source. With more than SKETCH_SIZE rows one more for the columns
    that have few values, and one for counts of identifiers. One more for all columns with about
    as many values as an identifier, together. One more with a shuffle for each column that looks
    like a key, or as if its values belong to one person each, and for each pair of columns that may
    repeat each other.

    Args:
        source: The source.
        n_rows: The number of its rows.
        sample: A random sample of them, by id.
        privacy: The section of the config that acknowledges columns.
        protected: Names of sensitive columns with a model. They may have many distinct values.

    Returns:
        The figures, and what is wrong.
    """
    persons, candidates = list_compared(source.schema)
    columns = dict.fromkeys([*persons, *candidates])
    shares, small = _find_shares(source, columns, n_rows, sample)
    hash_of = _keyed_hash()
    frame = _as_texts(source.raw, source, columns)
    few = [c for c in candidates if c.id in small and c not in persons]
    whole = _sketch_values(source, few, hash_of) if few else {}
    shares |= dict.fromkeys(whole, 1.0)
    sketches, equal = _sketch(frame, persons, candidates, shares, whole, hash_of)
    counter = _FrameCounter(frame, source.schema.unit)
    return judge_columns(source.schema, sketches, equal, counter, privacy, protected)


def _find_shares(
    source: Source, columns: Mapping[Column, None], n_rows: int, sample: pa.Table
) -> tuple[dict[str, float], set[str]]:
    """By id: the share of a column's values that is about SKETCH_SIZE of them, or all; and the ids
    of the columns that have few values for sure. Values are counted in the sample; identifiers,
    which it lacks, by Spark."""
    if n_rows <= SKETCH_SIZE or not columns:
        return {c.id: 1.0 for c in columns}, set()
    seen = [c.id for c in columns if c.id in sample.column_names]
    likely, most = {}, {}
    for id in seen:
        likely[id], most[id] = estimate_distinct(sample.column(id), n_rows)
        # Rare values that the sample hardly shows must not fill the memory.
        likely[id] = max(likely[id], most[id] / 10)
    others = [c.id for c in columns if c.id not in seen]
    if others:
        row = source.raw.agg(*[F.approx_count_distinct(id, 0.1) for id in others]).collect()[0]
        likely |= dict(zip(others, row, strict=True))
    shares = {id: min(1.0, SKETCH_SIZE / max(1.0, n)) for id, n in likely.items()}
    return shares, {id for id, n in most.items() if n <= SET_SIZE}


def estimate_distinct(values: pa.ChunkedArray, n_rows: int) -> tuple[float, float]:
    """The number of distinct values in n_rows rows, by a sample of them without replacement.

    Returns:
        An estimate; and what it is hardly above, since as many rows have a value that the sample
        lacks as its values that are there once suggest. Both are exact if the sample has all rows.

    Reference: A. Chao, C.-W. Lin, Nonparametric lower bounds for species richness and shared
    species richness under sampling without replacement, Biometrics 68(3), 2012; I. J. Good, The
    population frequencies of species, Biometrika 40, 1953, for the second.
    """
    counts = pc.value_counts(values.drop_null().combine_chunks()).field("counts").to_numpy()
    n, size = len(counts), len(values)
    once, twice = int((counts == 1).sum()), int((counts == 2).sum())
    if size >= n_rows or not once:
        return float(n), float(n)
    share = size / n_rows
    scale = 2 * twice * size / max(size - 1, 1) + once * share / (1 - share)
    return n + once * once / scale, n + (n_rows - size) * once / size


def _as_texts(rows: DataFrame, source: Source, columns: Mapping[Column, None]) -> DataFrame:
    """Rows of a source with its columns as texts that are equal where people see one value: 7, 7.0
    and " 007", or a date and its midnight."""
    raw = {f"{c.id}_raw": source.columns[c.id].cast("string") for c in columns}
    frame = rows.withColumns(raw)
    # Text goes without the identity of persons, which costs as much: what it removes, `_as_folded`
    # removes, too.
    plain = [c for c in columns if not pa.types.is_string(c.type) or c.id in source.casts]
    frame = frame.withColumns({c.id: source.columns[c.id] for c in plain})
    # A step uses a value more than once: a projection of its own keeps it from being made again.
    for step in (_as_folded, _as_present, _as_text):
        frame = frame.withColumns({c.id: step(F.col(c.id), c) for c in columns})
    return compute_once(frame)


def _as_folded(value: SparkColumn, column: Column) -> SparkColumn:
    """Text as people see it; other values as they are."""
    if not pa.types.is_string(column.type):
        return value
    return fold_value(F.collate(value.cast("string"), "UTF8_BINARY"), StringType())


def _as_present(value: SparkColumn, column: Column) -> SparkColumn:
    return present(value, StringType(), ()) if pa.types.is_string(column.type) else value


def _as_text(value: SparkColumn, column: Column) -> SparkColumn:
    text, at = value.cast("string"), pa.types
    if at.is_timestamp(column.type):
        return F.regexp_replace(text, " 00:00:00$", "")
    if at.is_floating(column.type) or at.is_decimal(column.type):
        integer = value.try_cast("bigint")
        is_whole = integer.cast("double") == value.cast("double")
        return F.when(is_whole, integer.cast("string")).otherwise(text)
    if not at.is_string(column.type):
        return text
    whole = F.when(text.rlike(WHOLE_NUMBER), text).cast("bigint")
    return F.coalesce(whole.cast("string"), text)


def _number(text: SparkColumn, column: Column) -> SparkColumn:
    """A whole number, date or time as a number; null for other values. Only numbers and times may
    agree by chance."""
    if pa.types.is_date(column.type):
        return F.unix_date(text.try_cast("date")).cast("double")
    if pa.types.is_timestamp(column.type):
        return F.unix_seconds(text.try_cast("timestamp")).cast("double")
    return F.when(text.rlike(WHOLE_NUMBER), text.try_cast("double"))


def _sketch_values(
    source: Source, columns: list[Column], hash_of: Callable[[SparkColumn], SparkColumn]
) -> dict[str, Sketch]:
    """By id: the whole sketches of columns that have few values in many rows. A text is made of
    each value, not in each row."""
    ids = [c.id for c in columns]
    counts = [F.count(id).alias(f"{id}_n") for id in ids]
    sets = source.raw.agg(*[F.collect_set(id).alias(id) for id in ids], *counts)
    # A row for each place in the sets: the shorter ones end with nulls.
    rows = sets.select(F.explode(F.arrays_zip(*ids)).alias("value"), *[f"{id}_n" for id in ids])
    frame = rows.select("value.*", *[f"{id}_n" for id in ids])
    frame = frame.withColumns({f"{id}_given": F.col(id).isNotNull() for id in ids})
    texts = _as_texts(frame, source, dict.fromkeys(columns))
    parts = [F.col(f"{id}_{part}") for id in ids for part in ("n", "given")]
    for c in columns:
        text = F.col(c.id)
        parts.append(F.when(text.isNotNull(), hash_of(text)).alias(f"{c.id}_hash"))
        parts.append(_number(text, c).alias(f"{c.id}_number"))
    found = texts.select(*parts).toArrow()
    sketches, blank = {}, []
    for c in columns:
        hashes, given = found.column(f"{c.id}_hash"), found.column(f"{c.id}_given")
        present = pc.is_valid(hashes)
        if pc.any(pc.and_not(given, present)).as_py():
            blank.append(c)
        numbers = found.column(f"{c.id}_number").filter(present).to_numpy()
        unique, first = np.unique(hashes.filter(present).to_numpy(), return_index=True)
        n_present = found.column(f"{c.id}_n")[0].as_py() if len(found) else 0
        sketches[c.id] = Sketch(1.0, unique, numbers[first], n_present)
    if blank:  # texts that are no value were counted as some
        rows = _as_texts(source.raw, source, dict.fromkeys(blank))
        row = rows.agg(*[F.count(c.id) for c in blank]).collect()[0]
        for c, n in zip(blank, row, strict=True):
            sketches[c.id] = replace(sketches[c.id], n_present=n)
    return sketches


def _sketch(
    frame: DataFrame,
    persons: list[Column],
    others: list[Column],
    shares: Mapping[str, float],
    whole: Mapping[str, Sketch],
    hash_of: Callable[[SparkColumn], SparkColumn],
) -> tuple[dict[str, Sketch], dict[tuple[str, str], int]]:
    """The sketches by column id, and by pair of ids the number of rows where both are equal.

    whole: By id: sketches that are there already.
    """
    columns = [c for c in dict.fromkeys([*persons, *others]) if c.id not in whole]
    known = np.unique(np.concatenate([np.zeros(0, np.int64), *[w.hashes for w in whole.values()]]))
    hashes, items, aggregates = {}, {}, []
    for c in columns:
        text, hashed = F.col(c.id), F.col(f"{c.id}_hash")
        hashes[f"{c.id}_hash"] = F.when(text.isNotNull(), hash_of(text))
        value = F.struct(hashed.alias("hash"), _number(text, c).alias("number"))
        items[f"{c.id}_item"] = F.when(hashed <= F.lit(bound_hashes(shares[c.id])), value)
        sets = F.collect_set(f"{c.id}_item").alias(c.id)
        aggregates += [sets, F.count(hashed).alias(f"{c.id}_n")]
    for p in persons:
        hashed = F.col(f"{p.id}_hash")
        place = look_up(hashed, known, np.arange(len(known)), -1)
        items[f"{p.id}_found"] = F.when(place >= 0, hashed)
        aggregates.append(F.collect_set(f"{p.id}_found").alias(f"{p.id}_found"))
    pairs = [(c.id, p.id) for c in others for p in persons if c.id != p.id]
    aggregates += [
        F.count_if(F.col(f"{c}_hash") == F.col(f"{p}_hash")).alias(f"{c}={p}")
        for c, p in pairs
        if c not in whole
    ]
    # Sets take their input from the row: it is computed by generated code, not interpreted. Rows
    # without texts are small.
    rows = compute_once(frame.withColumns(hashes).withColumns(items).select(*hashes, *items))
    row = rows.agg(*aggregates).toArrow() if aggregates else pa.table({})
    sketches = dict(whole)
    for c in columns:
        found, numbers = row.column(c.id).combine_chunks().flatten().flatten()
        n_present = row.column(f"{c.id}_n")[0].as_py()
        line = numbers.to_numpy(zero_copy_only=False)  # NaN for null
        sketches[c.id] = Sketch(shares[c.id], found.to_numpy(), line, n_present)
    equal = {(c, p): row.column(f"{c}={p}")[0].as_py() for c, p in pairs if c not in whole}
    seen = {
        p.id: row.column(f"{p.id}_found").combine_chunks().flatten().to_numpy() for p in persons
    }
    meet = {(c, p) for c, p in pairs if c in whole and np.isin(seen[p], whole[c].hashes).any()}
    return sketches, {**dict.fromkeys(pairs, 0), **equal, **_count_equal(frame, meet)}


def _count_equal(frame: DataFrame, pairs: set[tuple[str, str]]) -> dict[tuple[str, str], int]:
    """By pair of ids: the rows where both are equal. One aggregate, if there are pairs."""
    ordered = sorted(pairs)
    counts = [F.count_if(F.col(c) == F.col(p)) for c, p in ordered]
    row = frame.agg(*counts).collect()[0] if counts else ()
    return dict(zip(ordered, row, strict=True))


def _keyed_hash() -> Callable[[SparkColumn], SparkColumn]:
    """A hash of texts. Its key is fresh, so that nobody can prepare values that it leaves out."""
    key = F.lit(secrets.randbits(63))
    return lambda text: F.xxhash64(key, text, key)


@dataclass(frozen=True)
class _FrameCounter(ContentCounter):
    """Counts in Spark.

    Attributes:
        frame: The rows with their columns as texts, by id.
        unit: Ids of the columns that identify a person.
    """

    frame: DataFrame
    unit: tuple[str, ...]

    def count_equal(self, column: Column, other: Column) -> int:
        return self.frame.where(F.col(column.id) == F.col(other.id)).count()

    def count_distinct(self, column: Column) -> int:
        return self.frame.select(column.id).na.drop().distinct().count()

    def count_pairs(self, column: Column, other: Column, share: float) -> tuple[int, int, int]:
        c, q = column.id, other.id
        kept = _keyed_hash()(F.col(c)) <= F.lit(bound_hashes(share))
        both = self.frame.select(c, q).na.drop().where(kept)
        row = both.agg(*[F.count_distinct(*ids) for ids in ([c], [q], [c, q])]).collect()[0]
        return row[0], row[1], row[2]

    def count_parts(
        self, pairs: Sequence[tuple[Column, Column]], sizes: Sequence[int]
    ) -> list[list[int]]:
        parts = [_find_part(c.id, p.id).alias(f"size_{i}") for i, (c, p) in enumerate(pairs)]
        rows = compute_once(self.frame.select(*parts))
        n_made = [F.count_if(F.col(part) >= n) for n in sizes for part in rows.columns]
        row = rows.agg(*n_made).collect()[0]
        return [[*row[i :: len(pairs)]] for i in range(len(pairs))]

    def count_alone(self, column: Column) -> tuple[int, int]:
        person = F.xxhash64(*[F.col(id) for id in self.unit])
        by_value = self.frame.where(F.col(column.id).isNotNull()).groupBy(column.id)
        repeated_values = by_value.agg(
            F.count("*").alias("n"), F.min(person).alias("low"), F.max(person).alias("high")
        ).where("n > 1")
        row = repeated_values.agg(
            F.count("*"), F.count_if(F.col("low") == F.col("high"))
        ).collect()[0]
        return row[0], row[1]


def _find_part(id: str, person: str) -> SparkColumn:
    """How many letters and digits of an identifier a text shows: those of the identifier if the
    text has it in it or is it backwards, those of the text if it is a part of the identifier or its
    hash; else 0."""
    value, other = (F.regexp_replace(name, r"[^\p{L}\p{N}]+", "") for name in (id, person))
    n_value, n_other, raw = F.length(value), F.length(other), F.col(f"{person}_raw")
    within = F.when(value.contains(other) | (F.reverse(value) == other), n_other)
    part = F.when(other.contains(value), n_value)
    forms = [form for text in (raw, F.col(person)) for form in (text, F.upper(text))]
    hashes = [h(form) for form in forms for h in (F.md5, F.sha1, lambda f: F.sha2(f, 256))]
    # Hashes are computed for texts of their lengths alone.
    hashed = F.when(n_value.isin(32, 40, 64), F.when(value.isin(*hashes), n_value))
    return F.greatest(within, part, hashed, F.lit(0))

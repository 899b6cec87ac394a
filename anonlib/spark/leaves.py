"""Rows to leaves, and exact counts of leaves."""

from dataclasses import replace
from math import ceil

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from anonlib.block import Ints
from anonlib.config import Config
from anonlib.encoding import Values, codes_among
from anonlib.partition._plan import CHUNK, Cuts
from anonlib.partition._repair import Counts
from anonlib.privacy import PrivacyModel, SparseCounts
from anonlib.schema import Schema
from anonlib.spark.features import Feature, coordinates
from anonlib.spark.joint import joint_counts
from anonlib.spark.lookup import at, matrix
from anonlib.spark.values import canonical

#: Sketches of distinct values have 64-bit words, this many values of l each.
VALUES_PER_WORD = 16
LEAF = "__anonlib_leaf"
#: Levels of a tree in one generated method, about 400 bytes each.
LEVELS = 14
#: More partitions than a table has.
EVERY = 2**31 - 1


def with_leaf(
    rows: DataFrame, schema: Schema, features: tuple[Feature, ...], cuts: Cuts, root: Column
) -> DataFrame:
    """The rows with LEAF: the tree of each row walked level by level, each level three look-ups in
    arrays of its own, so that the code stays small however many leaves there are."""
    *levels, (_, leaf) = cuts.levels()
    if not levels:
        return rows.withColumn(LEAF, at(leaf, root))
    kept = rows.columns
    x, place = "__anonlib_x", "__anonlib_place"
    frame = rows.select(*kept, coordinates(schema, features).alias(x), root.alias(place))
    here = F.col(place)
    for depth, (weights, child) in enumerate(levels):
        if depth % LEVELS == 0:
            # Moves no row, but ends a generated method: HotSpot leaves those above 8,000 bytes
            # to its interpreter, which is many times slower.
            frame = frame.coalesce(EVERY)
        cut = F.get(matrix(weights), here)
        frame, score = _scored(frame, cut, F.col(x), weights.shape[1])
        right = (score >= F.lit(0.0).cast("float")).cast("int")
        frame = frame.withColumn(place, at(child, here).bitwiseOR(right))
    return frame.select(*kept, at(leaf, here).alias(LEAF))


def _scored(
    frame: DataFrame, weights: Column, features: Column, width: int
) -> tuple[DataFrame, Column]:
    """The inner product of two arrays of floats, its products added up as plans do it; and the
    frame that has it."""
    if tuple(map(int, frame.sparkSession.version.split(".")[:2])) >= (4, 2):
        return frame, F.call_function("vector_inner_product", weights, features)
    # A column of its own, so that the products are made once for all chunks.
    products = "__anonlib_products"
    frame = frame.withColumn(products, F.zip_with(weights, features, lambda v, w: v * w))
    total = F.lit(0.0).cast("float")
    for start in range(0, width, CHUNK):
        first, rest = F.get(products, F.lit(start)), F.slice(products, start + 2, CHUNK - 1)
        total = total + F.aggregate(rest, first, lambda part, product: part + product)
    return frame, total


def counted(
    rows: DataFrame,
    schema: Schema,
    values: dict[str, Values],
    models: tuple[PrivacyModel, ...],
    config: Config,
    n_leaves: int,
    by: str,
) -> Counts:
    """Exact rows and persons of each leaf, and its protected values: exact counts of those that
    models look at the counts of, of others a sketch from below."""
    words = max(1, ceil(max((m.min_values for m in models), default=0) / VALUES_PER_WORD))
    keys = [by, *schema.unit] if schema.unit else [by]
    person = F.lit(1) if not schema.unit else _all_present(schema.unit)
    inner = [F.count(F.lit(1)).alias("n"), F.max(person).alias("person")]
    sketches = []
    by_sketch = [id for id in schema.protected if id not in values]
    for id in by_sketch:
        value = canonical(F.col(id), schema.by_id(id).type, config.privacy.missing_tokens)
        for word in range(words):
            sketches.append(f"{id}_{word}")
            inner.append(F.bit_or(_bit(value, word, words)).alias(sketches[-1]))
    grouped = rows.groupBy(*keys).agg(*inner)
    outer = [F.sum("n").alias("n"), F.sum("person").alias("persons")]
    outer += [F.bit_or(name).alias(name) for name in sketches]
    if schema.unit:
        grouped = grouped.groupBy(by).agg(*outer)
    else:
        grouped = grouped.withColumn("persons", F.col("n"))
    found = grouped.toArrow()
    leaf = found.column(by).to_numpy()

    def full(name: str) -> Ints:
        result = np.zeros(n_leaves, np.int64)
        result[leaf] = found.column(name).fill_null(0).to_numpy()
        return result

    sketched = {
        id: np.column_stack([full(f"{id}_{word}") for word in range(words)]) for id in by_sketch
    }
    counts = {id: _value_counts(rows, schema, v, config, id, by) for id, v in values.items()}
    references = {id: each.reference for id, each in values.items()}
    joint = joint_counts(rows, schema, values, config, by) if schema.joint else None
    sizes = full("n"), full("persons")
    return Counts(*sizes, sketched, bool(schema.unit), counts, references, joint)


def _value_counts(
    rows: DataFrame, schema: Schema, values: Values, config: Config, id: str, by: str
) -> SparseCounts:
    """How often each value of a column stands in each leaf."""
    tokens = config.privacy.missing_tokens
    value = canonical(F.col(id), schema.by_id(id).type, tokens).alias("value")
    present = rows.select(by, value).na.drop(subset=["value"])
    found = present.groupBy(by, "value").count().toArrow()
    code = codes_among(found.column("value").combine_chunks(), (), values.categories)
    cell, count = found.column(by).to_numpy(), found.column("count").to_numpy()
    order = np.lexsort((code, cell))
    return SparseCounts(*[part[order].astype(np.int64) for part in (cell, code, count)])


def exact_values(
    rows: DataFrame,
    schema: Schema,
    models: tuple[PrivacyModel, ...],
    config: Config,
    counts: Counts,
    by: str,
) -> Counts:
    """The counts with the sketches replaced by the exact number of distinct values, as far as any
    model asks, as values that stand once."""
    asked = max((model.min_values for model in models), default=0)
    exact = dict(counts.counts)
    for id in counts.sketches:
        value = canonical(F.col(id), schema.by_id(id).type, config.privacy.missing_tokens)
        n = rows.groupBy(by).agg(F.count_distinct(value).alias("n")).toArrow()
        leaf, size = n.column(by).to_numpy().astype(np.int64), n.column("n").to_numpy()
        order = np.argsort(leaf)
        leaf, size = leaf[order], np.minimum(size[order], asked).astype(np.int64)
        value_id = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
        exact[id] = SparseCounts(np.repeat(leaf, size), value_id, np.ones(size.sum(), np.int64))
    return replace(counts, sketches={}, counts=exact)


def _all_present(unit: tuple[str, ...]) -> Column:
    present = F.lit(True)
    for id in unit:
        present = present & F.col(id).isNotNull()
    return present.cast("int")


def _bit(value: Column, word: int, words: int) -> Column:
    """The bit of a value in one word of the sketch; 0 where missing or in another word."""
    hashed = F.xxhash64(value)
    place = F.pmod(hashed, F.lit(64)).cast("int")
    bit = F.call_function("shiftleft", F.lit(1).cast("bigint"), place)
    mine = value.isNotNull() & (F.pmod(F.shiftright(hashed, 6), F.lit(words)) == word)
    return F.when(mine, bit).otherwise(F.lit(0).cast("bigint"))

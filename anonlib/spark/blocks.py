"""From rows to blocks: fit the plan, count its leaves exactly, repair, and number the blocks."""

from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from anonlib.block import Floats, Ints
from anonlib.config import Config
from anonlib.encoding import codes_among
from anonlib.errors import ConfigError, Problem
from anonlib.partition import Cuts, Sample
from anonlib.partition._plan import Singles, no_cuts
from anonlib.partition._repair import Counts, merge_small, size_bound
from anonlib.privacy import PrivacyModel, SparseCounts
from anonlib.schema import Schema
from anonlib.spark.features import Feature, coordinates, distinct, features
from anonlib.spark.scan import Scan
from anonlib.spark.values import canonical
from anonlib.work import BLOCK, DEAL

#: Leaves aim at this share of max_rows, since a sample does not see their exact size.
FILL = 0.5
#: Blocks of up to this many times max_rows are bisected in their task; larger ones are dealt out.
IN_TASK = 4
#: Sampled rows that a plan is fitted on: this many for each leaf, and at least MIN_FITTED.
FITTED_PER_LEAF = 256
MIN_FITTED = 10_000
#: Sketches of distinct values have 64-bit words, this many values of l each.
VALUES_PER_WORD = 16
LEAF = "__anonlib_leaf"
#: Levels of a tree in one generated method, about 400 bytes each.
LEVELS = 14
#: More partitions than a table has.
EVERY = 2**31 - 1


@dataclass(frozen=True)
class Plan:
    """Rows -> blocks: the leaf of `cuts`, then `first[leaf]` plus DEAL modulo `buckets[leaf]` is
    the block."""

    features: tuple[Feature, ...]
    cuts: Cuts
    first: Ints
    buckets: Ints
    n_rows: int
    n_blocks: int
    n_merged: int
    largest: int

    def to_dict(self) -> dict[str, Any]:
        """For the private run record."""
        return {
            "features": [{"column": f.id, "form": f.form} for f in self.features],
            "cuts": self.cuts.to_dict(),
            "n_leaves": self.cuts.n_leaves,
            "n_blocks": self.n_blocks,
            "n_merged": self.n_merged,
            "largest_leaf": self.largest,
        }


def plan(
    rows: DataFrame,
    schema: Schema,
    scan: Scan,
    config: Config,
    models: tuple[PrivacyModel, ...],
) -> Plan:
    """The frozen plan. `models` name columns by id.

    Raises ConfigError when `single` meets a table larger than its limit.
    """
    found, values = features(schema, scan.encodings, scan.hashes, scan.sample)
    cuts = _fit(values, scan.n_rows, config)
    if cuts.n_leaves == 1:
        # The scan has shown that the whole table holds the models.
        counts = Counts(np.array([scan.n_rows]), np.array([scan.n_rows]), {}, False)
        block_of_leaf, centers = np.zeros(1, np.int64), np.zeros((1, values.shape[1]))
    else:
        leaves = with_leaf(rows, schema, found, cuts)
        counts = _count(leaves, schema, scan, models, config, cuts.n_leaves)
        centers = _centers(cuts.assign(values), values, cuts.n_leaves)
        block_of_leaf = merge_small(cuts, counts, centers, models)
    sizes = np.bincount(block_of_leaf, counts.n_rows).astype(np.int64)
    buckets = _buckets(rows, schema, scan, found, cuts, block_of_leaf, sizes, config, models)
    first = np.cumsum(buckets) - buckets
    return Plan(
        found,
        cuts,
        first[block_of_leaf],
        buckets[block_of_leaf],
        scan.n_rows,
        int(buckets.sum()),
        int(cuts.n_leaves - len(sizes)),
        int(sizes.max()),
    )


def with_blocks(rows: DataFrame, schema: Schema, plan: Plan) -> DataFrame:
    """The rows with BLOCK, computed in the JVM row by row."""
    if plan.n_blocks == 1:
        return rows.withColumn(BLOCK, F.lit(0)).drop(DEAL)
    rows = with_leaf(rows, schema, plan.features, plan.cuts)
    block = _lookup(plan.first, F.col(LEAF))
    if plan.buckets.max() > 1:
        dealt = F.pmod(F.col(DEAL), _lookup(plan.buckets, F.col(LEAF)))
        block = block + dealt
    return rows.withColumn(BLOCK, block.cast("int")).drop(LEAF, DEAL)


def with_leaf(
    rows: DataFrame, schema: Schema, features: tuple[Feature, ...], cuts: Cuts
) -> DataFrame:
    """The rows with LEAF: the tree walked level by level, each level three look-ups in arrays of
    its own, so that the code stays small however many leaves there are."""
    if cuts.n_leaves == 1:
        return rows.withColumn(LEAF, F.lit(0))
    kept = rows.columns
    x, place = "__anonlib_x", "__anonlib_place"
    *levels, (_, leaf) = cuts.levels()
    filled = [F.lit(-1.0)] + [F.lit(0.0)] * (levels[0][0].shape[1] - len(features) - 1)
    point = F.array(*coordinates(schema, features), *[one.cast("float") for one in filled])
    frame = rows.select(*kept, point.alias(x), F.lit(0).alias(place))
    at = F.col(place)
    for depth, (weights, child) in enumerate(levels):
        if depth % LEVELS == 0:
            # Moves no row, but ends a generated method: HotSpot leaves those above 8,000 bytes
            # to its interpreter, which is many times slower.
            frame = frame.coalesce(EVERY)
        score = F.call_function("vector_inner_product", F.get(_matrix(weights), at), F.col(x))
        right = (score >= F.lit(0.0).cast("float")).cast("int")
        frame = frame.withColumn(place, _lookup(child, at).bitwiseOR(right))
    return frame.select(*kept, _lookup(leaf, at).alias(LEAF))


def _matrix(values: Singles) -> Column:
    """An array of rows of floats as one folded literal: nine digits say a float exactly."""
    text = ",".join("[" + ",".join(f"{v:.9g}" for v in row) + "]" for row in values.tolist())
    return F.from_json(F.lit(f"[{text}]"), "array<array<float>>")


def _lookup(values: Ints, at: Column) -> Column:
    """The value at a place of an array, which is one folded literal."""
    text = ",".join(map(str, values.tolist()))
    return F.get(F.split(F.lit(text), ",").cast("array<int>"), at)


def _fit(values: Singles, n_rows: int, config: Config) -> Cuts:
    """The tree of the config's first step."""
    step = config.partition.steps[0]
    limit = step.whole
    if limit is not None:
        if n_rows > limit:
            text = f"one block takes at most {limit} rows, the source has {n_rows}; use kmeans"
            raise ConfigError([Problem("partition.steps.0", text)])
        return no_cuts(values.shape[1])
    n_leaves = ceil(n_rows / (FILL * config.partition.max_rows))
    if n_rows <= config.partition.max_rows or not values.shape[1]:
        return no_cuts(values.shape[1])
    # The sample comes in the order of a hash: its beginning is a sample too.
    unique, weight = distinct(values[: max(MIN_FITTED, FITTED_PER_LEAF * n_leaves)])
    return step.fit(Sample(unique, weight), n_leaves, config.seed)


def _centers(leaf: Ints, values: Singles, n_leaves: int) -> Floats:
    """Mean features of the sampled rows of each leaf; 0 where none was sampled."""
    count = np.maximum(np.bincount(leaf, minlength=n_leaves), 1)
    sums = [np.bincount(leaf, values[:, f], minlength=n_leaves) for f in range(values.shape[1])]
    return np.column_stack(sums) / count[:, None]


def _count(
    rows: DataFrame,
    schema: Schema,
    scan: Scan,
    models: tuple[PrivacyModel, ...],
    config: Config,
    n_leaves: int,
    by: str = LEAF,
) -> Counts:
    """Exact rows and persons of each leaf, and its protected values: exact counts of those that
    models look at the counts of, of others a sketch from below."""
    words = max(1, ceil(max((m.min_values for m in models), default=0) / VALUES_PER_WORD))
    keys = [by, *schema.unit] if schema.unit else [by]
    person = F.lit(1) if not schema.unit else _all_present(schema.unit)
    inner = [F.count(F.lit(1)).alias("n"), F.max(person).alias("person")]
    sketches = []
    by_sketch = [id for id in schema.protected if id not in scan.values]
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
    counted = {id: _value_counts(rows, schema, scan, config, id, by) for id in scan.values}
    references = {id: values.reference for id, values in scan.values.items()}
    return Counts(full("n"), full("persons"), sketched, bool(schema.unit), counted, references)


def _value_counts(
    rows: DataFrame, schema: Schema, scan: Scan, config: Config, id: str, by: str
) -> SparseCounts:
    """How often each value of a column stands in each leaf."""
    tokens = config.privacy.missing_tokens
    value = canonical(F.col(id), schema.by_id(id).type, tokens).alias("value")
    found = rows.select(by, value).na.drop().groupBy(by, "value").count().toArrow()
    code = codes_among(found.column("value").combine_chunks(), (), scan.values[id].categories)
    cell, count = found.column(by).to_numpy(), found.column("count").to_numpy()
    order = np.lexsort((code, cell))
    return SparseCounts(*[part[order].astype(np.int64) for part in (cell, code, count)])


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


def _buckets(
    rows: DataFrame,
    schema: Schema,
    scan: Scan,
    features: tuple[Feature, ...],
    cuts: Cuts,
    block_of_leaf: Ints,
    sizes: Ints,
    config: Config,
    models: tuple[PrivacyModel, ...],
) -> Ints:
    """Into how many buckets each block is dealt by hash: 1 unless it is too large for a task (most
    of it is then one repeated tuple), and no more than hold the models."""
    bound = config.partition.max_rows
    wanted = np.where(sizes > IN_TASK * bound, -(-sizes // bound), 1)
    if config.partition.steps[0].type == "single":
        return np.ones_like(wanted)
    while (wanted > 1).any():
        trial = _trial(features, cuts, block_of_leaf, wanted)
        blocks = with_blocks(rows, schema, trial)
        counts = _count(blocks, schema, scan, models, config, trial.n_blocks, by=BLOCK)
        failing = ~size_bound(counts, models)
        owner = np.repeat(np.arange(len(wanted)), wanted)
        shrink = np.unique(owner[failing & (wanted[owner] > 1)])
        if not len(shrink):
            break
        wanted[shrink] = wanted[shrink] // 2
    return wanted


def _trial(features: tuple[Feature, ...], cuts: Cuts, block_of_leaf: Ints, buckets: Ints) -> Plan:
    """A plan on trial."""
    first = np.cumsum(buckets) - buckets
    return Plan(
        features,
        cuts,
        first[block_of_leaf],
        buckets[block_of_leaf],
        n_rows=0,
        n_blocks=int(buckets.sum()),
        n_merged=0,
        largest=0,
    )

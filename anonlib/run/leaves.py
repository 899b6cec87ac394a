"""Sends rows to leaves, and counts leaves exactly.

A tree that was grown on a block's columns is compiled to linear cuts of features. The JVM computes
the features of every row, with the same float32 results.
"""

from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Literal, NamedTuple

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from anonlib.arrays import GRID, MISSING, Ints
from anonlib.partition import INDICATOR, Among, Below, CutTree, Plane, Sample
from anonlib.partition.cuts import CHUNK, NO_CUT, Cuts, Level, Singles
from anonlib.partition.repair import BlockCounts, as_values, count_words
from anonlib.privacy import PrivacyModel, SparseCounts
from anonlib.run.feasible import count_joint
from anonlib.spark.constants import at, look_up, make_constants
from anonlib.spark.values import (
    as_double,
    compute_once,
    count_units,
    make_canonical,
    make_canonical_columns,
)
from anonlib.table.encoding import Encoding, Values, code_among
from anonlib.table.schema import Scale, Schema

LEAF = "__anonlib_leaf"

#: Levels of a tree in one generated method, about 640 bytes each.
LEVELS = 8


@dataclass(frozen=True)
class CutFeature:
    """Coordinates of a row that come from one column. Hashes stand for values, so that plans and
    query plans show no value. The form says which coordinates:

    - number: the standardized value on GRID; 0 if missing.
    - rank: the same of the place of the value's hash in `hashes`.
    - missing: 1 if the column is null, else 0.
    - code: the place of the value's hash; the number of hashes if missing.
    - groups: for each group of categories, INDICATOR if the value is in it, else 0. `group` has
      the group of each hash, then the group of missing values; -1 for none.
    - none: 0 in every row, to fill a chunk.
    """

    id: str
    form: Literal["number", "rank", "missing", "code", "groups", "none"]
    mean: float = 0.0
    sd: float = 1.0
    hashes: tuple[int, ...] = ()
    group: tuple[int, ...] = ()

    @property
    def width(self) -> int:
        """The number of coordinates."""
        return 1 + max(self.group) if self.form == "groups" else 1


class CompiledTree(NamedTuple):
    """A tree as linear cuts.

    Attributes:
        features: The features of the cuts, in order.
        cuts: The cuts.
    """

    features: tuple[CutFeature, ...]
    cuts: Cuts


def compile_tree(
    tree: CutTree, sample: Sample, encodings: tuple[Encoding, ...], hashes: dict[str, Ints]
) -> CompiledTree:
    """Compiles a tree to linear cuts. hashes: by column id, Spark's hashes of the categories.

    Planes weigh the last features: `Sample.coordinates` in their order, from the start of a chunk.
    So Spark adds up their products in the same order as memory and tasks.
    """
    numeric = _numeric(encodings, hashes)
    nominal = [encoding for encoding in encodings if encoding.nominal]
    p = len(numeric)
    planes = any(isinstance(cut, Plane) for cut in tree.cuts)
    columns = {cut.column for cut in tree.cuts if isinstance(cut, Below)}
    features, place = [], {}  # place: (column, code or None) -> coordinate
    width = 0
    for j in sorted(columns):
        if planes and j < p:
            continue
        features.append(numeric[j] if j < p else _code(nominal[j - p], hashes))
        place[j, -1] = width
        width += 1
    for j, encoding in enumerate(nominal, p):
        sets = [cut.codes for cut in tree.cuts if isinstance(cut, Among) and cut.column == j]
        if sets:
            group = _groups(encoding.n_categories, sets)
            features.append(_indicate(encoding, group, hashes))
            place |= {(j, code): width + int(at) for code, at in enumerate(group)}
            width += features[-1].width
    if planes:
        features += [CutFeature("", "none")] * (-width % CHUNK)
        width += -width % CHUNK
        place |= {(j, -1): width + j for j in range(p)}
        features += numeric
        features += [_indicate_tops(each, j, sample, hashes) for j, each in enumerate(nominal, p)]
    weights = np.zeros((len(tree.cuts), sum(f.width for f in features)), np.float32)
    threshold = np.zeros(len(tree.cuts), np.float32)
    for i, cut in enumerate(tree.cuts):
        if isinstance(cut, Plane):
            weights[i, width:], threshold[i] = cut
        else:
            threshold[i] = _linear(cut, place, weights[i])
    return CompiledTree(
        tuple(features), Cuts(weights, threshold, tree.left, tree.right, tree.roots)
    )


def _linear(cut: Below | Among, place: dict[tuple[int, int], int], weights: Singles) -> float:
    """Fills in the weights of a cut; returns its threshold."""
    if isinstance(cut, Below):
        weights[place[cut.column, -1]] = 1.0
        return cut.threshold
    weights[[place[cut.column, code] for code in cut.codes.tolist()]] = -1.0
    return -float(INDICATOR) / 2


def _indicate_tops(
    encoding: Encoding, column: int, sample: Sample, hashes: dict[str, Ints]
) -> CutFeature:
    """The coordinates of a nominal column's frequent categories."""
    codes = [code for j, code in sample.tops if j == column]
    group = np.full(encoding.n_categories, -1)
    group[codes] = np.arange(len(codes))
    return _indicate(encoding, group, hashes)


def _indicate(encoding: Encoding, group: Ints, hashes: dict[str, Ints]) -> CutFeature:
    """The indicators of groups of codes. group: int64[codes]. The group of each; -1 for none."""
    return CutFeature(
        encoding.id,
        "groups",
        hashes=tuple(hashes[encoding.id].tolist()),
        group=(*group.tolist(), *[-1] * (not encoding.missing)),
    )


def _numeric(encodings: tuple[Encoding, ...], hashes: dict[str, Ints]) -> list[CutFeature]:
    """The features of a block's numeric columns."""
    features = []
    for e in encodings:
        if e.nominal:
            continue
        if e.scale is Scale.ORDINAL:
            features.append(CutFeature(e.id, "rank", e.mean, e.sd, tuple(hashes[e.id].tolist())))
        else:
            features.append(CutFeature(e.id, "number", e.mean, e.sd))
        features += [CutFeature(e.id, "missing")] * e.missing
    return features


def _code(encoding: Encoding, hashes: dict[str, Ints]) -> CutFeature:
    return CutFeature(encoding.id, "code", hashes=tuple(hashes[encoding.id].tolist()))


def _groups(n_codes: int, sets: list[Ints]) -> Ints:
    """int64[n_codes]: the group of each code; codes are apart if a set tells them apart."""
    group = np.zeros(n_codes, np.int64)
    for codes in sets:
        inside = np.zeros(n_codes, np.int64)
        inside[codes] = 1
        group = np.unique(2 * group + inside, return_inverse=True)[1]
    return group


def make_coordinates(schema: Schema, features: tuple[CutFeature, ...]) -> Column:
    """The features of each row, and -1 for the threshold, as an array of floats filled with 0 to
    whole chunks of the inner product."""
    parts: list[Column] = []
    for grouped, run in groupby(features, lambda feature: feature.form == "groups"):
        if grouped:
            parts += map(_indicators, run)
        else:
            parts.append(F.array(*[_expression(f, schema).cast("float") for f in run]))
    width = sum(f.width for f in features)
    filled = [-1.0] + [0.0] * (-(width + 1) % CHUNK)
    return F.concat(*parts, F.array(*[F.lit(x).cast("float") for x in filled]))


def _expression(feature: CutFeature, schema: Schema) -> Column:
    if feature.form == "none":
        return F.lit(0.0)
    value = F.col(feature.id)
    if feature.form == "missing":
        return value.isNull().cast("double")
    if feature.form == "code":
        n = len(feature.hashes)
        found = look_up(F.xxhash64(value), np.array(feature.hashes, np.int64), np.arange(n), n)
        return F.when(value.isNotNull(), found).otherwise(F.lit(n))
    if feature.form == "rank":
        hashes = np.array(feature.hashes, np.int64)
        place = look_up(F.xxhash64(value), hashes, np.arange(len(hashes)), 0)
        x = F.when(value.isNotNull(), place.cast("double"))
    else:
        x = as_double(value, schema.by_id(feature.id).type)
    half = F.lit(2.0)  # as in `standardize`
    z = (x / half - F.lit(feature.mean / 2)) / F.lit(feature.sd / 2)
    snapped = F.rint(z / F.lit(GRID)) * F.lit(GRID)
    return F.coalesce(snapped, F.lit(0.0))


def _indicators(feature: CutFeature) -> Column:
    value = F.col(feature.id)
    *groups, missing = (each if each >= 0 else feature.width for each in feature.group)
    group, hashes = np.array(groups, np.int64), np.array(feature.hashes, np.int64)
    # Most categories are in one group: only the others are looked up.
    common = int(np.argmax(np.bincount(group))) if len(group) else 0
    listed = group != common
    found = look_up(F.xxhash64(value), hashes[listed], group[listed], common)
    indicators = np.eye(feature.width + 1, feature.width, dtype=np.float32) * INDICATOR
    place = F.when(value.isNotNull(), found).otherwise(F.lit(missing))
    return F.get(make_constants({"indicators": indicators})["indicators"], place)


def with_leaf(
    rows: DataFrame, schema: Schema, features: tuple[CutFeature, ...], cuts: Cuts, root: Column
) -> DataFrame:
    """Adds LEAF to the rows. Walks the tree level by level; each level is a few look-ups in arrays,
    so the code stays small for any number of leaves. Where a row is at its leaf already, nothing is
    multiplied."""
    *levels, last = cuts.levels()
    if not levels:
        return rows.withColumn(LEAF, at(last.child, root))
    names = rows.columns
    x, place = "__anonlib_x", "__anonlib_place"
    frame = rows.select(*names, make_coordinates(schema, features).alias(x), root.alias(place))
    here = F.col(place)
    arrays: dict[str, Any] = {"leaf": last.child.astype(np.int32)}
    width = cuts.weights.shape[1]
    for depth, level in enumerate(levels):
        arrays |= {f"{name} {depth}": each for name, each in _list_arrays(level, width).items()}
    shared = make_constants(arrays)
    for depth, level in enumerate(levels):
        if depth % LEVELS == 0:
            # Moves no row, but ends a generated method: HotSpot leaves those above 8,000 bytes
            # to its interpreter, which is many times slower.
            frame = compute_once(frame)
        if f"threshold {depth}" in shared:
            value = F.get(F.col(x), F.get(shared[f"coordinate {depth}"], here))
            right = (value >= F.get(shared[f"threshold {depth}"], here)).cast("int")
        else:
            cut = F.get(shared[f"cut {depth}"], here)
            weights = F.get(shared[f"weights {depth}"], cut)
            frame, score = _score(frame, weights, F.col(x), level.weights.shape[1])
            turn = (score >= F.lit(0.0).cast("float")).cast("int")
            right = F.when(cut == F.lit(NO_CUT), F.lit(0)).otherwise(turn)
        frame = frame.withColumn(place, F.get(shared[f"child {depth}"], here).bitwiseOR(right))
    return frame.select(*names, F.get(shared["leaf"], here).alias(LEAF))


def _list_arrays(level: Level, width: int) -> dict[str, Any]:
    """The arrays of a level by name: where its rows go, and its cuts.

    If each cut is of one coordinate, that coordinate and the threshold are enough, by place. They
    give the same side as the products of all coordinates, and take less time.

    Args:
        level: The level.
        width: The number of coordinates. The one after them is -1.
    """
    child = level.child.astype(np.int32)
    weights = level.weights[:, :width]
    if (np.count_nonzero(weights, axis=1) > 1).any() or (weights.max(axis=1) != 1).any():
        return {"child": child, "weights": level.weights, "cut": level.cut.astype(np.int32)}
    inner = level.cut != NO_CUT
    coordinate = np.full(len(child), width, np.int32)  # at a leaf -1, which is below 0: left
    coordinate[inner] = weights.argmax(axis=1)[level.cut[inner]]
    threshold = np.zeros(len(child), np.float32)
    threshold[inner] = level.weights[level.cut[inner], width]
    return {"child": child, "coordinate": coordinate, "threshold": threshold}


def _score(
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


def count_leaves(
    rows: DataFrame,
    schema: Schema,
    values: dict[str, Values],
    models: tuple[PrivacyModel, ...],
    missing_tokens: tuple[str, ...],
    n_leaves: int,
    by: str,
) -> BlockCounts:
    """Counts the rows, persons and protected values of each leaf.

    Protected values are counted exactly if a model looks at counts, else by a sketch, as a lower
    bound. Values that nobody has are not counted.
    """
    words = count_words(models)
    keys = [by, *schema.unit] if schema.unit else [by]
    person = F.lit(1) if not schema.unit else _all_present(schema.unit)
    inner = [F.count(F.lit(1)).alias("n"), F.max(person).alias("person")]
    sketches = []
    by_sketch = [id for id in schema.protected if id not in values]
    for id in by_sketch:
        for word in range(words):
            sketches.append(f"{id}_{word}")
            inner.append(F.bit_or(_bit(F.col(id), word, words)).alias(sketches[-1]))
    types = {id: schema.by_id(id).type for id in by_sketch}
    folded = rows.withColumns(make_canonical_columns(types, missing_tokens))
    grouped = folded.groupBy(*keys).agg(*inner)
    outer = [F.sum("n").alias("n"), F.sum("person").alias("persons")]
    outer += [F.bit_or(F.when(F.col("person") == 1, F.col(name))).alias(name) for name in sketches]
    if schema.unit:
        grouped = grouped.groupBy(by).agg(*outer)
    else:
        grouped = grouped.withColumn("persons", F.col("n"))
    table = grouped.toArrow()
    leaf = table.column(by).to_numpy()

    def full(name: str) -> Ints:
        result = np.zeros(n_leaves, np.int64)
        result[leaf] = table.column(name).fill_null(0).to_numpy()
        return result

    sketched = {
        id: np.column_stack([full(f"{id}_{word}") for word in range(words)]) for id in by_sketch
    }
    counts = {
        id: _value_counts(rows, schema, v, missing_tokens, id, by, n_leaves)
        for id, v in values.items()
    }
    references = {id: each.reference for id, each in values.items()}
    joint = count_joint(rows, schema, values, missing_tokens, by) if schema.joint else None
    sizes = full("n"), full("persons")
    return BlockCounts(*sizes, sketched, bool(schema.unit), counts, references, joint)


def _value_counts(
    rows: DataFrame,
    schema: Schema,
    values: Values,
    missing_tokens: tuple[str, ...],
    id: str,
    by: str,
    n_leaves: int,
) -> SparseCounts:
    """The number of persons of each leaf with each value of a column."""
    value = make_canonical(F.col(id), schema.by_id(id).type, missing_tokens).alias("value")
    named = rows.select(by, value, *schema.unit).na.drop(subset=[*schema.unit])
    table = named.groupBy(by, "value").agg(count_units(schema.unit).alias("count")).toArrow()
    cell, count = (table.column(name).to_numpy().astype(np.int64) for name in (by, "count"))
    code = code_among(table.column("value").combine_chunks(), (), values.categories)
    n_missing = np.zeros(n_leaves, np.int64)
    n_missing[cell[code == MISSING]] = count[code == MISSING]
    order = np.lexsort((code, cell))
    order = order[code[order] != MISSING]
    counts = SparseCounts(cell[order], code[order].astype(np.int64), count[order], n_missing)
    if not schema.unit:
        return counts
    known = named.na.drop(subset=["value"]).groupBy(by)
    of_leaf = known.agg(count_units(schema.unit).alias("count")).toArrow()
    n_known = np.zeros(n_leaves, np.int64)
    n_known[of_leaf.column(by).to_numpy()] = of_leaf.column("count").to_numpy()
    return replace(counts, n_known=n_known)


def count_exactly(
    rows: DataFrame,
    schema: Schema,
    models: tuple[PrivacyModel, ...],
    missing_tokens: tuple[str, ...],
    counts: BlockCounts,
    by: str,
) -> BlockCounts:
    """Replaces the sketches by exact numbers of distinct values, up to the largest that a model
    requires. Each value counts once."""
    asked = max((model.min_values for model in models), default=0)
    exact = dict(counts.counts)
    types = {id: schema.by_id(id).type for id in counts.sketches}
    folded = rows.withColumns(make_canonical_columns(types, missing_tokens))
    folded = folded.na.drop(subset=[*schema.unit])
    for id in counts.sketches:
        n = folded.groupBy(by).agg(F.count_distinct(id).alias("n")).toArrow()
        leaf, size = n.column(by).to_numpy().astype(np.int64), n.column("n").to_numpy()
        order = np.argsort(leaf)
        leaf, size = leaf[order], np.minimum(size[order], asked).astype(np.int64)
        exact[id] = as_values(leaf, size)
    return replace(counts, sketches={}, counts=exact)


def _all_present(unit: tuple[str, ...]) -> Column:
    present = F.lit(True)
    for id in unit:
        present = present & F.col(id).isNotNull()
    return present.cast("int")


def _bit(value: Column, word: int, words: int) -> Column:
    """The bit of a value in one word of the sketch; 0 if it is missing or in another word."""
    hashed = F.xxhash64(value)
    place = F.pmod(hashed, F.lit(64)).cast("int")
    bit = F.call_function("shiftleft", F.lit(1).cast("bigint"), place)
    mine = value.isNotNull() & (F.pmod(F.shiftright(hashed, 6), F.lit(words)) == word)
    return F.when(mine, bit).otherwise(F.lit(0).cast("bigint"))

"""Features: what plans cut by. A tree that was grown on a block's columns is compiled to linear
cuts of features that the JVM computes from every row, to the same float32."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from pyspark.sql import Column
from pyspark.sql import functions as F

from anonlib.block import GRID, Ints
from anonlib.encoding import Encoding
from anonlib.partition import Among, Below, Plane, Sample, Tree
from anonlib.partition._plan import CHUNK, Cuts, Singles
from anonlib.partition._tree import INDICATOR
from anonlib.schema import Scale, Schema
from anonlib.spark.lookup import looked_up, matrix
from anonlib.spark.values import number


@dataclass(frozen=True)
class Feature:
    """Coordinates of a row that come from one column.

    number: the standardized value on GRID, 0 where missing. rank: the same of the place of the
    value's hash in `hashes`. missing: 1 where the column is null. code: the place of the value's
    hash, or their number where missing. groups: for each group of categories INDICATOR where the
    value is in it: `group` is that of the value with each hash, then that of missing values.
    Hashes stand for values, so that plans and query plans show none.
    """

    id: str
    form: Literal["number", "rank", "missing", "code", "groups"]
    mean: float = 0.0
    sd: float = 1.0
    hashes: tuple[int, ...] = ()
    group: tuple[int, ...] = ()

    @property
    def width(self) -> int:
        """How many coordinates it is."""
        return 1 + max(self.group) if self.form == "groups" else 1


class Compiled(NamedTuple):
    """A tree's cuts, and the features that they are of, in their order."""

    features: tuple[Feature, ...]
    cuts: Cuts


def compiled(
    tree: Tree, sample: Sample, encodings: tuple[Encoding, ...], hashes: dict[str, Ints]
) -> Compiled:
    """The tree as linear cuts. `hashes` are Spark's of the categories, by column id."""
    numeric = _numeric(encodings, hashes)
    nominal = [encoding for encoding in encodings if encoding.nominal]
    p = len(numeric)
    planes = [cut.weights for cut in tree.cuts if isinstance(cut, Plane)]
    weighed = np.any(planes, axis=0) if planes else np.zeros(p + len(sample.tops), np.bool_)
    columns = {cut.column for cut in tree.cuts if isinstance(cut, Below)}
    columns |= set(np.flatnonzero(weighed[:p]).tolist())
    features, place = [], {}  # place: (column, code or None) -> coordinate
    width = 0
    for j in sorted(columns):
        feature = numeric[j] if j < p else _code(nominal[j - p], hashes)
        features.append(feature)
        place[j, -1] = width
        width += 1
    for j, encoding in enumerate(nominal, p):
        tops = [c for t, (column, c) in enumerate(sample.tops) if column == j and weighed[p + t]]
        sets = [cut.codes for cut in tree.cuts if isinstance(cut, Among) and cut.column == j]
        if not tops and not sets:
            continue
        group = _groups(encoding.n_categories, [*sets, *[np.array([code]) for code in tops]])
        feature = Feature(
            encoding.id,
            "groups",
            hashes=tuple(hashes[encoding.id].tolist()),
            group=(*group.tolist(), *[0] * (not encoding.missing)),
        )
        features.append(feature)
        place |= {(j, code): width + int(at) for code, at in enumerate(group)}
        width += feature.width
    weights = np.zeros((len(tree.cuts), width), np.float32)
    threshold = np.zeros(len(tree.cuts), np.float32)
    for i, cut in enumerate(tree.cuts):
        threshold[i] = _linear(cut, sample, place, weights[i])
    return Compiled(tuple(features), Cuts(weights, threshold, tree.left, tree.right, tree.roots))


def _linear(
    cut: Below | Among | Plane, sample: Sample, place: dict[tuple[int, int], int], weights: Singles
) -> float:
    """Fills in the weights of a cut; returns its threshold."""
    if isinstance(cut, Below):
        weights[place[cut.column, -1]] = 1.0
        return cut.threshold
    if isinstance(cut, Among):
        weights[[place[cut.column, code] for code in cut.codes.tolist()]] = -1.0
        return -float(INDICATOR) / 2
    p = len(cut.weights) - len(sample.tops)
    keys = [(j, -1) for j in range(p)] + sample.tops
    for key, weight in zip(keys, cut.weights.tolist(), strict=True):
        if weight:
            weights[place[key]] = weight
    return cut.threshold


def _numeric(encodings: tuple[Encoding, ...], hashes: dict[str, Ints]) -> list[Feature]:
    """The features of a block's numeric columns."""
    found = []
    for e in encodings:
        if e.nominal:
            continue
        if e.scale is Scale.ORDINAL:
            found.append(Feature(e.id, "rank", e.mean, e.sd, tuple(hashes[e.id].tolist())))
        else:
            found.append(Feature(e.id, "number", e.mean, e.sd))
        found += [Feature(e.id, "missing")] * e.missing
    return found


def _code(encoding: Encoding, hashes: dict[str, Ints]) -> Feature:
    return Feature(encoding.id, "code", hashes=tuple(hashes[encoding.id].tolist()))


def _groups(n_codes: int, sets: list[Ints]) -> Ints:
    """int64[n_codes]: the group of each code; codes are apart if a set tells them apart."""
    group = np.zeros(n_codes, np.int64)
    for codes in sets:
        inside = np.zeros(n_codes, np.int64)
        inside[codes] = 1
        group = np.unique(2 * group + inside, return_inverse=True)[1]
    return group


def coordinates(schema: Schema, features: tuple[Feature, ...]) -> Column:
    """The features of each row, and -1 for the threshold, as an array of floats filled with 0 to
    whole chunks of the inner product."""
    single = [_expression(f, schema).cast("float") for f in features if f.form != "groups"]
    ones = [_indicators(f) for f in features if f.form == "groups"]
    width = sum(f.width for f in features)
    filled = [-1.0] + [0.0] * (-(width + 1) % CHUNK)
    rest = F.array(*[F.lit(x).cast("float") for x in filled])
    if not ones:
        return F.concat(F.array(*single), rest)
    return F.concat(*([F.array(*single)] if single else []), *ones, rest)


def _expression(feature: Feature, schema: Schema) -> Column:
    value = F.col(feature.id)
    if feature.form == "missing":
        return value.isNull().cast("double")
    if feature.form == "code":
        n = len(feature.hashes)
        found = looked_up(F.xxhash64(value), feature.hashes, range(n), n)
        return F.when(value.isNotNull(), found).otherwise(F.lit(n))
    if feature.form == "rank":
        n = len(feature.hashes)
        place = looked_up(F.xxhash64(value), feature.hashes, range(n), 0)
        x = F.when(value.isNotNull(), place.cast("double"))
    else:
        x = number(value, schema.by_id(feature.id).type)
    half = F.lit(2.0)  # as in `standardize`
    z = (x / half - F.lit(feature.mean / 2)) / F.lit(feature.sd / 2)
    snapped = F.rint(z / F.lit(GRID)) * F.lit(GRID)
    return F.coalesce(snapped, F.lit(0.0))


def _indicators(feature: Feature) -> Column:
    value = F.col(feature.id)
    *groups, missing = feature.group
    # Most categories are in one group: only the others are looked up.
    common = int(np.argmax(np.bincount(groups))) if groups else 0
    listed = [(h, g) for h, g in zip(feature.hashes, groups, strict=True) if g != common]
    found = looked_up(F.xxhash64(value), [h for h, _ in listed], [g for _, g in listed], common)
    group = F.when(value.isNotNull(), found).otherwise(F.lit(missing))
    return F.get(matrix(np.eye(feature.width, dtype=np.float32) * INDICATOR), group)

"""Features: what plans cut by. One definition, evaluated on the sample in numpy and on every row
in the JVM, to the same float32."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import functions as F

from anonlib.block import Floats, Ints
from anonlib.encoding import Encoding, moments, standardize, to_float
from anonlib.partition._plan import Singles
from anonlib.schema import Scale, Schema
from anonlib.spark.values import number

#: Most categories of a nominal column that have a feature of their own.
TOP_CATEGORIES = 8
#: Rarer categories, and rarer missing values, don't guide the cuts.
MIN_SHARE = 0.02
#: Two rows of different categories are at squared distance 1, as in kernels.
INDICATOR = float(np.float32(np.sqrt(0.5)))
#: Outliers beyond this many standard deviations are one: sums stay in range.
FARTHEST = 2.0**14


@dataclass(frozen=True)
class Feature:
    """One coordinate of a row.

    number: the standardized value, 0 where missing. rank: the same of the place of the value's
    hash in `hashes`. missing: 1 where the column is null. category: INDICATOR where the value's
    hash is `hashes[0]`. Hashes stand for values, so that plans and query plans show none.
    """

    id: str
    form: Literal["number", "rank", "missing", "category"]
    mean: float = 0.0
    sd: float = 1.0
    hashes: tuple[int, ...] = ()


def features(
    schema: Schema, encodings: tuple[Encoding, ...], hashes: dict[str, Ints], sample: pa.Table
) -> tuple[tuple[Feature, ...], Singles]:
    """The features of a table, and those of the sample, float32[m, f].

    `hashes` are Spark's of the categories, by column id.
    """
    found: list[Feature] = []
    values: list[Floats] = []
    for encoding in encodings:
        column = sample.column(encoding.id).combine_chunks()
        if encoding.nominal:
            added = _indicators(encoding, hashes[encoding.id], column)
        elif schema.by_id(encoding.id).order is not None:
            added = [_rank(encoding, hashes[encoding.id], column)]
        else:
            numbers = to_float(column)
            present = numbers[~np.isnan(numbers)]
            low, high = (present.min(), present.max()) if len(present) else (0.0, 0.0)
            mean, sd = moments(numbers, float(low), float(high))
            feature = Feature(encoding.id, "number", mean, sd)
            added = [(feature, _standard(numbers, mean, sd))]
        absent = column.is_null().to_numpy(zero_copy_only=False).astype(np.float64)
        if encoding.scale is not Scale.NOMINAL and absent.mean() >= MIN_SHARE:
            added.append((Feature(encoding.id, "missing"), absent))
        for feature, coordinate in added:
            found.append(feature)
            values.append(coordinate)
    stacked = np.column_stack([np.empty((len(sample), 0)), *values])
    return tuple(found), stacked.astype(np.float32)


def _standard(numbers: Floats, mean: float, sd: float) -> Floats:
    return np.clip(np.nan_to_num(standardize(numbers, mean, sd)), -FARTHEST, FARTHEST)


def _rank(encoding: Encoding, hashes: Ints, column: pa.Array) -> tuple[Feature, Floats]:
    ranks = to_float(pc.index_in(column, value_set=encoding.categories))
    places = tuple(int(h) for h in hashes)
    feature = Feature(encoding.id, "rank", encoding.mean, encoding.sd, places)
    return feature, _standard(ranks, encoding.mean, encoding.sd)


def _indicators(encoding: Encoding, hashes: Ints, column: pa.Array) -> list[tuple[Feature, Floats]]:
    """One feature for each of the most frequent categories of the sample, ties in their order."""
    codes = encoding.codes(column)
    counts = np.bincount(codes, minlength=max(1, encoding.n_categories))
    frequent = np.argsort(-counts, kind="stable")[:TOP_CATEGORIES]
    # The first stays, however rare: a table of such columns alone must have something to cut by.
    top = [
        int(c)
        for i, c in enumerate(frequent)
        if c < len(hashes) and (i == 0 or counts[c] >= MIN_SHARE * len(codes))
    ]
    return [
        (
            Feature(encoding.id, "category", hashes=(int(hashes[c]),)),
            np.where(codes == c, INDICATOR, 0.0),
        )
        for c in top
    ]


def coordinates(schema: Schema, features: tuple[Feature, ...]) -> list[Column]:
    """The features of each row as Spark expressions, of type float."""
    return [_expression(feature, schema).cast("float") for feature in features]


def _expression(feature: Feature, schema: Schema) -> Column:
    value = F.col(feature.id)
    if feature.form == "missing":
        return value.isNull().cast("double")
    if feature.form == "category":
        same = value.isNotNull() & (F.xxhash64(value) == F.lit(feature.hashes[0]))
        return F.when(same, F.lit(INDICATOR)).otherwise(F.lit(0.0))
    if feature.form == "rank":
        places = F.array(*[F.lit(h) for h in feature.hashes])
        x = F.array_position(places, F.xxhash64(value)).cast("double") - F.lit(1.0)
        x = F.when(value.isNotNull(), x)
    else:
        x = number(value, schema.by_id(feature.id).type)
    half = F.lit(2.0)  # as in `standardize`
    z = (x / half - F.lit(feature.mean / 2)) / F.lit(feature.sd / 2)
    z = F.coalesce(z, F.lit(0.0))  # before the bounds, which would pass over nulls
    return F.least(F.greatest(z, F.lit(-FARTHEST)), F.lit(FARTHEST))


def distinct(values: Singles) -> tuple[Singles, Ints]:
    """The distinct rows in order of first appearance, and how often each stands."""
    unique, first, count = np.unique(values, axis=0, return_index=True, return_counts=True)
    order = np.argsort(first, kind="stable")
    return unique[order], count[order]

"""Learning from tables of any size: samples for scikit-learn, features and models of Spark ML."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from math import ceil
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import StorageLevel
from pyspark.ml.feature import VectorAssembler, VectorSizeHint
from pyspark.ml.functions import array_to_vector, vector_to_array
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anonlib.arrays import Ints
from anonlib.errors import run_sanitized
from anonlib.measure.examples import LearnTarget
from anonlib.measure.features import Features
from anonlib.measure.learners import Learner, TaskSize
from anonlib.measure.scores import Scores, auc, class_scores, mean_auc, number_scores
from anonlib.spark.values import row_hash

#: Rows of a partition that Spark ML learns from. The number of cores must not change it, since the
#: sums of a model depend on it.
ROWS_PER_PARTITION = 100_000
#: Scores are told apart in steps of this for the area under the ROC curve; closer ones are ties.
SCORE_STEP = 2.0**-14
_COUNT, _PLACE, _VALUES = "__anonlib_count", "__anonlib_place", "__anonlib_values"


def sample(rows: DataFrame, n_rows: int, wanted: int, seed: int) -> pa.Table:
    """A sample of about `wanted` of n_rows rows, or all rows. Rows and order depend on values and
    seed alone.

    Equal rows, which a release has many of, are counted first; the sample takes their share.
    Cost: a shuffle.
    """
    seeded = F.xxhash64(F.lit(f"sample {seed}"), row_hash(rows))
    share, by_chance = min(1.0, wanted / max(n_rows, 1)), F.pmod(_PLACE, F.lit(2**20)) / 2**20
    counts = rows.groupBy(*rows.columns).agg(F.count("*").alias(_COUNT))
    counts = counts.withColumn(_PLACE, seeded)
    kept = F.floor(F.col(_COUNT) * F.lit(share) + by_chance)
    table = counts.withColumn(_COUNT, kept).where(F.col(_COUNT) > 0).toArrow()
    order = np.argsort(table.column(_PLACE).to_numpy(), kind="stable")
    repeated = np.repeat(order, table.column(_COUNT).to_numpy()[order])
    return table.drop([_COUNT, _PLACE]).take(pa.array(repeated)).combine_chunks()


@contextmanager
def vectors(
    rows: DataFrame,
    features: Features,
    target: LearnTarget | None = None,
    *,
    released: bool,
    n_rows: int,
    seed: int,
) -> Iterator[DataFrame]:
    """The rows for Spark ML, kept while they are used: `features`, as sparse vectors where that is
    smaller, and `label`; those without a label are left out.

    Partitions, and the order in them, go by the values alone. Cost: a shuffle and a crossing into
    Python.
    """
    width = len(features.names)
    ids = [*features.ids, *([] if target is None else [target.column.id])]
    rows = rows.select(*ids)
    hashed = rows.withColumn(_PLACE, F.xxhash64(F.lit(seed), row_hash(rows)))
    dealt = hashed.repartition(max(1, ceil(n_rows / ROWS_PER_PARTITION)), _PLACE)
    dealt = dealt.sortWithinPartitions(_PLACE).drop(_PLACE)

    def encoded(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            table = pa.Table.from_batches([batch])
            encode = partial(_encoded, table, features, target, released)
            yield run_sanitized("encoding rows", encode)

    dense = dealt.mapInArrow(encoded, f"label double, {_VALUES} array<double>")
    dense = dense.withColumn(_VALUES, array_to_vector(F.col(_VALUES)))
    sized = VectorSizeHint(inputCol=_VALUES, size=width).transform(dense)
    made = VectorAssembler(inputCols=[_VALUES], outputCol="features").transform(sized)
    made = made.select("label", "features").persist(StorageLevel.MEMORY_AND_DISK)
    try:
        yield made
    finally:
        made.unpersist()


def _encoded(
    table: pa.Table, features: Features, target: LearnTarget | None, released: bool
) -> pa.RecordBatch:
    y = np.zeros(table.num_rows) if target is None else target.values(table)
    present = ~np.isnan(y)
    x = features.matrix(table, released=released)[present].toarray()
    n, f = x.shape
    values = pa.ListArray.from_arrays(np.arange(n + 1, dtype=np.int32) * f, pa.array(x.ravel()))
    return pa.RecordBatch.from_arrays([pa.array(y[present]), values], ["label", _VALUES])


def fit_and_score(
    learner: Learner, train: DataFrame, test: DataFrame, *, n_classes: int, seed: int
) -> Scores:
    """As the function of this name in `anonlib.measure.examples`, by Spark ML.

    train, test: what `vectors` gives. Spark adds up floats in the order in which tasks end, so the
    last bits of a model may differ from run to run, and with them a prediction that hangs on those.
    The area under the ROC curve takes scores within SCORE_STEP as ties.
    """
    if n_classes == 0:
        return _of_numbers(learner, train, test, seed)
    counts = {int(row.label): row["count"] for row in train.groupBy("label").count().collect()}
    if len(counts) == 1:  # of which no model learns
        (only,) = counts
        return _of_classes(test.withColumn("prediction", F.lit(float(only))), n_classes, None)
    if not counts:
        return Scores()
    given = TaskSize(n_classes, sum(counts.values()), min(counts.values()), seed)
    told = learner.spark_estimator(given).fit(train).transform(test)
    if "probability" in told.columns:
        return _of_classes(told, n_classes, vector_to_array(F.col("probability")))
    raw = vector_to_array(F.col("rawPrediction"))
    return _of_classes(told, n_classes, F.transform(raw, lambda x: 1 / (1 + F.exp(-x))))


def baseline(train: DataFrame, test: DataFrame, *, n_classes: int) -> Scores:
    """What it is worth to tell the most frequent class (the first of them), or the mean."""
    if n_classes == 0:
        mean = train.agg(F.avg("label")).collect()[0][0]
        return Scores() if mean is None else _squared(test.withColumn("prediction", F.lit(mean)))
    counts = [(row["count"], -row.label) for row in train.groupBy("label").count().collect()]
    if not counts:
        return Scores()
    return _of_classes(test.withColumn("prediction", F.lit(-max(counts)[1])), n_classes, None)


def _of_numbers(learner: Learner, train: DataFrame, test: DataFrame, seed: int) -> Scores:
    n, mean, sd = train.agg(F.count("*"), F.avg("label"), F.stddev_pop("label")).collect()[0]
    if n == 0:
        return Scores()
    sd = sd or 1.0
    scaled = train.withColumn("label", (F.col("label") - mean) / sd)
    told = learner.spark_estimator(TaskSize(0, n, n, seed)).fit(scaled).transform(test)
    return _squared(told.withColumn("prediction", F.col("prediction") * sd + mean))


def _squared(told: DataFrame) -> Scores:
    """told: `label` and `prediction`, both in the target's units."""
    error = F.col("label") - F.col("prediction")
    found = told.agg(F.count("*"), F.sum(error * error), F.var_pop("label")).collect()[0]
    n, squares, variance = found
    return number_scores(n, squares, variance * n) if n else Scores()


def _of_classes(told: DataFrame, n_classes: int, shares: Any) -> Scores:
    """told: `label` and `prediction`; shares: a column, how likely each class is said to be as an
    array of numbers from 0 to 1, None where all are as likely."""
    confusion = np.zeros((n_classes, n_classes), np.int64)
    for row in told.groupBy("label", "prediction").count().collect():
        confusion[int(row.label), int(row.prediction)] = row["count"]
    found = class_scores(confusion)
    return found._replace(auc=_auc(told, confusion.sum(axis=1), shares))


def _auc(told: DataFrame, n_of: Ints, shares: Any) -> float | None:
    """n_of: int64[c], rows of each class."""
    n_classes, steps = len(n_of), round(1 / SCORE_STEP) + 1
    # A class that no model tells is as likely in all rows.
    own, every = np.zeros((2, n_classes, steps), np.int64)
    own[:, 0], every[:, 0] = n_of, n_of.sum()
    if shares is not None:
        scored = told.select("label", F.posexplode(shares).alias("class", "share"))
        step = F.floor(F.col("share") / SCORE_STEP).cast("int").alias("step")
        of_class = F.count_if(F.col("class") == F.col("label")).alias("own")
        counts = scored.groupBy("class", step).agg(of_class, F.count("*").alias("every")).collect()
        known = sorted({row["class"] for row in counts})
        own[known], every[known] = 0, 0
        for row in counts:
            own[row["class"], row.step] = row.own
            every[row["class"], row.step] = row.every
    return mean_auc([auc(own[c], every[c] - own[c]) for c in range(n_classes)])

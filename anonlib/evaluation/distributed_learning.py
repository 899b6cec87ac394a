"""Learning from tables of any size: samples for scikit-learn, features and models for Spark ML."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from math import ceil
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anonlib.arrays import Ints
from anonlib.errors import run_sanitized
from anonlib.measure.draws import MODULUS, SAMPLE
from anonlib.measure.examples import LearnTarget
from anonlib.measure.features import Features
from anonlib.measure.learners import Learner, TaskSize
from anonlib.measure.scores import Scores, average_auc, find_auc, list_class_scores, number_scores
from anonlib.spark.values import hash_row

#: Rows per partition for Spark ML. It is independent of the number of cores, since the sums of a
#: model depend on it.
ROWS_PER_PARTITION = 100_000
#: For the area under the ROC curve, scores are rounded down to multiples of this.
SCORE_STEP = 2.0**-14
_COUNT, _PLACE, _VALUES = "__anonlib_count", "__anonlib_place", "__anonlib_values"


def sample(rows: DataFrame, n_rows: int, size: int, seed: int) -> pa.Table:
    """A sample of rows. Its rows and their order depend only on values and seed.

    A release has many equal rows. They are counted first, and the sample gets their share.
    Cost: one shuffle.

    Args:
        rows: The rows.
        n_rows: Their number.
        size: About the number of rows of the sample. If there are fewer rows, it has all.
        seed: The seed.
    """
    seeded = F.xxhash64(F.lit(SAMPLE.format(seed)), hash_row(rows))
    share, by_chance = min(1.0, size / max(n_rows, 1)), F.pmod(_PLACE, F.lit(MODULUS)) / MODULUS
    counts = rows.groupBy(*rows.columns).agg(F.count("*").alias(_COUNT))
    counts = counts.withColumn(_PLACE, seeded)
    kept = F.floor(F.col(_COUNT) * F.lit(share) + by_chance)
    table = counts.withColumn(_COUNT, kept).where(F.col(_COUNT) > 0).toArrow()
    order = np.argsort(table.column(_PLACE).to_numpy(), kind="stable")
    repeated = np.repeat(order, table.column(_COUNT).to_numpy()[order])
    return table.drop([_COUNT, _PLACE]).take(pa.array(repeated)).combine_chunks()


@contextmanager
def make_vectors(
    rows: DataFrame,
    features: Features,
    target: LearnTarget | None = None,
    *,
    released: bool,
    n_rows: int,
    seed: int,
) -> Iterator[DataFrame]:
    """Rows for Spark ML, persisted until the context ends.

    Partitions, and the order in each, depend only on values and seed.
    Cost: one shuffle and one crossing into Python.

    Args:
        rows: The rows.
        features: Their features.
        target: The target; None for no labels. Rows without a label are left out.
        released: Whether they are released rows.
        n_rows: Their number.
        seed: The seed of the partitions.

    Yields:
        The columns `label` and `features`. Features are vectors, sparse if that is smaller.
    """
    from pyspark.ml.feature import VectorAssembler, VectorSizeHint
    from pyspark.ml.functions import array_to_vector

    width = len(features.names)
    ids = [*features.ids, *([] if target is None else [target.column.id])]
    rows = rows.select(*ids)
    hashed = rows.withColumn(_PLACE, F.xxhash64(F.lit(seed), hash_row(rows)))
    dealt = hashed.repartition(max(1, ceil(n_rows / ROWS_PER_PARTITION)), _PLACE)
    dealt = dealt.sortWithinPartitions(_PLACE).drop(_PLACE)

    def encode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            table = pa.Table.from_batches([batch])
            encode = partial(_encode_batch, table, features, target, released)
            yield run_sanitized("encoding rows", encode)

    dense = dealt.mapInArrow(encode, f"label double, {_VALUES} array<double>")
    dense = dense.withColumn(_VALUES, array_to_vector(F.col(_VALUES)))
    sized = VectorSizeHint(inputCol=_VALUES, size=width).transform(dense)
    made = VectorAssembler(inputCols=[_VALUES], outputCol="features").transform(sized)
    made = made.select("label", "features").persist(StorageLevel.MEMORY_AND_DISK)
    try:
        yield made
    finally:
        made.unpersist()


def _encode_batch(
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
    """Like `anonlib.measure.examples.fit_and_score`, with Spark ML.

    Spark adds floats in the order in which tasks end. So the last bits of a model may differ from
    run to run, and so may predictions that depend on them. For the area under the ROC curve, scores
    in the same step of SCORE_STEP are ties.

    Args:
        learner: The kind of model.
        train: Rows to learn from, made by `make_vectors`.
        test: Rows to test on, made by `make_vectors`.
        n_classes: Classes of the target; 0 for numbers.
        seed: Seed of the model.

    Returns:
        The scores. All are None if there is nothing to learn from or to test on.
    """
    if n_classes == 0:
        return _of_numbers(learner, train, test, seed)
    counts = {int(row.label): row["count"] for row in train.groupBy("label").count().collect()}
    if len(counts) == 1:  # nothing to learn
        (only,) = counts
        return _score_classes(test.withColumn("prediction", F.lit(float(only))), n_classes, None)
    if not counts:
        return Scores()
    from pyspark.ml.functions import vector_to_array

    task = TaskSize(n_classes, sum(counts.values()), min(counts.values()), seed)
    predictions = learner.spark_estimator(task).fit(train).transform(test)
    if "probability" in predictions.columns:
        return _score_classes(predictions, n_classes, vector_to_array(F.col("probability")))
    raw = vector_to_array(F.col("rawPrediction"))
    return _score_classes(predictions, n_classes, F.transform(raw, lambda x: 1 / (1 + F.exp(-x))))


def find_baseline(train: DataFrame, test: DataFrame, *, n_classes: int) -> Scores:
    """The scores without a model. Predicts the most frequent class of `train` (the first of equally
    frequent classes), or the mean."""
    if n_classes == 0:
        mean = train.agg(F.avg("label")).collect()[0][0]
        return (
            Scores() if mean is None else _score_numbers(test.withColumn("prediction", F.lit(mean)))
        )
    counts = [(row["count"], -row.label) for row in train.groupBy("label").count().collect()]
    if not counts:
        return Scores()
    return _score_classes(test.withColumn("prediction", F.lit(-max(counts)[1])), n_classes, None)


def _of_numbers(learner: Learner, train: DataFrame, test: DataFrame, seed: int) -> Scores:
    n, mean, sd = train.agg(F.count("*"), F.avg("label"), F.stddev_pop("label")).collect()[0]
    if n == 0:
        return Scores()
    sd = sd or 1.0
    scaled = train.withColumn("label", (F.col("label") - mean) / sd)
    predictions = learner.spark_estimator(TaskSize(0, n, n, seed)).fit(scaled).transform(test)
    return _score_numbers(predictions.withColumn("prediction", F.col("prediction") * sd + mean))


def _score_numbers(predictions: DataFrame) -> Scores:
    """The scores of numbers.

    Args:
        predictions: The columns `label` and `prediction`, in the units of the target.
    """
    error = F.col("label") - F.col("prediction")
    found = predictions.agg(F.count("*"), F.sum(error * error), F.var_pop("label")).collect()[0]
    n, squares, variance = found
    return number_scores(n, squares, variance * n) if n else Scores()


def _score_classes(predictions: DataFrame, n_classes: int, shares: Any) -> Scores:
    """The scores of classes.

    Args:
        predictions: The columns `label` and `prediction`.
        n_classes: The number of classes.
        shares: A column with an array of scores from 0 to 1 for each class; None if all classes are
            equally likely.
    """
    confusion = np.zeros((n_classes, n_classes), np.int64)
    for row in predictions.groupBy("label", "prediction").count().collect():
        confusion[int(row.label), int(row.prediction)] = row["count"]
    found = list_class_scores(confusion)
    return found._replace(auc=_auc(predictions, confusion.sum(axis=1), shares))


def _auc(predictions: DataFrame, n_of: Ints, shares: Any) -> float | None:
    """The area under the ROC curve.

    Args:
        predictions: As in `_score_classes`.
        n_of: int64[c]. The rows of each class.
        shares: As in `_score_classes`.
    """
    n_classes, steps = len(n_of), round(1 / SCORE_STEP) + 1
    # A class without scores has the same score in all rows.
    own, every = np.zeros((2, n_classes, steps), np.int64)
    own[:, 0], every[:, 0] = n_of, n_of.sum()
    if shares is not None:
        scored = predictions.select("label", F.posexplode(shares).alias("class", "share"))
        step = F.floor(F.col("share") / SCORE_STEP).cast("int").alias("step")
        of_class = F.count_if(F.col("class") == F.col("label")).alias("own")
        counts = scored.groupBy("class", step).agg(of_class, F.count("*").alias("every")).collect()
        known = sorted({row["class"] for row in counts})
        own[known], every[known] = 0, 0
        for row in counts:
            own[row["class"], row.step] = row.own
            every[row["class"], row.step] = row.every
    return average_auc([find_auc(own[c], every[c] - own[c]) for c in range(n_classes)])

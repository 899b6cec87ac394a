"""k-means on tables of any size, and counts of rows by cluster."""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from anonlib.arrays import Floats, Ints
from anonlib.errors import run_sanitized
from anonlib.evaluation.distributed_learning import vectors
from anonlib.measure.case import Part
from anonlib.measure.features import Features, Sparse

#: Starts of k-means in memory. The best result is used.
STARTS = 10


@dataclass(frozen=True)
class ClusterModel:
    """Lloyd's k-means.

    scikit-learn uses a sample, and the best of STARTS k-means++ starts. Spark ML uses all rows, and
    one k-means|| start. Reference: D. Arthur, S. Vassilvitskii, k-means++, SODA 2007.

    Attributes:
        n_clusters: The number of clusters.
        max_iter: Most steps.
        in_spark: Whether to use Spark ML, else scikit-learn.
    """

    n_clusters: int
    max_iter: int
    in_spark: bool

    def centres(self, part: Part, features: Features, seed: int) -> Floats:
        """float64[n_clusters, f]. The centres of rows; Spark ML may find fewer."""
        if self.in_spark:
            return self._of_all(part, features, seed)
        return self._of_sample(features.matrix(part.sample, released=part.released), seed)

    def _of_sample(self, x: Sparse, seed: int) -> Floats:
        from sklearn.cluster import KMeans as Model
        from sklearn.exceptions import ConvergenceWarning
        from threadpoolctl import threadpool_limits

        model = Model(
            self.n_clusters,
            n_init=STARTS,
            max_iter=self.max_iter,
            random_state=seed,
            algorithm="lloyd",
        )
        # One thread, since sums depend on the number of threads. scikit-learn warns if there are
        # fewer distinct rows than clusters. Then some centres are equal.
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            found: Floats = model.fit(x).cluster_centers_
        return found

    def _of_all(self, part: Part, features: Features, seed: int) -> Floats:
        from pyspark.ml.clustering import KMeans as Model

        model = Model(k=self.n_clusters, maxIter=self.max_iter, seed=seed)
        made = vectors(part.rows, features, released=part.released, n_rows=part.n, seed=seed)
        with made as rows:
            return np.array(model.fit(rows).clusterCenters(), np.float64)


def contingencies(rows: DataFrame, features: Features, centres: Sequence[Floats]) -> list[Ints]:
    """Compares the first clustering with each of the others.

    Cost: one crossing into Python and O(n f k). Only counts come back.

    Args:
        rows: Original rows.
        features: Their features.
        centres: The centres of each clustering. Rows belong to the nearest centre, the first of
            equally near ones.

    Returns:
        For each clustering but the first, int64[a, b]: the rows in cluster a of the first and in
        cluster b of this one.
    """
    width = max(len(each) for each in centres)

    def count_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        total = np.zeros((len(centres) - 1, width, width), np.int64)
        for batch in batches:
            table = pa.Table.from_batches([batch])
            count = partial(_counts, table, features, centres, width)
            total += run_sanitized("clustering rows", count)
        cells = np.flatnonzero(total)
        yield pa.RecordBatch.from_arrays(
            [pa.array(cells), pa.array(total.ravel()[cells])], ["cell", "n"]
        )

    counts = rows.mapInArrow(count_batches, "cell long, n long").groupBy("cell").sum("n").collect()
    found = np.zeros((len(centres) - 1, width, width), np.int64)
    for cell, n in counts:
        found.ravel()[cell] = n
    return [*found]


def _counts(table: pa.Table, features: Features, centres: Sequence[Floats], width: int) -> Ints:
    x = features.matrix(table, released=False)
    first, *others = (find_nearest_centres(x, each) for each in centres)
    pairs = [np.bincount(first * width + each, minlength=width**2) for each in others]
    return np.stack(pairs).reshape(-1, width, width)


def find_nearest_centres(x: Sparse, centres: Floats) -> Ints:
    """int64[n]. The nearest centre of each row, the first of equally near ones.

    A sparse product sums each row on its own, so the result does not depend on batches.
    """
    halves = (centres**2).sum(axis=1) / 2
    found: Ints = np.argmax(x @ np.ascontiguousarray(centres.T) - halves, axis=1)
    return found

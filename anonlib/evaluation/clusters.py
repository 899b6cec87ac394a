"""k-means on tables of any size, and counts of rows by cluster."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from anonlib.arrays import Floats, Ints
from anonlib.errors import run_sanitized
from anonlib.evaluation.distributed_learning import make_vectors
from anonlib.measure.case import Part
from anonlib.measure.centres import count_pairs, find_centres
from anonlib.measure.features import Features


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
        x = features.matrix(part.sample, released=part.released)
        return find_centres(x, self.n_clusters, self.max_iter, seed)

    def _of_all(self, part: Part, features: Features, seed: int) -> Floats:
        from pyspark.ml.clustering import KMeans as Model

        model = Model(k=self.n_clusters, maxIter=self.max_iter, seed=seed)
        made = make_vectors(part.rows, features, released=part.released, n_rows=part.n, seed=seed)
        with made as rows:
            return np.array(model.fit(rows).clusterCenters(), np.float64)


def count_contingencies(
    rows: DataFrame, features: Features, centres: Sequence[Floats]
) -> list[Ints]:
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
            count = partial(count_pairs, table, features, centres)
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

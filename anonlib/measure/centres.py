"""k-means in memory, and counts of rows by cluster."""

import warnings
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from anonlib.arrays import Floats, Ints, Sparse
from anonlib.measure.features import Features

#: Starts of k-means in memory. The best result is used.
STARTS = 10


def find_centres(x: Sparse, n_clusters: int, max_iter: int, seed: int) -> Floats:
    """float64[n_clusters, f]. The centres of rows, by scikit-learn: the best of STARTS k-means++
    starts.

    x: csr_matrix float64[n, f]. The features.
    """
    from sklearn.cluster import KMeans as Model
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    model = Model(
        n_clusters, n_init=STARTS, max_iter=max_iter, random_state=seed, algorithm="lloyd"
    )
    # One thread, since sums depend on the number of threads. scikit-learn warns if there are fewer
    # distinct rows than clusters. Then some centres are equal.
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found: Floats = model.fit(x).cluster_centers_
    return found


def count_pairs(table: pa.Table, features: Features, centres: Sequence[Floats]) -> Ints:
    """Counts original rows by the clusters of the first clustering and of each other one.

    Args:
        table: Original rows.
        features: Their features.
        centres: The centres of c clusterings. Rows belong to the nearest centre, the first of
            equally near ones.

    Returns:
        int64[c - 1, w, w], where w is the number of centres of the largest clustering.
    """
    width = max(len(each) for each in centres)
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

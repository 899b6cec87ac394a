"""Compares clusterings of a release with clusterings of its source rows."""

import warnings
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from anonlib.arrays import Floats, Ints, Sparse
from anonlib.measure.agreement import measure_agreement
from anonlib.measure.features import Features, fit
from anonlib.sweeps.point_release import PointRelease
from anonlib.sweeps.settings import Cluster
from anonlib.table.schema import Column


def compare_clusters(
    release: PointRelease, table: pa.Table, columns: Sequence[Column], cluster: Cluster, seed: int
) -> dict[str, float | None]:
    """How far k-means clusters of released rows agree with those of the same rows of the table.

    With `nominal: codes`, the code of a set of categories is the middle of its first and its last
    category. Missing and rare categories have the mean code. Source: TA_DA, section VI-C, uses
    codes.

    Args:
        release: The release.
        table: The table that it was made of.
        columns: The columns to cluster by.
        cluster: The settings.
        seed: The seed of the point.

    Returns:
        `ari`, the adjusted Rand index, and `nmi`, the normalized mutual information. `raw_ari` and
        `raw_nmi` compare two clusterings of the raw rows from different random centres. If these
        agree little, a release can't do better. All are None without columns, or with fewer rows
        than clusters.
    """
    names = [f"{prefix}{name}" for prefix in ("", "raw_") for name in ("ari", "nmi")]
    if not columns or len(release.rows) < cluster.clusters:
        return dict.fromkeys(names)
    raw = table.take(pa.array(release.rows))
    features = fit(columns, raw)
    original = features.matrix(raw, released=False)
    released = features.matrix(release.released, released=True)
    if cluster.nominal == "codes":
        original, released = (
            _to_codes(features, original, original),
            _to_codes(features, released, original),
        )
    found = _clusters(original, cluster, 2 * seed)
    pairs = {
        "": _clusters(released, cluster, 2 * seed),
        "raw_": _clusters(original, cluster, 2 * seed + 1),
    }
    return {
        f"{prefix}{name}": score
        for prefix, other in pairs.items()
        for name, score in measure_agreement(_count_pairs(found, other, cluster))._asdict().items()
    }


def _count_pairs(first: Ints, second: Ints, cluster: Cluster) -> Ints:
    """int64[a, b]. The rows in each pair of a cluster of both clusterings."""
    n = cluster.clusters
    counts: Ints = np.bincount(first * n + second, minlength=n * n).reshape(n, n)
    return counts


def _to_codes(features: Features, matrix: Sparse, like: Sparse) -> Floats:
    """Replaces the indicators of each column's categories by one column of codes.

    Args:
        features: The features.
        matrix: The matrix to change.
        like: A matrix. Codes are standardized by the mean and the deviation of its codes.

    Returns:
        float64[n, f].
    """
    parts, end = [], 0
    for feature in features.columns:
        start, end = end, end + len(feature.names)
        mine, theirs = (x[:, start:end].toarray() for x in (matrix, like))
        if feature.domain.categories:
            mine, theirs = _code(mine[:, :-1]), _code(theirs[:, :-1])
            mean, sd = float(theirs[theirs >= 0].mean()), float(theirs[theirs >= 0].std())
            mine = np.where(mine >= 0, (mine - mean) / (sd or 1.0), 0.0)[:, None]
        parts.append(mine)
    return np.column_stack(parts)


def _code(indicators: Floats) -> Floats:
    """float64[n]. The middle of the first and the last category of each row; -1 without any."""
    last = indicators.shape[1] - 1 - indicators[:, ::-1].argmax(axis=1)
    middle: Floats = (indicators.argmax(axis=1) + last) / 2
    return np.where(indicators.any(axis=1), middle, -1.0)


def _clusters(x: Sparse | Floats, cluster: Cluster, seed: int) -> Ints:
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    model = KMeans(cluster.clusters, n_init=cluster.starts, random_state=seed)
    with warnings.catch_warnings():  # a release may have fewer distinct rows than clusters
        warnings.simplefilter("ignore", ConvergenceWarning)
        labels: Ints = model.fit(x).labels_
    return labels

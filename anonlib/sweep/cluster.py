"""Whether a clustering of the release finds what one of the table finds."""

import warnings
from collections.abc import Sequence

import pyarrow as pa

from anonlib.block import Ints
from anonlib.memory import InMemory
from anonlib.schema import Column
from anonlib.sweep.settings import Cluster
from anonlib.utility._features import Sparse, fit


def agreement(
    made: InMemory, table: pa.Table, columns: Sequence[Column], cluster: Cluster, seed: int
) -> dict[str, float | None]:
    """How k-means clusters of released rows agree with those of the same rows as they are in the
    table: `ari`, the adjusted Rand index, and `nmi`, the normalized mutual information; and, as
    `raw_ari` and `raw_nmi`, two clusterings of the raw rows from other random centres with each
    other: a release can't do better where they agree little. None of fewer rows than clusters.

    Source: TA_DA, section VI-C, but with indicators of categories instead of their codes.
    """
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

    names = [f"{prefix}{name}" for prefix in ("", "raw_") for name in ("ari", "nmi")]
    if not columns or len(made.rows) < cluster.clusters:
        return dict.fromkeys(names)
    raw = table.take(pa.array(made.rows))
    features = fit(columns, raw)
    original = features.matrix(raw, released=False)
    found = _clusters(original, cluster, 2 * seed)
    pairs = {
        "": _clusters(features.matrix(made.released, released=True), cluster, 2 * seed),
        "raw_": _clusters(original, cluster, 2 * seed + 1),
    }
    scores = {"ari": adjusted_rand_score, "nmi": normalized_mutual_info_score}
    return {
        f"{prefix}{name}": float(score(found, other))
        for prefix, other in pairs.items()
        for name, score in scores.items()
    }


def _clusters(x: Sparse, cluster: Cluster, seed: int) -> Ints:
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    model = KMeans(cluster.clusters, n_init=cluster.starts, random_state=seed)
    with warnings.catch_warnings():  # a release may have fewer distinct rows than clusters
        warnings.simplefilter("ignore", ConvergenceWarning)
        labels: Ints = model.fit(x).labels_
    return labels

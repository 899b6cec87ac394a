"""The clustering half of the experiment: whether k-means finds in a release the clusters of the
table.

On tables without clear clusters k-means is not stable: Nursery is a full factorial design, in which
every cut is as good as the next. Two runs on the raw table from different random centres then agree
little (method "raw"), and the measure can't tell releases apart. So it is also taken from the
centres of the raw table: how far the release moves them, and the rows around them.
"""

from functools import cache

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from _ta_da.tables import Released, Table, cells, controllers, load, raw, release
from anonlib.arrays import Floats, Ints
from anonlib.partition import Partitioner
from anonlib.partition.single import Single
from anonlib.partition.target_clusters import TargetClusters

#: Section VI-C: clusters that are looked for, and data controllers.
N_CLUSTERS = 5
N_CONTROLLERS = {"bank": 9, "nursery": 3, "customer": 3}
#: Random starts, of which k-means takes the best.
N_INIT = 10
#: What is added to a seed for the other run on the raw table.
OTHER = 1000

#: What partitions before Mondrian: "coded_clusters" have the distances of the paper's k-means,
#: "paper_clusters" are merged as in the paper, too.
METHODS: dict[str, list[Partitioner]] = {
    "mondrian": [Single()],
    "coded_clusters+mondrian": [TargetClusters(nominal="codes")],
    "paper_clusters+mondrian": [TargetClusters(nominal="codes", merge="nearest")],
    "target_clusters+mondrian": [TargetClusters()],
}
ENCODINGS = ("codes", "one_hot")


def run(dataset: str, k: int, l: int, method: str, seed: int) -> dict[str, float]:  # noqa: E741
    """The agreement for a method: one of METHODS, or "raw", another run on the raw table.

    Controllers and random centres depend on the seed alone.
    """
    table = load(dataset)
    if method == "raw":
        return agreement(dataset, np.arange(table.n), seed, seed + OTHER)
    owners = controllers(table.n, N_CONTROLLERS[dataset], seed)
    cell = cells(table, owners, k, l, METHODS[method], seed)
    return agreement(dataset, cell, seed, seed)


def agreement(dataset: str, cell: Ints, seed: int, other: int) -> dict[str, float]:
    """How the clusters found in the release of some cells agree with those found in the table,
    without the label (section VI-C): adjusted Rand index and normalized mutual information.

    `ari` and `nmi`: k-means on codes, standardized, from random centres; of a set the middle of its
    codes. `_from_raw`: from the centres found in the raw table. `one_hot_`: on indicators of
    categories. seed, other: of the random centres in the table and in the release.
    """
    table = load(dataset)
    released = release(table, cell)
    found: dict[str, float] = {"cells": int(cell.max()) + 1}
    for encoding in ENCODINGS:
        prefix = "" if encoding == "codes" else f"{encoding}_"
        labels, centers = _in_raw(dataset, encoding, seed)
        fresh = _k_means(encode(table, released, released, encoding), other)
        moved = KMeans(N_CLUSTERS, init=centers, n_init=1)
        moved.fit(encode(table, released, raw(table), encoding))
        for suffix, ids in (("", fresh.labels_), ("_from_raw", moved.labels_)):
            found[f"{prefix}ari{suffix}"] = float(adjusted_rand_score(labels, ids))
            found[f"{prefix}nmi{suffix}"] = float(normalized_mutual_info_score(labels, ids))
    return found


@cache
def _in_raw(dataset: str, encoding: str, seed: int) -> tuple[Ints, Floats]:
    """The clusters of the raw table, and their centres."""
    table = load(dataset)
    model = _k_means(encode(table, raw(table), raw(table), encoding), seed)
    return model.labels_, model.cluster_centers_


def _k_means(x: Floats, seed: int) -> KMeans:
    return KMeans(N_CLUSTERS, n_init=N_INIT, random_state=seed).fit(x)


def encode(table: Table, released: Released, like: Released, encoding: str) -> Floats:
    """float64[n, f] for k-means, standardized as `like` is; indicators are not.

    codes: the middle of each interval, and of the codes of each set; the sensitive column's code.
    one_hot: sets are multi-hot, and the sensitive column is one-hot.
    """
    if encoding == "codes":
        x, y = _codes(table, released), _codes(table, like)
        return _standardized(x, y)
    middle = _standardized(released.middle, like.middle)
    return np.column_stack([middle, released.sets, released.sensitive]).astype(np.float64)


def _codes(table: Table, released: Released) -> Floats:
    columns = [released.middle, released.sensitive.argmax(axis=1)]
    end = 0
    for n in table.n_categories.tolist():
        start, end = end, end + n
        among = released.sets[:, start:end]
        columns.append((among.argmax(axis=1) + n - 1 - among[:, ::-1].argmax(axis=1)) / 2)
    return np.column_stack(columns)


def _standardized(x: Floats, like: Floats) -> Floats:
    spread = like.std(axis=0)
    return (x - like.mean(axis=0)) / np.where(spread > 0, spread, 1)

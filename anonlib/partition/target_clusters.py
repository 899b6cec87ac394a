"""Target-aware clusters: keep together the rows that a clustering of the release should find."""

from dataclasses import replace
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from anonlib.arrays import MISSING, Codes, Floats, Ints, snap
from anonlib.kernels.merge import make_writable, merge_failing
from anonlib.partition import TaskPartitioner
from anonlib.table.block import Block

#: The number of near clusters that a cluster exchanges rows with.
NEIGHBOURS = 32
#: After this many passes, the near clusters are computed anew.
PASSES = 2
#: The descent ends when PASSES passes gain less than this share of the sum of squares.
LEAST = 2.0**-8


class TargetClusters(TaskPartitioner):
    """k-means with a least cluster size, by all columns but the sensitive ones and the target.

    A block of n persons becomes about n / 2k clusters of at least k rows, where k is the block's
    `min_rows`. A cluster whose rows all agree is not split. There are three phases:

    1. The cluster whose split by 2-means gains most is split, until there are enough clusters.
    2. Rows move to a near cluster, or swap with a row of one, if this lowers the sum of squared
       distances from the centroids and both clusters keep k rows. These are the steps of `refine`:
       of the steps between two clusters, the best is taken.
    3. Clusters that fail a model are merged in rounds (`merge_failing`) until all hold the models.

    `merge` says what a failing cluster is merged with:

    - growth: the cluster where this adds least to the sum of squares.
    - nearest: the cluster with the nearest centroid, as in the paper. Ties go to the cluster with
      the most distinct sensitive values. The larger a cluster, the more central its centroid, so
      one cluster swallows many others (on Customer_segmentation with k = 5 and l = 2, 1,334 of
      8,819 rows, instead of 135).

    Distances are those of `mdav`. With `nominal: codes` a nominal column counts as its codes,
    standardized in the block, as in the paper. This suits a release that will be clustered by such
    codes. No random numbers are used.

    Source: TA_DA, section IV-B; its constrained k-means solves a min-cost flow at every step.
    Bisecting: Steinbach, Karypis, Kumar, A comparison of document clustering techniques, 2000.
    Cost O(n d log(n / k)) for the splits; O(n d) for a pass, of which there are some tens; O(f n d)
    for f clusters that fail.
    """

    type: ClassVar[str] = "target_clusters"
    nominal: Literal["mismatch", "codes"] = Field(
        "mismatch", description="how far nominal values are apart: 1 if they differ, or as codes"
    )
    merge: Literal["growth", "nearest"] = Field(
        "growth", description="what a cluster that fails a model is merged with"
    )

    @property
    def needs_context(self) -> bool:
        return True

    def parts(self, block: Block, seed: int) -> list[Ints]:
        n_clusters = _persons(block) // (2 * block.min_rows)
        if n_clusters < 2:
            return [np.arange(block.n)]
        points = find_points(block, self.nominal)
        cluster = _cluster(points, n_clusters)
        cluster = merge_failing(points, cluster, growth=self.merge == "growth")
        return np.split(np.argsort(cluster, kind="stable"), np.cumsum(np.bincount(cluster))[:-1])


def _persons(block: Block) -> int:
    return block.n if block.unit is None else len(np.unique(block.unit[block.unit != MISSING]))


def find_points(block: Block, nominal: str) -> Block:
    """The block with the columns that distances use: its own and those of `context`. Codes count as
    `nominal` says."""
    numbers, codes = [block.numeric], [block.nominal]
    if block.context is not None:
        numbers.append(block.context.numeric)
        codes.append(block.context.nominal)
    stacked = np.column_stack(codes)
    if nominal == "codes":
        numbers.append(_standardize(stacked))
        stacked = stacked[:, :0]
    n_categories = stacked.max(axis=0, initial=-1).astype(np.int64) + 1
    return replace(
        block, numeric=np.column_stack(numbers), nominal=stacked, n_categories=n_categories
    )


def _standardize(codes: Codes) -> Floats:
    spread = codes.std(axis=0)
    return snap((codes - codes.mean(axis=0)) / np.where(spread > 0, spread, 1.0))


def _cluster(points: Block, n_clusters: int) -> Ints:
    """Phases 1 and 2: makes clusters of at least min_rows rows. Models are ignored.

    Returns:
        int64[n]. The cluster of each row; at most n_clusters.
    """
    from anonlib.kernels.refine.descent import exchange
    from anonlib.kernels.refine.near import find_near_cells
    from anonlib.kernels.refine.state import make_refine_state
    from anonlib.kernels.refine.step_list import make_steps
    from anonlib.partition._clusters_core import bisect_clusters

    columns = (
        make_writable(points.numeric),
        make_writable(points.nominal),
        make_writable(points.n_categories),
    )
    cluster = bisect_clusters(*columns, points.min_rows, n_clusters)
    n_clusters = int(cluster.max()) + 1
    before, steps = np.inf, make_steps(1)
    while True:
        state = make_refine_state(*columns, cluster, n_clusters)
        if state.loss.sum() >= (1 - LEAST) * before:
            return cluster
        before = state.loss.sum()
        near = find_near_cells(state, min(NEIGHBOURS, n_clusters))
        seen = np.zeros(near.shape, np.int32)
        for _ in range(PASSES):
            if not exchange(state, near, seen, points.min_rows, steps):
                break
        cluster = state.cell

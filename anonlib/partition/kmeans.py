"""Coarse k-means blocks, as a tree of 2-means splits."""

import heapq
from typing import ClassVar

import numpy as np
from pydantic import Field

from anonlib.block import Floats, Ints, snap
from anonlib.partition import Cuts, Partitioner, Sample
from anonlib.partition._plan import Grower


class KMeans(Partitioner):
    """Bisecting k-means: the heaviest block is split by 2-means until there are enough.

    A row follows the nearer centre at each split, so it passes log2(blocks) distances instead of
    all of them, blocks come out balanced, and merging a block with its sibling is merging with
    the nearest. Centres are fitted by scikit-learn in one thread on the weighted sample.
    Reference: Steinbach, Karypis, Kumar, A comparison of document clustering techniques, 2000.
    Cost O(m f log(n_leaves)) for a sample of m rows and f features.
    """

    type: ClassVar[str] = "kmeans"
    max_iter: int = Field(20, ge=1, description="Lloyd steps of each split")

    def fit(self, sample: Sample, n_leaves: int, seed: int) -> Cuts:
        from threadpoolctl import threadpool_limits

        grower = Grower(sample.features.shape[1])
        rows = np.arange(len(sample.weight))
        heap = [(-int(sample.weight.sum()), grower.root, rows)]
        n_open = 1
        with threadpool_limits(1):  # the sum over threads would depend on their number
            while heap and n_open < n_leaves:
                _, leaf, rows = heapq.heappop(heap)
                plane = self._split(sample.features[rows], sample.weight[rows], seed)
                if plane is None:
                    continue
                weights, threshold = plane
                low = _scores(sample.features[rows], weights) < threshold
                if low.all() or not low.any():
                    continue
                left, right = grower.cut(leaf, weights, threshold)
                n_open += 1
                for child, part in ((left, rows[low]), (right, rows[~low])):
                    heapq.heappush(heap, (-int(sample.weight[part].sum()), child, part))
        return grower.cuts()

    def _split(self, x: Floats, weight: Ints, seed: int) -> tuple[Floats, float] | None:
        """The hyperplane halfway between two centres, on the grid; None when all rows agree."""
        from sklearn.cluster import KMeans as TwoMeans

        if len(x) < 2 or (x == x[0]).all():
            return None
        model = TwoMeans(2, n_init=1, max_iter=self.max_iter, random_state=seed, algorithm="lloyd")
        a, b = model.fit(x, sample_weight=weight).cluster_centers_
        weights = snap(a - b)
        threshold = float(snap(np.array([(a @ a - b @ b) / 2]))[0])
        return (-weights, -threshold) if weights.any() else None


def _scores(x: Floats, weights: Floats) -> Floats:
    """The products summed in column order, as plans are evaluated everywhere."""
    score = np.zeros(len(x))
    for f in range(x.shape[1]):
        score += weights[f] * x[:, f]
    return score

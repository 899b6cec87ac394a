"""Coarse k-means blocks, as a tree of 2-means splits."""

import heapq
from typing import ClassVar, NamedTuple

import numpy as np
from pydantic import Field

from anonlib.block import Ints
from anonlib.partition import Cuts, Partitioner, Sample
from anonlib.partition._plan import Grower, Singles, scores, with_one, with_threshold


class _Plane(NamedTuple):
    weights: Singles
    threshold: float


class KMeans(Partitioner):
    """Bisecting k-means: the heaviest block is split by 2-means until there are enough.

    A row follows the nearer centre at each split, so it passes log2(blocks) distances instead of
    all of them, and merging a block with its sibling is merging with the nearest. A split that
    leaves less than `balance` of the rows on a side is moved along its axis, as far as repeated
    tuples let it: blocks of like size, and a flat tree.
    Centres are fitted by scikit-learn in one thread on the weighted sample.
    Reference: Steinbach, Karypis, Kumar, A comparison of document clustering techniques, 2000.
    Cost O(m f log(n_leaves)) for a sample of m rows and f features.
    """

    type: ClassVar[str] = "kmeans"
    max_iter: int = Field(20, ge=1, description="Lloyd steps of each split")
    balance: float = Field(0.35, ge=0, le=0.5, description="least share of rows on a split's side")

    def fit(self, sample: Sample, n_leaves: int, seed: int) -> Cuts:
        from threadpoolctl import threadpool_limits

        x, weight = sample.features, sample.weight
        grower = Grower(x.shape[1])
        heap = [(-int(weight.sum()), grower.root, np.arange(len(weight)))]
        n_open = 1
        with threadpool_limits(1):  # the sum over threads would depend on their number
            while heap and n_open < n_leaves:
                _, leaf, rows = heapq.heappop(heap)
                plane = self._split(x[rows], weight[rows], seed)
                if plane is None:
                    continue
                low = _along(plane.weights, plane.threshold, x[rows]) < 0
                if low.all() or not low.any():
                    continue
                left, right = grower.cut(leaf, plane.weights, plane.threshold)
                n_open += 1
                for child, part in ((left, rows[low]), (right, rows[~low])):
                    heapq.heappush(heap, (-int(weight[part].sum()), child, part))
        return grower.cuts()

    def _split(self, x: Singles, weight: Ints, seed: int) -> _Plane | None:
        """The hyperplane between two centres; None when all rows agree."""
        from sklearn.cluster import KMeans as TwoMeans

        if len(x) < 2 or (x == x[0]).all():
            return None
        model = TwoMeans(2, n_init=1, max_iter=self.max_iter, random_state=seed, algorithm="lloyd")
        model.fit(x.astype(np.float64), sample_weight=weight)
        a, b = model.cluster_centers_
        weights = (b - a).astype(np.float32)
        if not weights.any():
            return None
        halfway = float((b @ b - a @ a) / 2)
        return _Plane(weights, self._balanced(_along(weights, 0.0, x), weight, halfway))

    def _balanced(self, along: Singles, weight: Ints, threshold: float) -> float:
        """The threshold, moved where it leaves too few of the rows on a side."""
        least, total = self.balance * weight.sum(), weight.sum()
        low = weight[along < threshold].sum()
        if least <= low <= total - least:
            return threshold
        order = np.argsort(along, kind="stable")
        value, below = along[order], np.cumsum(weight[order])[:-1]
        between = np.flatnonzero(value[1:] > value[:-1])
        if not len(between):
            return threshold
        wanted = least if low < least else total - least
        at = between[np.argmin(np.abs(below[between] - wanted))]
        return float(value[at] / 2 + value[at + 1] / 2)


def _along(weights: Singles, threshold: float, x: Singles) -> Singles:
    """float32[n]: weights @ x - threshold, as plans have it everywhere."""
    return scores(with_threshold(weights[None], np.array([threshold])), with_one(x))

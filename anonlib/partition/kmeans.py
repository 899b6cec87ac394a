"""Blocks by k-means, as a tree of 2-means splits."""

import heapq
from math import ceil
from typing import ClassVar

import numpy as np
from pydantic import Field

from anonlib.arrays import Floats, Ints
from anonlib.partition import Grower, Leaf, Plane, Sample, TreePartitioner
from anonlib.partition._tree import score_along
from anonlib.partition.cuts import Singles, with_one

#: Splits are fitted on this many sampled rows per leaf, or on MIN_FITTED if that is more.
FITTED_PER_LEAF = 256
#: Splits are fitted on at least this many sampled rows, if the leaf has them.
MIN_FITTED = 10_000
#: Steps end when the squared moves of the centres are at most this share of the mean variance.
TOLERANCE = 1e-4


class KMeansPartitioner(TreePartitioner):
    """Bisecting k-means: splits the largest block by 2-means until there are enough blocks.

    At each split, a row goes to the nearer centre. So a row needs log2(blocks) distances instead of
    one per block, and a block's sibling is also its nearest block, for merging. If a split leaves
    less than the share `balance` of the rows on a side, it is moved along its axis, as far as
    repeated tuples allow. This makes blocks of similar size and a flat tree.
    The centres are those of scikit-learn's KMeans on the weighted sample. They are found without
    it: its import would take longer than all splits.
    References: Steinbach, Karypis, Kumar, A comparison of document clustering techniques, 2000;
    Arthur, Vassilvitskii, k-means++, 2007.
    Cost O(m f log(n_leaves)) for a sample of m rows and f features.
    """

    type: ClassVar[str] = "kmeans"
    bounds: ClassVar[bool] = True
    max_iter: int = Field(default=20, ge=1, description="Lloyd steps of each split")
    balance: float = Field(
        default=0.35, ge=0, le=0.5, description="least share of rows on a split's side"
    )

    def grow(
        self, sample: Sample, grower: Grower, leaf: Leaf, most: float, seed: int
    ) -> list[Leaf]:
        n_leaves = ceil(len(leaf.rows) / most)
        place = sample.place[leaf.rows]
        few = leaf.rows[np.argsort(place)[: max(MIN_FITTED, FITTED_PER_LEAF * n_leaves)]]
        x, weight = _distinct(sample.coordinates[few])
        points = with_one(x)
        heap = [(-len(few), leaf, np.arange(len(weight)))]
        leaves: list[Leaf] = []
        while heap and len(heap) + len(leaves) < n_leaves:
            _, open_, rows = heapq.heappop(heap)
            its = points[rows]
            plane = self._split(x[rows], its, weight[rows], seed)
            low = np.zeros(0, np.bool_)
            if plane is not None:
                low = score_along(plane.weights, plane.threshold, its) < 0
            if plane is None or low.all() or not low.any():
                leaves.append(open_)
                continue
            ids = grower.cut(open_.id, plane)
            side = sample.left(plane, open_.rows)
            sides = (open_.rows[side], rows[low]), (open_.rows[~side], rows[~low])
            for id, (all_, fitted) in zip(ids, sides, strict=True):
                heapq.heappush(heap, (-int(weight[fitted].sum()), Leaf(id, all_), fitted))
        return leaves + [open_ for _, open_, _ in heap]

    def _split(self, x: Singles, points: Singles, weight: Ints, seed: int) -> Plane | None:
        """The hyperplane halfway between two centres; None if all rows agree. points: The rows x as
        planes are scored with them."""
        if len(x) < 2 or (x == x[0]).all():
            return None
        a, b = find_two_means(x.astype(np.float64), weight, self.max_iter, seed)
        weights = (b - a).astype(np.float32)
        if not weights.any():
            return None
        halfway = float((b @ b - a @ a) / 2)
        return Plane(weights, self._balance(score_along(weights, 0.0, points), weight, halfway))

    def _balance(self, along: Singles, weight: Ints, threshold: float) -> float:
        """The threshold, moved if it leaves too few rows on a side."""
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


def find_two_means(x: Floats, weight: Ints, max_iter: int, seed: int) -> tuple[Floats, Floats]:
    """The two centres that Lloyd's steps find from a start by k-means++.

    Args:
        x: float64[n, f]. The rows, of which at least two differ.
        weight: int64[n]. How many rows each stands for.
        max_iter: The most steps.
        seed: Of the start. The draws are those of scikit-learn, which tests compare with.
    """
    from anonlib.partition._two_means_core import move_centres  # this imports numba

    middle = x.mean(axis=0)
    x = x - middle
    centres = np.stack(_draw_centres(x, weight, np.random.RandomState(seed)))
    least_shift = TOLERANCE * x.var(axis=0).mean()
    a, b = move_centres(x, weight, centres, max_iter, least_shift) + middle
    return a, b


def _draw_centres(x: Floats, weight: Ints, draw: np.random.RandomState) -> tuple[Floats, Floats]:
    """A random row, and the better of two that are drawn by their squared distance from it."""
    from anonlib.partition._two_means_core import measure_squares  # this imports numba

    first = int(draw.choice(len(x), p=weight / weight.sum()))
    far = measure_squares(x, first)
    wanted = draw.uniform(size=2) * (far * weight).sum()
    drawn = np.searchsorted(np.cumsum(far * weight), wanted, "right").clip(max=len(x) - 1)
    second = min(drawn, key=lambda row: (np.minimum(far, measure_squares(x, row)) * weight).sum())
    return x[first], x[second]


def _distinct(values: Singles) -> tuple[Singles, Ints]:
    """The distinct rows in order of first appearance, and how often each occurs."""
    unique, first, count = np.unique(values, axis=0, return_index=True, return_counts=True)
    order = np.argsort(first, kind="stable")
    return unique[order], count[order]

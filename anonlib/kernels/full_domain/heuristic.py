"""The heuristic search for a node of low loss, in lattices that are too large for arrays."""

from heapq import heapify, heappop, heappush
from typing import ClassVar

import numpy as np

from anonlib.kernels.full_domain.search import (
    OUT,
    Failing,
    HeightLattice,
    Heights,
    NodeSearch,
    describe_exact,
    set_height,
)

#: The most nodes of a sweep, for each node that may be looked at.
MEETINGS = 4


class HeuristicSearch(NodeSearch):
    """A search that keeps the nodes that it looked at, and no others.

    It descends from node to node, each time to the one of least loss below, until no node below
    loses less: an end. Of all ends, it takes the one of least loss, raises one column of it, and
    descends from there by the other columns first. So it finds more ends. When there are no more,
    it sweeps the lattice from the top for nodes that may still be the best.

    Attributes:
        looks: The most nodes that are looked at, without those of the first descent.
        losses: The loss of each node that was looked at; OUT if it suppresses too many rows.
        nodes: int32[., q]. The heights of nodes that give bounds for the nodes below.
        bounds: int64[.]. What the failing classes of these nodes lose by suppression; OUT if the
            nodes below are ruled out.
        n_bounds: How many of `nodes` there are.
        is_spent: Whether a node was not looked at for want of looks.
        is_exact: Whether no node is left that may be the best.
    """

    judges_all: ClassVar[bool] = True

    def __init__(self, lattice: HeightLattice, looks: int):
        super().__init__(lattice)
        self.looks = looks
        self.losses: dict[Heights, int] = {self.best: self.least}
        self.nodes = np.empty((64, len(lattice.shape)), np.int32)
        self.bounds = np.empty(64, np.int64)
        self.n_bounds = 0
        self.is_spent = self.is_exact = False

    def run(self) -> Heights:
        top = self.best
        self._descend()
        self.looks += self.lattice.n_looks
        self._improve([top, self.best])
        self.is_exact = not self.is_spent and self._sweep(top)
        return self.best

    def describe(self) -> str:
        if self.is_exact:
            return describe_exact(self.lattice)
        return (
            f"full_domain: a heuristic search: these levels lose least of {len(self.losses):,} "
            f"choices that were tried, of {self.lattice.n_nodes:,}; others may lose less. "
            "A greater `looks` tries more"
        )

    def _improve(self, starts: list[Heights]) -> None:
        """Finds ends: first those of `starts`, then those near other ends."""
        known = {self._end(start) for start in starts}
        ends = [(self.losses[end], end) for end in known]
        heapify(ends)
        while ends and not self.is_spent:
            _, heights = heappop(ends)
            for j, n in enumerate(self.lattice.shape):
                for height in range(heights[j] + 1, n):
                    end = self._end(self._end(set_height(heights, j, height), j))
                    if end not in known:
                        known.add(end)
                        heappush(ends, (self._loss(end), end))

    def _end(self, heights: Heights, still: int = -1) -> Heights:
        """The end of the steepest descent from a node. Column `still` keeps its height."""
        loss = self._loss(heights)
        while True:
            columns = (j for j, h in enumerate(heights) if h > 0 and j != still)
            lower = (set_height(heights, j, heights[j] - 1) for j in columns)
            found = min(((self._loss(each, loss), each) for each in lower), default=(OUT, heights))
            if found[0] >= loss:
                return heights
            loss, heights = found

    def _loss(self, heights: Heights, limit: int = OUT) -> int:
        """The loss of a node; OUT if it is no less than `limit`, or if no looks are left."""
        loss = self.losses.get(heights)
        if loss is None:
            if self.lattice.floor(heights) + self._bound(heights) >= limit:
                return OUT
            if self.lattice.n_looks >= self.looks:
                self.is_spent = True
                return OUT
            loss = self._look(heights)
        return loss

    def _look(self, heights: Heights) -> int:
        loss = self.losses[heights] = super()._look(heights)
        return loss

    def _sweep(self, top: Heights) -> bool:
        """Looks at all nodes that may be the best, the highest first. Returns whether it could."""
        bottom = (0,) * len(top)
        floor, level, n_met = self.lattice.floor(bottom), {top}, 0
        while level and not self.is_spent:
            columns = range(len(top))
            lower = {set_height(e, j, e[j] - 1) for e in level for j in columns if e[j] > 0}
            level = set()
            for heights in sorted(lower):
                bound = self._bound(heights)
                if self._better(floor + bound, bottom):  # else, so are no nodes below
                    if self._better(self.lattice.floor(heights) + bound, heights):
                        self._loss(heights)
                    level.add(heights)
            n_met += len(level)
            if n_met > MEETINGS * self.looks:
                return False
        return not self.is_spent

    def _bound(self, heights: Heights) -> int:
        """What a node loses by suppression, at least; OUT if it is ruled out."""
        from anonlib.kernels.full_domain.core import find_bound

        n = self.n_bounds
        return int(find_bound(self.nodes[:n], self.bounds[:n], np.array(heights, np.int32)))

    def _rule_out_below(self, heights: Heights, failing: Failing) -> None:
        if self.n_bounds == len(self.bounds):
            self.nodes = np.concatenate([self.nodes, np.empty_like(self.nodes)])
            self.bounds = np.concatenate([self.bounds, np.empty_like(self.bounds)])
        bound = OUT if failing.rows > self.block.may_suppress else failing.loss
        self.nodes[self.n_bounds], self.bounds[self.n_bounds] = heights, bound
        self.n_bounds += 1

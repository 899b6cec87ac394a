"""Finds the rows whose regions lie in conditions, without a look at all rows for each condition."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from anonlib.arrays import Bools, Floats, Ints
from anonlib.measure.risk._regions import ABSENT, LineRegions, Members, Range, Region, Sets


class LineConditions(NamedTuple):
    """Conditions on a column on a line.

    Attributes:
        low: float64[c]. The lower ends; NaN for missing values.
        high: float64[c]. The upper ends.
    """

    low: Floats
    high: Floats


#: Conditions on a column: ranges, or sets.
Conditions: TypeAlias = LineConditions | tuple[Members, ...]


def gather_conditions(regions: Sequence[Region]) -> Conditions:
    """Conditions on one column."""
    ranges = [each for each in regions if isinstance(each, Range)]
    if ranges:
        return LineConditions(*(np.array([getattr(c, e) for c in ranges]) for e in ("low", "high")))
    return tuple(each for each in regions if isinstance(each, frozenset))


@dataclass(frozen=True, eq=False)
class LineIndex:
    """Regions on a line, in the order of their lower ends, and c conditions.

    Attributes:
        regions: The n regions.
        conditions: The conditions.
        order: int64[n]. The rows by their lower ends; those without ends are last.
        start: int64[c]. By condition: the first place in this order that may lie in it.
        stop: int64[c]. The place after the last one.
    """

    regions: LineRegions
    conditions: LineConditions
    order: Ints
    start: Ints
    stop: Ints

    @property
    def sizes(self) -> Ints:
        """int64[c]. At least the rows in each condition."""
        return self.stop - self.start

    def rows(self, i: int) -> Ints:
        """The rows that lie in a condition, in any order."""
        rows = self.order[self.start[i] : self.stop[i]]
        low, high, end = self.regions.low, self.regions.high, self.conditions.high[i]
        return rows if high is low or np.isnan(end) else rows[high[rows] <= end]

    def holds(self, i: int, rows: Ints) -> Bools:
        """bool[rows]. Which of some rows lie in a condition."""
        least, low = self.conditions.low[i], self.regions.low[rows]
        if np.isnan(least):
            return np.isnan(low) & (self.regions.null is ABSENT)
        found: Bools = (low >= least) & (self.regions.high[rows] <= self.conditions.high[i])
        return found


@dataclass(frozen=True, eq=False)
class SetIndex:
    """Regions that are sets, in the order of the distinct ones, and c conditions.

    Attributes:
        regions: The n regions.
        inside: By condition: the places of the distinct regions that lie in it.
        order: int64[n]. The rows by their distinct regions.
        start: int64[distinct + 1]. The first place of each in this order, and n.
    """

    regions: Sets
    inside: Sequence[Ints]
    order: Ints
    start: Ints
    _flags: dict[int, Bools] = field(default_factory=dict)

    @property
    def sizes(self) -> Ints:
        """int64[c]. The rows in each condition."""
        count = np.diff(self.start)
        return np.array([count[places].sum() for places in self.inside], np.int64)

    def rows(self, i: int) -> Ints:
        """The rows that lie in a condition, in any order."""
        parts = [self.order[self.start[p] : self.start[p + 1]] for p in self.inside[i].tolist()]
        return np.concatenate([np.empty(0, np.int64), *parts])

    def holds(self, i: int, rows: Ints) -> Bools:
        """bool[rows]. Which of some rows lie in a condition."""
        if i not in self._flags:
            self._flags[i] = np.zeros(len(self.regions.distinct), np.bool_)
            self._flags[i][self.inside[i]] = True
        found: Bools = self._flags[i][self.regions.index[rows]]
        return found


RegionIndex: TypeAlias = LineIndex | SetIndex


def index_regions(regions: LineRegions | Sets, conditions: Conditions) -> RegionIndex:
    """The index of n regions of a column for conditions on it. Cost: O(n log n)."""
    if isinstance(regions, LineRegions):
        assert isinstance(conditions, LineConditions)
        return _index_line(regions, conditions)
    assert not isinstance(conditions, LineConditions)
    order = np.argsort(regions.index)
    start = np.searchsorted(regions.index[order], np.arange(len(regions.distinct) + 1))
    return SetIndex(regions, _find_inside(regions.distinct, conditions), order, start)


def _index_line(regions: LineRegions, conditions: LineConditions) -> LineIndex:
    order = np.argsort(regions.low)
    ends = regions.low[order]
    start = np.searchsorted(ends, conditions.low)
    stop = np.searchsorted(ends, conditions.high, side="right")
    without = np.isnan(conditions.low)
    start[without] = len(ends) - np.isnan(ends).sum()
    stop[without] = len(ends) if regions.null is ABSENT else start[without]
    return LineIndex(regions, conditions, order, start, np.maximum(start, stop))


def _find_inside(distinct: Sequence[Members], allowed: Sequence[Members]) -> list[Ints]:
    """By condition: the places of the distinct regions that lie in it; empty ones in none."""
    from scipy.sparse import csr_matrix

    code = {text: i for i, text in enumerate(frozenset(chain(*distinct, *allowed)))}

    def memberships(regions: Sequence[Members]) -> Any:
        row = np.repeat(np.arange(len(regions)), [len(each) for each in regions])
        column = [code[text] for each in regions for text in each]
        ones = np.ones(len(row), np.int64)
        return csr_matrix((ones, (row, column)), (len(regions), len(code)))

    common = (memberships(distinct) @ memberships(allowed).T).tocsc()
    size = np.array([len(each) for each in distinct], np.int64)
    found = []
    for i in range(len(allowed)):
        part = slice(common.indptr[i], common.indptr[i + 1])
        places = common.indices[part]
        found.append(places[common.data[part] == size[places]].astype(np.int64))
    return found

"""Finds the rows whose regions lie in conditions, without a look at all rows for each condition."""

from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from anonlib.arrays import Floats, Ints
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


class PlaceRanges(NamedTuple):
    """Where the rows of c conditions stand in an order of rows, as r ranges of places.

    Attributes:
        first: int64[r]. The first place of each range.
        stop: int64[r]. The place after its last one.
        bounds: int64[c + 1]. Where the ranges of each condition begin and end; they ascend.
    """

    first: Ints
    stop: Ints
    bounds: Ints

    @property
    def n_conditions(self) -> int:
        return len(self.bounds) - 1

    @property
    def sizes(self) -> Ints:
        """int64[c]. The rows of each condition."""
        before = np.append(0, np.cumsum(self.stop - self.first))
        sizes: Ints = np.diff(before[self.bounds])
        return sizes


def join_ranges(parts: Sequence[PlaceRanges]) -> PlaceRanges:
    """The conditions of one or more parts, one after the other."""
    first, stop = (np.concatenate([each[i] for each in parts]) for i in range(2))
    before = np.cumsum([0, *(len(each.first) for each in parts)])
    bounds = [each.bounds[:-1] + n for each, n in zip(parts, before, strict=False)]
    return PlaceRanges(first, stop, np.concatenate([*bounds, before[-1:]]))


class RegionIndex(NamedTuple):
    """n rows in an order of their regions.

    Attributes:
        code: int64[n]. What rows are ordered by.
        start: int64[d + 1]. How many rows have a lower code, for each of d codes; then n.
        ranges: The places of conditions in this order.
    """

    code: Ints
    start: Ints
    ranges: PlaceRanges


def index_regions(regions: LineRegions | Sets, conditions: Conditions) -> list[RegionIndex]:
    """The indexes of a column's n regions. A region lies in a condition if each index has its row
    in the condition's ranges. Cost: O(n), and O(d log d) for d distinct ends."""
    if isinstance(regions, LineRegions):
        assert isinstance(conditions, LineConditions)
        points = regions.high is regions.low
        both = (regions.low,) if points else (regions.low, regions.high)
        return [_index_ends(each, conditions, regions.null) for each in both]
    assert not isinstance(conditions, LineConditions)
    start = _accumulate(regions.index, len(regions.distinct))
    inside, bounds = _find_inside(regions.distinct, conditions)
    ranges = PlaceRanges(start[inside], start[inside + 1], bounds)
    return [RegionIndex(regions.index, start, ranges)]


def _index_ends(ends: Floats, conditions: LineConditions, null: Region) -> RegionIndex:
    """The index of regions by one of their ends. null: The region of rows without ends."""
    encoded = pa.array(ends).dictionary_encode()
    distinct = encoded.dictionary.to_numpy(zero_copy_only=False)
    order = np.argsort(distinct)  # NaN is last
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    code = rank[encoded.indices.to_numpy()]
    start = _accumulate(code, len(order))
    first = start[np.searchsorted(distinct[order], conditions.low)]
    stop = start[np.searchsorted(distinct[order], conditions.high, side="right")]
    without = np.isnan(conditions.low)
    first[without] = len(ends) - np.isnan(ends).sum()
    stop[without] = len(ends) if null is ABSENT else first[without]
    ranges = PlaceRanges(first, np.maximum(first, stop), np.arange(len(first) + 1))
    return RegionIndex(code, start, ranges)


def _accumulate(code: Ints, n_codes: int) -> Ints:
    """`RegionIndex.start`, for codes 0..n_codes - 1."""
    return np.append(0, np.cumsum(np.bincount(code, minlength=n_codes)))


def _find_inside(distinct: Sequence[Members], allowed: Sequence[Members]) -> tuple[Ints, Ints]:
    """The distinct regions that lie in each condition; empty ones lie in none.

    Returns:
        int64[r]. Their places by condition, ascending for each.
        int64[c + 1]. Where those of each condition begin and end.
    """
    from scipy.sparse import csr_matrix

    code = {text: i for i, text in enumerate(frozenset(chain(*distinct, *allowed)))}

    def memberships(regions: Sequence[Members]) -> Any:
        row = np.repeat(np.arange(len(regions)), [len(each) for each in regions])
        column = [code[text] for each in regions for text in each]
        ones = np.ones(len(row), np.int64)
        return csr_matrix((ones, (row, column)), (len(regions), len(code)))

    common = (memberships(distinct) @ memberships(allowed).T).tocsc()
    common.sort_indices()
    size = np.array([len(each) for each in distinct], np.int64)
    inside = common.data == size[common.indices]
    bounds = np.append(0, np.cumsum(inside))[common.indptr]
    return common.indices[inside].astype(np.int64), bounds

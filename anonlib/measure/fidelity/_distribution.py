"""Distributions of numbers: counts in bounded memory, and the distance of two distributions."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from anonlib.arrays import GRID, Floats, Ints

#: The most distinct points.
MOST_POINTS = 4096
#: The number of bins over which intervals are spread, on the range of a column.
N_BINS = 1024


class Points(NamedTuple):
    """Numbers on GRID, counted in c cells of equal width.

    The level is the lowest one with at most MOST_POINTS cells. So the result for a set of rows does
    not depend on how its parts were merged.

    Attributes:
        level: A cell is 2**level steps of GRID wide.
        key: int64[c], ascending and distinct. The numbers of the cells.
        rows: int64[c]. The rows in each cell.
    """

    level: int
    key: Ints
    rows: Ints

    @classmethod
    def of(cls, numbers: Floats) -> "Points":
        """Counts numbers. numbers: float64[n], on GRID."""
        key, rows = np.unique(np.rint(numbers / GRID).astype(np.int64), return_counts=True)
        return cls(0, key, rows.astype(np.int64)).bounded()

    def at(self, level: int) -> "Points":
        """The same numbers at a higher level."""
        key, place = np.unique(self.key >> (level - self.level), return_inverse=True)
        rows = np.bincount(place, self.rows, len(key)).astype(np.int64)  # exact below 2^53
        return Points(level, key, rows)

    def bounded(self) -> "Points":
        points = self
        while len(points.key) > MOST_POINTS:
            points = points.at(points.level + 1)
        return points

    def merge(self, other: "Points") -> "Points":
        level = max(self.level, other.level)
        a, b = self.at(level), other.at(level)
        key, place = np.unique(np.append(a.key, b.key), return_inverse=True)
        rows = np.bincount(place, np.append(a.rows, b.rows), len(key)).astype(np.int64)
        return Points(level, key, rows).bounded()

    @property
    def numbers(self) -> Floats:
        """float64[c]. The middle of each cell; at level 0 that is the number itself."""
        steps: Floats = np.ldexp(self.key + 0.5, self.level) - 0.5
        return np.asarray(steps * GRID)


def spread(low: Floats, high: Floats, edges: Floats) -> Floats:
    """Spreads n intervals uniformly over b bins of equal width. Cost: O(n + b).

    Args:
        low: float64[n]. Lower ends of the intervals.
        high: float64[n]. Upper ends. No interval is narrower than a bin.
        edges: float64[b + 1]. The edges of the bins, which enclose all intervals.

    Returns:
        float64[b]. The mass in each bin; each interval has the mass 1.
    """
    n_bins, width = len(edges) - 1, (edges[-1] - edges[0]) / (len(edges) - 1)
    left, right = (low - edges[0]) / width, (high - edges[0]) / width
    slope = 1.0 / (right - left)
    # The mass below edge i is the sum of slope * (max(i - left, 0) - max(i - right, 0)).
    slopes, offsets = np.zeros(n_bins + 2), np.zeros(n_bins + 2)
    for end, sign in ((left, 1.0), (right, -1.0)):
        first = np.clip(np.ceil(end).astype(np.int64), 0, n_bins + 1)
        slopes += sign * np.bincount(first, slope, n_bins + 2)
        offsets += sign * np.bincount(first, slope * end, n_bins + 2)
    i = np.arange(n_bins + 1)
    below = i * np.cumsum(slopes)[:-1] - np.cumsum(offsets)[:-1]
    below[-1] = len(low)
    return np.maximum(np.diff(below), 0.0)


@dataclass(frozen=True)
class Distribution:
    """A distribution of points and of mass in bins.

    Attributes:
        number: float64[c], ascending. The points.
        weight: float64[c]. The mass of each point.
        edges: float64[b + 1]. The edges of the bins; empty without bins.
        mass: float64[b]. The mass of each bin, uniform over edges[j] .. edges[j + 1].
    """

    number: Floats
    weight: Floats
    edges: Floats
    mass: Floats

    @property
    def total(self) -> float:
        return float(self.weight.sum() + self.mass.sum())

    @property
    def bounds(self) -> Floats:
        """Where the distribution function jumps or changes its slope."""
        return np.append(self.number, self.edges) if self.mass.any() else self.number

    def below(self, bounds: Floats, *, or_at: bool = False) -> Floats:
        """The mass below each bound. With `or_at`, it includes points at the bound."""
        place = np.searchsorted(self.number, bounds, "right" if or_at else "left")
        found: Floats = np.append(0.0, np.cumsum(self.weight))[place]
        if self.mass.any():
            found = found + np.interp(bounds, self.edges, np.append(0.0, np.cumsum(self.mass)))
        return found


def measure_wasserstein(p: Distribution, q: Distribution) -> float:
    """The Wasserstein-1 distance of two distributions, both scaled to a mass of 1.

    It is the area between the distribution functions, which are linear between points and edges.
    Neither distribution may be empty.
    """
    bounds = np.unique(np.concatenate([p.bounds, q.bounds]))
    if len(bounds) < 2:
        return 0.0
    after, before = (
        p.below(at, or_at=closed) / p.total - q.below(at, or_at=closed) / q.total
        for at, closed in ((bounds[:-1], True), (bounds[1:], False))
    )
    ends = np.abs(after) + np.abs(before)
    area = ends / 2
    crossing = (after * before < 0) & (ends > 0)
    area[crossing] = (after**2 + before**2)[crossing] / (2 * ends[crossing])
    return float(area @ np.diff(bounds))

"""How far two clusterings of the same rows agree, from how often each pair of clusters occurs."""

from math import comb, log
from typing import NamedTuple

from anonlib.arrays import Ints


class Agreement(NamedTuple):
    """ari: 1 where the clusterings are the same, 0 as far as chance alone makes them agree. nmi: 1
    where each tells all of the other, 0 where nothing. None without rows."""

    ari: float | None
    nmi: float | None


def agreement(contingency: Ints) -> Agreement:
    """contingency: int64[a, b], the rows in each pair of clusters.

    The adjusted Rand index (L. Hubert, P. Arabie, Comparing partitions, Journal of Classification
    2, 1985) and the mutual information over the mean of both entropies: the measures of TA_DA,
    section VI-C, which leaves open over which mean. Two clusterings into one cluster each, or into
    single rows, agree. Cost O(a b), in integers of any length.
    """
    cells = [int(c) for c in contingency.ravel() if c]
    rows, columns = ([int(c) for c in contingency.sum(axis=i) if c] for i in (1, 0))
    n = sum(cells)
    if n == 0:
        return Agreement(None, None)
    return Agreement(_adjusted_rand(n, cells, rows, columns), _information(n, cells, rows, columns))


def _adjusted_rand(n: int, cells: list[int], rows: list[int], columns: list[int]) -> float:
    together, first, second = (sum(comb(c, 2) for c in each) for each in (cells, rows, columns))
    pairs = comb(n, 2)
    # All over pairs, and doubled, so that there are integers only.
    above = 2 * (together * pairs - first * second)
    below = (first + second) * pairs - 2 * first * second
    return above / below if below else 1.0


def _information(n: int, cells: list[int], rows: list[int], columns: list[int]) -> float:
    joint, first, second = (_entropy(n, each) for each in (cells, rows, columns))
    if first + second == 0:
        return 1.0
    return min(max(2 * (first + second - joint) / (first + second), 0.0), 1.0)


def _entropy(n: int, counts: list[int]) -> float:
    """In nats; the sum in ascending order, so that it does not depend on how clusters are named."""
    return sum(c / n * log(n / c) for c in sorted(counts))

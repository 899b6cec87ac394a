"""How far two clusterings of the same rows agree, from the counts of pairs of clusters."""

from math import comb, log
from typing import NamedTuple

from anonlib.arrays import Ints


class Agreement(NamedTuple):
    """How far two clusterings agree.

    Attributes:
        ari: The adjusted Rand index: 1 for equal clusterings, 0 for agreement by chance. None
            without rows.
        nmi: The normalized mutual information: 1 if each clustering determines the other, 0 if
            they are independent. None without rows.
    """

    ari: float | None
    nmi: float | None


def measure_agreement(contingency: Ints) -> Agreement:
    """Compares two clusterings.

    Computes the adjusted Rand index (L. Hubert, P. Arabie, Comparing partitions, Journal of
    Classification 2, 1985), and the mutual information divided by the arithmetic mean of both
    entropies. TA_DA, section VI-C, uses both figures and does not say which mean. Two clusterings
    agree if both have one cluster, or both have single rows as clusters.
    Cost: O(a b), with integers of any length.

    Args:
        contingency: int64[a, b]. The rows in each pair of clusters.
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
    # All terms are multiplied by 2 pairs, so that they are integers.
    above = 2 * (together * pairs - first * second)
    below = (first + second) * pairs - 2 * first * second
    return above / below if below else 1.0


def _information(n: int, cells: list[int], rows: list[int], columns: list[int]) -> float:
    joint, first, second = (_entropy(n, each) for each in (cells, rows, columns))
    if first + second == 0:
        return 1.0
    return min(max(2 * (first + second - joint) / (first + second), 0.0), 1.0)


def _entropy(n: int, counts: list[int]) -> float:
    """The entropy in nats. Terms are summed in ascending order of the counts, so that the order of
    clusters has no effect."""
    return sum(c / n * log(n / c) for c in sorted(counts))

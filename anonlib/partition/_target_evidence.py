"""Whether a cut tells something about a target, or may be chance."""

from math import exp, lgamma

import numpy as np

from anonlib.block import Bools


def p_value(left: Bools, expected: Bools) -> float:
    """How likely a cut that tells nothing agrees as well as this one with what was expected.

    left, expected: bool[n], on which side each row stands and should stand if the cut tells
    something; of rows that did not choose it, one for each person. One-sided exact test of
    independence (R. A. Fisher, 1935), 1 where they agree no better than by chance. Cost O(n).
    """
    n, a, b = len(left), int(left.sum()), int(expected.sum())
    both = int((left & expected).sum())
    if both * n <= a * b:
        return 1.0
    # The hypergeometric tail: the probability of `both`, and what the next ones are of it.
    more = np.arange(both, min(a, b), dtype=np.float64)
    ratios = (a - more) * (b - more) / ((more + 1) * (n - a - b + more + 1))
    ways = _log_choose(a, both) + _log_choose(n - a, b - both) - _log_choose(n, b)
    return min(1.0, exp(ways) * (1.0 + float(np.cumprod(ratios).sum())))


def _log_choose(n: int, k: int) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)

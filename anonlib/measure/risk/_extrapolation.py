"""What a control would find in a larger table.

Held-out persons are fewer than those in the release, and among fewer persons other predicates hold
for exactly one. Anonymeter fits a model with two parameters to subsamples of the held-out persons.
Where its assumption fails (shares of rows uniform up to a maximum), that model tells too few, down
to a third. So the shares are left open here.
"""

from typing import NamedTuple

import numpy as np

from anonlib.arrays import Floats, Ints

#: Predicates that hold for more rows do not hold for one row of a table a few times larger.
MOST_ROWS = 50
#: The grid of expected rows: its least and greatest positive values, and how many there are.
LEAST, GREATEST, N_GRID = 0.01, 100.0, 80
#: Steps of expectation maximization.
STEPS = 300
#: Tables that are drawn from the fitted model, to see how far such a number is off.
DRAWN = 40


class Extrapolation(NamedTuple):
    """A number of predicates in a larger table.

    Attributes:
        number: Those that hold for exactly one row: between 0 and the number of predicates.
        deviation: Its standard deviation.
        bias: How far it is off on average.
    """

    number: float
    deviation: float = 0.0
    bias: float = 0.0


def extrapolate(counts: Ints, n: int, n_other: int) -> Extrapolation:
    """The expected number of predicates that hold for exactly one of `n_other` rows.

    The rows of a predicate are taken as Poisson. The distribution of their means is the one of
    greatest likelihood on a grid: J. Kiefer, J. Wolfowitz, Consistency of the maximum likelihood
    estimator in the presence of infinitely many incidental parameters, Annals of Mathematical
    Statistics 27, 1956. Deviation and bias are those of DRAWN tables that are drawn from it: a
    parametric bootstrap, B. Efron, R. J. Tibshirani, An introduction to the bootstrap, 1993,
    sections 6.5 and 10.2. Cost: O(DRAWN predicates).

    Args:
        counts: int64. The rows of n for which each predicate holds.
        n: Rows.
        n_other: Rows of the other table. If it is `n`, those that hold for exactly one are counted.
    """
    if n == n_other or not len(counts):
        return Extrapolation(float((counts == 1).sum()))
    times = np.bincount(counts[counts <= MOST_ROWS], minlength=MOST_ROWS + 1)
    if not times.any():
        return Extrapolation(0.0)
    mean = np.append(0.0, np.geomspace(LEAST, GREATEST, N_GRID))
    larger = mean * n_other / n
    single = larger * np.exp(-larger)
    (share,) = _fit_shares(times[None, :], mean)
    number = times.sum() * (share @ single)
    random = np.random.default_rng(0)
    drawn = random.poisson(random.choice(mean, (DRAWN, times.sum()), p=share / share.sum()))
    again = np.stack(
        [np.bincount(each, minlength=MOST_ROWS + 2) for each in np.minimum(drawn, MOST_ROWS + 1)]
    )
    times = again[:, : MOST_ROWS + 1]
    found = times.sum(axis=1) * (_fit_shares(times, mean) @ single)
    figures = number, found.std(ddof=1), found.mean() - number
    return Extrapolation(*(round(float(each), 6) for each in figures))


def _fit_shares(times: Ints, mean: Floats) -> Floats:
    """float64[tables, grid]. By table, the share of each mean that makes the counts likeliest.

    times: int64[tables, MOST_ROWS + 1]. How many predicates hold for each number of rows.
    """
    from scipy.special import gammaln, xlogy  # not scipy.stats, which takes a second to import

    n_rows = np.arange(times.shape[1])[:, None]
    likelihood = np.exp(xlogy(n_rows, mean) - mean - gammaln(n_rows + 1))  # Poisson
    weight = times / np.maximum(times.sum(axis=1, keepdims=True), 1)
    share: Floats = np.full((len(times), len(mean)), 1 / len(mean))
    for _ in range(STEPS):
        expected = share @ likelihood.T
        ratio = np.divide(weight, expected, out=np.zeros_like(weight), where=weight > 0)
        share = share * (ratio @ likelihood)
    return share

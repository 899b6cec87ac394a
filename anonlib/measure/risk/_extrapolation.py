"""What a control would find in a larger table.

Held-out persons are fewer than those in the release, and among fewer persons other predicates hold
for exactly one. Anonymeter fits a model with two parameters to subsamples of the held-out persons.
Where its assumption fails (shares of rows uniform up to a maximum), that model tells too few, down
to a third. So the shares are left open here.
"""

import numpy as np

from anonlib.arrays import Floats, Ints

#: Predicates that hold for more rows do not hold for one row of a table a few times larger.
MOST_ROWS = 50
#: The grid of expected rows: its least and greatest positive values, and how many there are.
LEAST, GREATEST, N_GRID = 0.01, 100.0, 80
#: Steps of expectation maximization.
STEPS = 300


def extrapolate(counts: Ints, n: int, n_other: int) -> float:
    """The expected number of predicates that hold for exactly one of `n_other` rows.

    The rows of a predicate are taken as Poisson. The distribution of their means is the one of
    greatest likelihood on a grid: J. Kiefer, J. Wolfowitz, Consistency of the maximum likelihood
    estimator in the presence of infinitely many incidental parameters, Annals of Mathematical
    Statistics 27, 1956. Cost: O(predicates).

    Args:
        counts: int64. The rows of n for which each predicate holds.
        n: Rows.
        n_other: Rows of the other table.

    Returns:
        A number between 0 and the number of predicates. If n is `n_other`, those that hold for
        exactly one.
    """
    if n == n_other or not len(counts):
        return float((counts == 1).sum())
    from scipy.stats import poisson

    few = counts[counts <= MOST_ROWS]
    value, times = np.unique(few, return_counts=True)
    mean = np.append(0.0, np.geomspace(LEAST, GREATEST, N_GRID))
    likelihood = poisson.pmf(value[:, None], mean[None, :])
    share: Floats = np.full(len(mean), 1 / len(mean))
    for _ in range(STEPS):
        joint = likelihood * share
        share = times @ (joint / joint.sum(axis=1, keepdims=True)) / max(len(few), 1)
    larger = mean * n_other / n
    return round(float(len(few) * (share @ (larger * np.exp(-larger)))), 6)

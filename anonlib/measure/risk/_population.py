"""What the sizes of a sample's classes say of the population that the sample was drawn from."""

from typing import NamedTuple

import numpy as np

from anonlib.arrays import Floats, Ints

#: From here on Stirling's series of log gamma, cut off after two terms, is exact in float64.
LARGE = 1e4
#: From size SERIES on, N_TERMS terms of 2F1's series are exact; scipy gives NaN for large sizes.
SERIES, N_TERMS = 32, 100


class Pitman(NamedTuple):
    """Pitman's model of the sizes of classes: 0 <= alpha < 1, theta > -alpha."""

    alpha: float
    theta: float


def pitman(size: Ints, n_classes: Ints) -> Pitman:
    """The model that makes a sample most likely which has n_classes[i] classes of size[i], both
    int64[s].

    The likelihood is that of Pitman's sampling formula; alpha, and theta for each alpha, are found
    by bounded search. Cost O(s) for each of some thousand steps. Reference: N. Hoshino, Applying
    Pitman's sampling formula to microdata disclosure risk assessment, Journal of Official
    Statistics 17(4), 2001.
    """
    from scipy.optimize import minimize_scalar

    def best(alpha: float) -> tuple[float, float]:
        found = minimize_scalar(
            lambda x: -_likelihood(size, n_classes, Pitman(alpha, float(np.exp(x)) - alpha)),
            bounds=(-20.0, 40.0),
            method="bounded",
            options={"xatol": 1e-9},
        )
        return float(found.fun), float(np.exp(found.x)) - alpha

    found = minimize_scalar(
        lambda alpha: best(float(alpha))[0],
        bounds=(1e-9, 1.0 - 1e-9),
        method="bounded",
        options={"xatol": 1e-9},
    )
    alpha = float(found.x)
    return Pitman(alpha, best(alpha)[1])


def pitman_uniques(model: Pitman, n: int) -> float:
    """How many classes of one person are expected among n persons: n (theta + alpha)_(n-1) over
    (theta + 1)_(n-1), rising factorials. (Hoshino gives its limit for large n, which is Gamma(theta
    + 1) / Gamma(theta + alpha) n^alpha.)"""
    above = _log_rising(model.theta + model.alpha, n - 1)
    return float(n * np.exp(above - _log_rising(model.theta + 1.0, n - 1)))


def zayatz(size: Ints, n_classes: Ints, n_population: int) -> float:
    """The estimated probability that a class of one person in the sample is one of the population,
    0 where there is none.

    Bayes' rule, the classes of the population being as often of each size as those of the sample,
    which is drawn without replacement. Cost O(s). Reference: L. Zayatz, Estimation of the number of
    unique population elements using a sample, Proceedings of the Survey Research Methods Section,
    American Statistical Association, 1991.
    """
    from scipy.stats import hypergeom

    n = int(size @ n_classes)
    single: Floats = hypergeom.pmf(1, n_population, size, n)  # one of the class was drawn
    both = float((n_classes * single)[size == 1].sum())
    return both / float(n_classes @ single) if both else 0.0


def expected_risk(size: Ints, fraction: float) -> Floats:
    """float64[s]: the expected 1 / F, F the persons of the population in a class that has `size`
    in a sample of that `fraction`.

    F is taken to be distributed as the draws until the size-th success, which has the probability
    `fraction`; then 1 / F is expected to be fraction / size 2F1(1, 1; size + 1; 1 - fraction).
    Reference: L. Franconi, S. Polettini, Individual risk estimation in mu-Argus: a review, Privacy
    in Statistical Databases, 2004.
    """
    from scipy.special import hyp2f1

    small = size < SERIES
    sums = np.ones(len(size))
    sums[small] = hyp2f1(1.0, 1.0, size[small] + 1.0, 1.0 - fraction)
    term = np.ones(int((~small).sum()))
    for i in range(1, N_TERMS):
        term *= i * (1.0 - fraction) / (size[~small] + i)
        sums[~small] += term
    return fraction / size * sums


def _likelihood(size: Ints, n_classes: Ints, model: Pitman) -> float:
    """The logarithm of Pitman's sampling formula, but for what the model does not change."""
    from scipy.special import gammaln

    alpha, theta = model
    u, n = int(n_classes.sum()), int(size @ n_classes)
    within = gammaln(size - alpha) - gammaln(1.0 - alpha)
    classes = (u - 1) * np.log(alpha) + _log_rising(theta / alpha + 1.0, u - 1)
    return float(classes - _log_rising(theta + 1.0, n - 1) + n_classes @ within)


def _log_rising(x: float, n: int) -> float:
    """log(x (x + 1) ... (x + n - 1)); differences of log gamma would cancel where x is large."""
    from scipy.special import gammaln

    if x < LARGE:
        return float(gammaln(x + n) - gammaln(x))
    end = x + n
    return float((x - 0.5) * np.log1p(n / x) + n * np.log(end) - n + (1 / end - 1 / x) / 12)

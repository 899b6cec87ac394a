"""Estimates about a population from the sizes of classes in a random sample of it."""

from typing import NamedTuple

import numpy as np

from anonlib.arrays import Floats, Ints

#: From this number on, two terms of Stirling's series of log gamma are exact in float64.
LARGE = 1e4
#: From size SERIES on, N_TERMS terms of the series of 2F1 are exact. scipy gives NaN for large
#: sizes.
SERIES, N_TERMS = 32, 100


class Pitman(NamedTuple):
    """Pitman's model of the sizes of classes.

    Attributes:
        alpha: 0 <= alpha < 1.
        theta: theta > -alpha.
    """

    alpha: float
    theta: float


def fit_pitman(size: Ints, n_classes: Ints) -> Pitman:
    """Fits Pitman's model to a sample, by maximum likelihood of Pitman's sampling formula.

    A bounded search finds alpha; for each alpha, another one finds theta.
    Cost: O(s) for each of some thousand steps.
    Reference: N. Hoshino, Applying Pitman's sampling formula to microdata disclosure risk
    assessment, Journal of Official Statistics 17(4), 2001.

    Args:
        size: int64[s]. The sizes that classes have.
        n_classes: int64[s]. The classes of each size.
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


def estimate_pitman_uniques(model: Pitman, n: int) -> float:
    """The expected number of classes of one person among n persons.

    It is n (theta + alpha)_(n-1) / (theta + 1)_(n-1), where (x)_m are rising factorials. Hoshino
    gives the limit for large n: Gamma(theta + 1) / Gamma(theta + alpha) n^alpha.
    """
    above = _log_rising(model.theta + model.alpha, n - 1)
    return float(n * np.exp(above - _log_rising(model.theta + 1.0, n - 1)))


def estimate_zayatz(size: Ints, n_classes: Ints, n_population: int) -> float:
    """Estimates the probability that a person who is unique in the sample is unique in the
    population.

    Uses Bayes' rule. The prior assumes that class sizes have the same distribution in the
    population as in the sample. The sample is drawn without replacement.
    Cost: O(s).
    Reference: L. Zayatz, Estimation of the number of unique population elements using a sample,
    Proceedings of the Survey Research Methods Section, American Statistical Association, 1991.

    Args:
        size: int64[s]. The sizes that classes of the sample have.
        n_classes: int64[s]. The classes of each size.
        n_population: The persons of the population.

    Returns:
        The probability; 0 if nobody is unique in the sample.
    """
    from scipy.stats import hypergeom

    n = int(size @ n_classes)
    single: Floats = hypergeom.pmf(1, n_population, size, n)  # one of the class was drawn
    both = float((n_classes * single)[size == 1].sum())
    return both / float(n_classes @ single) if both else 0.0


def predict_risk(size: Ints, fraction: float) -> Floats:
    """The expected value of 1 / F, where F is the number of persons in a class of the population.

    F is modelled as the number of draws until the size-th success, with `fraction` as the
    probability of success. The expected value is then
    fraction / size 2F1(1, 1; size + 1; 1 - fraction).
    Reference: L. Franconi, S. Polettini, Individual risk estimation in mu-Argus: a review, Privacy
    in Statistical Databases, 2004.

    Args:
        size: int64[s]. The sizes of classes in the sample.
        fraction: The share of the population that is in the sample.

    Returns:
        float64[s].
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
    """The logarithm of Pitman's sampling formula, without terms that do not depend on the model."""
    from scipy.special import gammaln

    alpha, theta = model
    u, n = int(n_classes.sum()), int(size @ n_classes)
    within = gammaln(size - alpha) - gammaln(1.0 - alpha)
    classes = (u - 1) * np.log(alpha) + _log_rising(theta / alpha + 1.0, u - 1)
    return float(classes - _log_rising(theta + 1.0, n - 1) + n_classes @ within)


def _log_rising(x: float, n: int) -> float:
    """log(x (x + 1) ... (x + n - 1)). For large x, differences of log gamma would cancel."""
    from scipy.special import gammaln

    if x < LARGE:
        return float(gammaln(x + n) - gammaln(x))
    end = x + n
    return float((x - 0.5) * np.log1p(n / x) + n * np.log(end) - n + (1 / end - 1 / x) / 12)

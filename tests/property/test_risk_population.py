"""What classes of a sample say of a population: against direct sums, simulation, the literature."""

from math import comb, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from anonlib.measure.risk._population import (
    Pitman,
    _likelihood,
    estimate_pitman_uniques,
    estimate_zayatz,
    fit_pitman,
    predict_risk,
)


def sizes_of(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sizes of classes, and how many have each."""
    return np.unique(np.unique(labels, return_counts=True)[1], return_counts=True)


def people(n: int, alpha: float, theta: float, seed: int) -> np.ndarray:
    """The classes of n people by Pitman's model, one after the other: a new class, or that of an
    earlier person, who is taken with a probability of 1 - alpha / size."""
    random = np.random.default_rng(seed)
    labels, count = np.zeros(n, np.int64), [1]
    for i in range(1, n):
        if random.random() < (theta + alpha * len(count)) / (theta + i):
            labels[i] = len(count)
            count.append(1)
            continue
        while True:
            label = labels[random.integers(i)]
            if random.random() >= alpha / count[label]:
                break
        labels[i] = label
        count[label] += 1
    return labels


def test_the_model_of_the_literature() -> None:
    """Expressed sequence tags of tomato flowers: alpha 0.612, theta 741.0 in A. Lijoi, R. Mena, I.
    Prünster, Bayesian nonparametric estimation of the probability of discovering new species,
    Biometrika 94(4), 2007."""
    size = np.array([*range(1, 15), 16, 23, 27])
    count = np.array([1434, 253, 71, 33, 11, 6, 2, 3, 1, 2, 2, 1, 1, 1, 2, 1, 1])
    assert (count.sum(), size @ count) == (1825, 2586)
    found = fit_pitman(size, count)
    assert found.alpha == pytest.approx(0.612, abs=0.0005)
    assert found.theta == pytest.approx(741.0, rel=0.001)


classes = st.dictionaries(st.integers(1, 40), st.integers(1, 30), min_size=1, max_size=8)
models = st.builds(
    lambda alpha, above: Pitman(alpha, above - alpha), st.floats(0.001, 0.95), st.floats(0.01, 1e7)
)


@given(classes, models, models)
def test_likelihood_is_that_of_the_sampling_formula(
    found: dict[int, int], first: Pitman, second: Pitman
) -> None:
    """Its logarithms added up one by one, up to what does not depend on the model."""

    def direct(alpha: float, theta: float) -> float:
        u, n = sum(found.values()), sum(size * count for size, count in found.items())
        total = sum(log(theta + i * alpha) for i in range(1, u))
        total -= sum(log(theta + i) for i in range(1, n))
        return total + sum(
            count * sum(log(i - alpha) for i in range(1, size)) for size, count in found.items()
        )

    size, count = np.array([*found]), np.array([*found.values()])
    difference = _likelihood(size, count, first) - _likelihood(size, count, second)
    assert difference == pytest.approx(direct(*first) - direct(*second), rel=1e-9, abs=1e-6)


@given(classes)
def test_no_other_model_is_more_likely(found: dict[int, int]) -> None:
    size, count = np.array([*found]), np.array([*found.values()])
    best = _likelihood(size, count, fit_pitman(size, count))
    for alpha in np.linspace(0.01, 0.99, 12):
        for above in np.geomspace(1e-3, 1e6, 30):
            assert _likelihood(size, count, Pitman(alpha, above - alpha)) <= best + 1e-6


def test_uniques_of_the_model() -> None:
    """Without alpha it is Ewens's: theta n / (theta + n - 1); else as people simulated come out."""
    assert estimate_pitman_uniques(Pitman(0.0, 5.0), 100) == pytest.approx(500 / 104)
    assert estimate_pitman_uniques(Pitman(0.3, 1e12), 1000) == pytest.approx(1000)
    found = []
    for seed in range(30):
        size, count = sizes_of(people(2000, 0.5, 20.0, seed))
        found.append(int(count[size == 1].sum()))
    error = np.std(found) / 30**0.5
    assert estimate_pitman_uniques(Pitman(0.5, 20.0), 2000) == pytest.approx(
        np.mean(found), abs=3 * error
    )


def test_estimates_from_samples_of_simulated_populations() -> None:
    """A population of Pitman's model: its estimate has no bias to speak of. One that is Zipf's in
    two columns: both say too much, and Zayatz's is the nearer only where the sample is large."""
    n, fraction = 20_000, 0.1
    random = np.random.default_rng(5)
    population = people(n, 0.4, 500.0, 1)
    size, count = sizes_of(population)
    truth = int(count[size == 1].sum())
    ratios = []
    for _ in range(20):
        sample = sizes_of(random.choice(population, int(n * fraction), replace=False))
        ratios.append(estimate_pitman_uniques(fit_pitman(*sample), n) / truth)
    assert np.mean(ratios) == pytest.approx(1.0, abs=0.1)

    weights = 1 / np.arange(1, 301)
    pair = random.choice(300, (2, n), p=weights / weights.sum())
    population = pair[0] * 300 + pair[1]
    size, count = sizes_of(population)
    truth = int(count[size == 1].sum())
    both: dict[float, list[float]] = {}
    for fraction in (0.1, 0.4):
        size, count = sizes_of(random.choice(population, int(n * fraction), replace=False))
        share = estimate_zayatz(size, count, n)
        model = estimate_pitman_uniques(fit_pitman(size, count), n)
        both[fraction] = [model / truth, int(count[size == 1].sum()) * share / fraction / truth]
    assert both[0.1] == pytest.approx([1.27, 1.40], abs=0.1)
    assert both[0.4] == pytest.approx([1.10, 1.07], abs=0.1)


@given(classes, st.integers(0, 3000))
def test_zayatz_is_bayes_rule(found: dict[int, int], more: int) -> None:
    size, count = np.array([*found]), np.array([*found.values()])
    n = int(size @ count)
    population = n + more

    def drawn_once(size: int) -> float:
        return size * comb(population - size, n - 1) / comb(population, n)

    both = found.get(1, 0) * drawn_once(1)
    total = sum(count * drawn_once(size) for size, count in found.items())
    expected = both / total if both else 0.0
    assert estimate_zayatz(size, count, population) == pytest.approx(expected, rel=1e-7)


@given(st.integers(1, 30), st.floats(0.05, 1.0))
def test_expected_risk_is_the_sum_over_populations(size: int, fraction: float) -> None:
    total, weight = 0.0, fraction**size  # of the population's class having just those of the sample
    for larger in range(size, 6000):
        total += weight / larger
        weight *= (1 - fraction) * larger / (larger - size + 1)
    assert predict_risk(np.array([size]), fraction)[0] == pytest.approx(total, rel=1e-6)


@given(st.integers(1, 200) | st.integers(1, 10**6), st.floats(1e-4, 1.0))
def test_expected_risk_is_an_integral(size: int, fraction: float) -> None:
    expected, _ = quad(
        lambda s: fraction * s ** (size - 1) / (fraction + (1 - fraction) * s),
        0.0,
        1.0,
        points=[max(0.0, 1 - 30 / size), min(0.5, 30 * fraction)],
        epsabs=0.0,
        epsrel=1e-10,
        limit=500,
    )
    assert predict_risk(np.array([size]), fraction)[0] == pytest.approx(expected, rel=1e-8)


def test_expected_risk_at_its_ends() -> None:
    size = np.array([1, 2, 10, 10_000])
    assert predict_risk(size, 1.0) == pytest.approx(1 / size)
    assert predict_risk(np.array([1]), 0.01)[0] == pytest.approx(0.01 / 0.99 * log(100))
    assert (np.diff(predict_risk(size, 0.01)) < 0).all()

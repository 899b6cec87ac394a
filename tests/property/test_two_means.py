"""The two means of the partitioner `kmeans` are those of scikit-learn."""

import numpy as np
import pytest
from sklearn.cluster import KMeans

from anonlib.arrays import Floats
from anonlib.partition.kmeans import find_two_means


def drawn(seed: int) -> Floats:
    """Rows in a few clumps, wide and narrow columns."""
    random = np.random.default_rng(seed)
    n, f = int(random.integers(2, 3000)), int(random.integers(1, 12))
    middles = random.normal(size=(int(random.integers(1, 5)), f)) * 4
    rows: Floats = middles[random.integers(0, len(middles), n)] + random.normal(size=(n, f))
    return rows * random.lognormal(size=f)


@pytest.mark.parametrize("max_iter", [1, 20])
@pytest.mark.parametrize("seed", range(25))
def test_as_scikit_learn(seed: int, max_iter: int) -> None:
    x, weight = drawn(seed), np.random.default_rng(seed).integers(1, 9, len(drawn(seed)))
    model = KMeans(2, n_init=1, max_iter=max_iter, random_state=seed, algorithm="lloyd")
    wanted = model.fit(x, sample_weight=weight).cluster_centers_
    np.testing.assert_allclose(
        find_two_means(x, weight, max_iter, seed), wanted, rtol=1e-7, atol=1e-9
    )


def test_rows_that_agree_but_one() -> None:
    x = np.zeros((500, 3))
    x[123] = 1e-6
    found = find_two_means(x, np.ones(500, np.int64), 20, seed=0)
    np.testing.assert_allclose(sorted(c[0] for c in found), [0, 1e-6], atol=1e-20)

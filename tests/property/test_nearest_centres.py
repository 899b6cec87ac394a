"""The nearest centres of rows, beside the definition."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from anonlib.measure.centres import find_nearest_centres


@pytest.mark.parametrize("seed", range(5))
def test_the_nearest_centre_is_the_same_in_any_batch(seed: int) -> None:
    random = np.random.default_rng(seed)
    x, centres = random.integers(-3, 3, (40, 4)) / 4, random.integers(-3, 3, (5, 4)) / 4
    expected = ((x[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
    assert (find_nearest_centres(csr_matrix(x), centres) == expected).all()
    parts = [find_nearest_centres(csr_matrix(part), centres) for part in (x[:7], x[7:8], x[8:])]
    assert (np.concatenate(parts) == expected).all()

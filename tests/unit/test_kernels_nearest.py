"""The search in leaves finds what a search of all points finds."""

import numpy as np
import pytest

from anonlib.arrays import Floats, Ints, snap
from anonlib.kernels._kd_tree import fill_leaves, make_leaves, remove
from anonlib.kernels._search import find_nearest, make_nearest


def nearest(value: Floats, p: int, center: int, k: int, there: Ints) -> list[int]:
    gap = np.column_stack(
        [(value[:, :p] - value[center, :p]) ** 2, value[:, p:] != value[center, p:]]
    )
    distance = np.where(there > 0, np.cumsum(gap, axis=1)[:, -1], np.inf)
    order: list[int] = np.lexsort((np.arange(len(value)), distance))[:k].tolist()
    return order


@pytest.mark.parametrize("n_codes", [3, 64, 65, 200, 2000])
@pytest.mark.parametrize("p", [0, 2])
def test_nearest_points_among_many_codes(p: int, n_codes: int) -> None:
    rng, n, k = np.random.default_rng(n_codes), 500, 7
    codes = [rng.integers(0, n_codes, n), rng.integers(0, 3, n)]
    value = np.column_stack([snap(rng.normal(size=(n, p))), *codes]).astype(np.float64)
    leaves, points, there = make_leaves(value, p), make_nearest(k), np.ones(n, np.int64)
    fill_leaves(leaves, there)
    for center in rng.permutation(n)[:60].tolist():
        find_nearest(leaves, center, k, there, points)
        found = points.item[: points.size[0]].tolist()
        assert found == nearest(value, p, center, k, there)
        there[center] = 0
        remove(leaves, center)

"""How far the least known losses of the benchmark tables can be from the optimum."""

import numpy as np
import pytest

from anonlib.local.cell_grouping import cells
from anonlib.loss._bound import LP, bound_squares
from tests.support import data_dir


# 100 SSE / SST: what no cells of at least k rows can go below; the least known.
@pytest.mark.parametrize(
    ("table", "k", "bound", "least"), [("tarragona", 3, 13.85, 14.52), ("census", 3, 4.64, 4.74)]
)
def test_least_known_losses_are_near_the_optimum(
    table: str, k: int, bound: float, least: float
) -> None:
    x = np.loadtxt(data_dir() / "casc" / f"{table}.csv", delimiter=",", skiprows=1)
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    found = bound_squares(z, k, cells(x, "mdav", k))
    assert found.kind == LP
    assert bound < 100 * found.value / (z**2).sum() < least

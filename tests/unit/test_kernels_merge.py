"""What kernels share."""

from dataclasses import replace

import numpy as np
import pytest

from anonlib.errors import InfeasibleError
from anonlib.kernels.merge import join_nearest, merge_failing, number_by_first_row, require_feasible
from tests.support import make_block

LINE = np.array([[0.0], [1.0], [2.0], [10.0], [11.0], [20.0]])


def test_by_first_row() -> None:
    assert number_by_first_row(np.array([5, 2, 5, 0, 2])).tolist() == [0, 1, 0, 2, 1]
    assert number_by_first_row(np.zeros(0, np.int64)).tolist() == []


def test_infeasible_names_models_and_rows_only() -> None:
    block = make_block(LINE, k=7, sensitive=[3, 3, 3, 3, 3, -1])
    with pytest.raises(InfeasibleError) as caught:
        require_feasible(block)
    assert str(caught.value) == (
        "block: its 6 rows do not hold k_anonymity, l_diversity even as one cell"
    )
    with pytest.raises(InfeasibleError):
        merge_failing(block, np.zeros(6, np.int64))


def test_a_failing_cell_joins_a_near_one() -> None:
    block = make_block(LINE, k=2)
    assert merge_failing(block, np.array([0, 0, 1, 2, 2, 3])).tolist() == [0, 0, 0, 1, 1, 1]


def test_the_smaller_goes_first_and_spares_the_one_it_joins() -> None:
    block = make_block(LINE, k=3)
    # The last row joins the pair at 10 and 11, which then has enough and is left alone.
    assert merge_failing(block, np.array([0, 0, 0, 1, 1, 2])).tolist() == [0, 0, 0, 1, 1, 1]


def test_nominal_distance_is_that_of_shares() -> None:
    block = make_block(np.zeros((7, 0)), [[0], [0], [1], [1], [1], [2], [1]], k=2)
    # The last row's category has a share of 1/2 in the first cell, of 2/3 in the second.
    assert merge_failing(block, np.array([0, 1, 0, 1, 1, 0, 2])).tolist() == [0, 1, 0, 1, 1, 0, 1]


@pytest.mark.parametrize(("growth", "joined"), [(True, 1), (False, 0)])
def test_growth_spares_the_large(growth: bool, joined: int) -> None:
    """The last row is nearer to the six at 0, but moves the centroid of fewer rows at 5."""
    block = make_block([[0.0]] * 6 + [[5.0], [5.0], [2.4]], k=2)
    merged = merge_failing(block, np.array([0] * 6 + [1, 1, 2]), growth=growth)
    assert merged.tolist() == [0] * 6 + [1, 1, joined]


@pytest.mark.parametrize(
    ("diseases", "joined"),
    [([0, 1, 0, 0, 0], 0), ([0, 0, 0, 1, 0], 1), ([-1, 0, 0, 1, 0], 1), ([0, 1, 0, 1, 0], 0)],
)
def test_of_nearest_centroids_the_one_of_most_values(diseases: list[int], joined: int) -> None:
    """TA_DA, section IV-B. The last row is as near to both pairs."""
    block = make_block([[0.0], [0.0], [4.0], [4.0], [2.0]], sensitive=diseases)
    block = replace(block, models=block.models[:1])
    merged = merge_failing(block, np.array([0, 0, 1, 1, 2]), growth=False)
    assert merged.tolist() == [0, 0, 1, 1, joined]


def test_the_clusters_of_figure_5() -> None:
    """TA_DA, example IV.2, k = l = 2, at places of our own: of four clusters of 4, 4, 2 and 2 rows
    the third has one sensitive value; it is merged with the fourth, which is nearest."""
    places = [[1, 4], [1, 5], [2, 4], [2, 5], [8, 4], [8, 5], [9, 4], [9, 5]]
    places += [[4, 0], [4, 1], [6, 0], [6, 1]]
    income = [0, 1, 0, 1, 0, 1, 1, 2, 3, 3, 0, 1]
    block = make_block(places, k=2, sensitive=income, l=2)
    clusters = np.array([0] * 4 + [1] * 4 + [2] * 2 + [3] * 2)
    for growth in (True, False):
        merged = merge_failing(block, clusters, growth=growth)
        assert merged.tolist() == [0] * 4 + [1] * 4 + [2] * 4


def test_leftover_rows_join_one_by_one_the_cells_as_they_were() -> None:
    block = make_block([[0.0], [0.0], [4.9], [10.0], [10.0], [5.1], [7.0]])
    joined = join_nearest(block, np.array([0, 0, -1, 1, 1, -1, -1]))
    assert joined.tolist() == [0, 0, 0, 1, 1, 1, 1]


def test_thousands_of_failing_cells() -> None:
    """Quickly, and without one cell that swallows them all."""
    random = np.random.default_rng(0)
    n = 3000
    block = make_block(random.normal(size=(n, 2)), random.integers(0, 3, (n, 1)), k=3)
    merged = merge_failing(block, np.arange(n) // 2)
    assert block.holds(merged, merged.max() + 1).all()
    assert np.bincount(merged).max() <= 12


def test_ties_do_not_gather_in_one_cell() -> None:
    """All distances are equal at first."""
    block = make_block(np.zeros((400, 0)), np.arange(400).reshape(-1, 1), k=4)
    merged = merge_failing(block, np.arange(400) // 2)
    assert np.bincount(merged).max() <= 8

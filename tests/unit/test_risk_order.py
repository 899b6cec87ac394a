"""Where rows stand, and whether that goes with what they hold."""

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import spearmanr

from anonlib.measure.risk.order import _figure, _places


def test_places_are_those_in_the_files() -> None:
    """By name, by the part of the file that was read, by the row in it."""
    rows = pa.table(
        {
            "file": ["part-1", "part-0", "part-1", "part-0", "part-0"],
            "start": [0, 128, 0, 0, 128],
            "offset": [8, 7, 9, 2**33, 3],
        }
    )
    assert _places(rows, within_files=False).tolist() == [3, 2, 4, 0, 1]
    # a third, two thirds and the whole of part-0; half and the whole of part-1
    assert _places(rows, within_files=True).tolist() == [2, 4.5, 4.5, 1, 3]


@pytest.mark.parametrize(
    "values",
    [
        np.random.default_rng(1).normal(size=200),
        -np.arange(200.0),
        np.repeat([3.0, 1.0], 100),
    ],
)
def test_correlation_is_that_of_the_ranks(values: np.ndarray) -> None:
    place = np.random.default_rng(2).permutation(200).astype(float)
    found = _figure(place, pa.chunked_array([values]), "age")
    assert found.of == "age"
    assert found.value == pytest.approx(abs(spearmanr(place, values).statistic))


def test_text_and_missing_values_have_ranks() -> None:
    """Missing ones are the least; letters go by their code points."""
    place = np.arange(4.0)
    assert _figure(place, pa.chunked_array([[None, "B", "a", "ä"]]), "t").value == 1.0
    found = _figure(place, pa.chunked_array([["a"] * 4]), "t")
    assert found.value is None
    assert found.note

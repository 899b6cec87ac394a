"""Agreement of clusterings: what scikit-learn's metrics say."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from anonlib.measure.agreement import Agreement, measure_agreement

LABELS = st.integers(0, 4)


@given(st.lists(st.tuples(LABELS, LABELS), min_size=1, max_size=60))
def test_agreement_is_that_of_scikit_learn(pairs: list[tuple[int, int]]) -> None:
    first, second = np.array(pairs).T
    contingency = np.zeros((5, 5), np.int64)
    np.add.at(contingency, (first, second), 1)
    found = measure_agreement(contingency)
    assert found.ari == pytest.approx(adjusted_rand_score(first, second))
    expected = normalized_mutual_info_score(first, second)
    assert found.nmi == pytest.approx(expected, abs=1e-9)
    assert measure_agreement(contingency.T) == found
    assert measure_agreement(np.ascontiguousarray(contingency[::-1, [2, 0, 1, 4, 3]])) == found


def test_counts_beyond_what_floats_hold() -> None:
    """Billions of rows: pairs of them are more than 64 bits hold when multiplied."""
    contingency = np.array([[3, 1], [1, 3]], np.int64) * 10**9
    assert measure_agreement(contingency).ari == pytest.approx(0.25, abs=1e-8)
    assert measure_agreement(np.zeros((2, 2), np.int64)) == Agreement(None, None)

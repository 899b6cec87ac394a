"""Scores of predictions: what scikit-learn's metrics say."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics

from anonlib.measure.scores import Scores, find_auc, list_class_scores, number_scores, score


@given(st.data(), st.integers(2, 5))
def test_scores_of_classes(data: st.DataObject, n_classes: int) -> None:
    codes = st.lists(st.integers(0, n_classes - 1), min_size=1, max_size=40)
    true = np.array(data.draw(codes), np.float64)
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    steps = random.integers(0, data.draw(st.integers(1, 6)), (len(true), n_classes), endpoint=True)
    shares = (steps + 1) / (steps + 1).sum(axis=1, keepdims=True)
    told = shares.argmax(axis=1)
    found = score(true, told.astype(np.float64), shares, n_classes)
    assert found.accuracy == pytest.approx(metrics.accuracy_score(true, told))
    f1 = metrics.f1_score(true, told, average="macro", zero_division=0.0)
    assert found.f1_macro == pytest.approx(f1)
    average = {"average": "weighted"} if n_classes > 2 else {"pos_label": 1}
    assert found.f1 == pytest.approx(metrics.f1_score(true, told, zero_division=0.0, **average))
    each = [
        metrics.roc_auc_score(true == c, shares[:, c])
        for c in range(n_classes)
        if 0 < (true == c).sum() < len(true)
    ]
    if not each:
        assert found.auc is None
    else:
        assert found.auc == pytest.approx(each[-1] if n_classes == 2 else np.mean(each))
    if len({*true}) == n_classes > 2:
        assert found.auc == pytest.approx(metrics.roc_auc_score(true, shares, multi_class="ovr"))
    assert (found.rmse, found.r2) == (None, None)


@given(st.lists(st.tuples(*[st.integers(-(2**30), 2**30)] * 2), min_size=2, max_size=40))
def test_scores_of_numbers(pairs: list[tuple[int, int]]) -> None:
    true, told = np.array(pairs, np.float64).T / 2**10
    found = score(true, told)
    assert found.rmse == pytest.approx(metrics.root_mean_squared_error(true, told))
    if np.ptp(true):
        assert found.r2 == pytest.approx(metrics.r2_score(true, told))
    else:
        assert found.r2 is None
    assert found[:4] == (None,) * 4


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=20))
def test_auc_counts_pairs(counts: list[tuple[int, int]]) -> None:
    positive, negative = np.array(counts, np.int64).T
    pairs = [
        (p * n, 1.0 if i > j else 0.5 if i == j else 0.0)
        for i, p in enumerate(positive)
        for j, n in enumerate(negative)
    ]
    total = sum(weight for weight, _ in pairs)
    expected = sum(weight * won for weight, won in pairs) / total if total else None
    assert find_auc(positive, negative) == (None if expected is None else pytest.approx(expected))


@pytest.mark.parametrize("n", [1, 7, 10, 30, 1000])
def test_equal_numbers_have_no_variance(n: int) -> None:
    assert score(np.full(n, 0.1), np.full(n, 0.11)).r2 is None


def test_nothing_scores_nothing() -> None:
    assert list_class_scores(np.zeros((2, 2), np.int64)) == Scores()
    assert number_scores(0, 0.0, 0.0) == Scores()
    assert score(np.zeros(0), np.zeros(0)) == Scores()

"""How well predictions match what is true, from counts that add up over any parts of a table.

The figures are those of scikit-learn's metrics.
"""

from typing import NamedTuple

import numpy as np

from anonlib.arrays import Floats, Ints


class Scores(NamedTuple):
    """What predictions of a target are worth; None where not defined.

    Of classes: accuracy; f1, with two classes that of the last one, with more the mean weighted by
    how many rows are of each; f1_macro, the plain mean over the classes that occur or are
    predicted; auc, the area under the ROC curve, with more than two classes the mean of each
    against the rest. Of numbers, in their units: rmse, the root of the mean squared error; r2, the
    share of the variance that is explained.
    """

    accuracy: float | None = None
    f1: float | None = None
    f1_macro: float | None = None
    auc: float | None = None
    rmse: float | None = None
    r2: float | None = None


#: Scores of which less is better.
ERRORS = ("rmse",)


def score(
    true: Floats, predicted: Floats, shares: Floats | None = None, n_classes: int = 0
) -> Scores:
    """What n predictions are worth.

    true, predicted: float64[n], codes 0..n_classes-1, or numbers if there are no classes. shares:
    float64[n, n_classes], how likely each class is said to be, for the area under the ROC curve.
    Cost O(n log n).
    """
    if n_classes == 0:
        error, varies = true - predicted, len(true) > 0 and true.min() < true.max()
        # The mean of equal numbers may be off by a rounding error, which is no spread.
        spread = true - true.mean() if varies else np.zeros(1)
        return number_scores(len(true), float(error @ error), float(spread @ spread))
    code = true.astype(np.int64)
    pair = code * n_classes + predicted.astype(np.int64)
    confusion = np.bincount(pair, minlength=n_classes**2).reshape(n_classes, n_classes)
    found = class_scores(confusion)
    return found if shares is None else found._replace(auc=_auc_of_shares(code, shares))


def class_scores(confusion: Ints) -> Scores:
    """All scores but auc. confusion: int64[c, c], rows by their class, then by what they were
    predicted to be."""
    total, hit = int(confusion.sum()), np.diagonal(confusion)
    if total == 0:
        return Scores()
    is_of, told = confusion.sum(axis=1), confusion.sum(axis=0)
    occurs = is_of + told
    f1 = 2 * hit / np.maximum(occurs, 1)
    last = float(f1[-1]) if len(f1) <= 2 else float(f1 @ is_of / total)
    return Scores(float(hit.sum() / total), last, float(f1[occurs > 0].mean()))


def number_scores(n: int, squares: float, spread: float) -> Scores:
    """squares: the sum of n squared errors; spread: that of the squared deviations from the mean
    of what is true."""
    if n == 0:
        return Scores()
    return Scores(rmse=float(np.sqrt(squares / n)), r2=1 - squares / spread if spread else None)


def auc(positive: Ints, negative: Ints) -> float | None:
    """The area under the ROC curve: how often a positive row has a larger score than a negative
    one, ties counted as half. positive, negative: int64[s], rows by score, ascending. None without
    rows of both kinds."""
    pairs = int(positive.sum()) * int(negative.sum())
    twice = 2 * (np.cumsum(negative) - negative) + negative
    return int(positive @ twice) / (2 * pairs) if pairs else None


def mean_auc(by_class: list[float | None]) -> float | None:
    """That of two classes is the last one's; of more the mean over those that have one."""
    known = [each for each in by_class if each is not None]
    if not known:
        return None
    return known[-1] if len(by_class) <= 2 else float(np.mean(known))


def _auc_of_shares(code: Ints, shares: Floats) -> float | None:
    found = []
    for c in range(shares.shape[1]):
        distinct, place = np.unique(shares[:, c], return_inverse=True)
        positive = np.bincount(place[code == c], minlength=len(distinct))
        found.append(auc(positive, np.bincount(place, minlength=len(distinct)) - positive))
    return mean_auc(found)

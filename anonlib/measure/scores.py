"""Scores of predictions, computed from counts and sums. These add up over the parts of a table.

All scores are defined as in scikit-learn.
"""

from typing import NamedTuple

import numpy as np

from anonlib.arrays import Floats, Ints


class Scores(NamedTuple):
    """Scores of predictions. None if not defined.

    Attributes:
        accuracy: For classes: the share of right predictions.
        f1: For two classes: F1 of the last class. For more: the mean, weighted by the rows of
            each class.
        f1_macro: For classes: the plain mean of F1 over classes that occur or are predicted.
        auc: The area under the ROC curve. For more than two classes: the mean over each class
            against the rest.
        rmse: For numbers, in their unit: the root of the mean squared error.
        r2: For numbers: the explained share of the variance.
    """

    accuracy: float | None = None
    f1: float | None = None
    f1_macro: float | None = None
    auc: float | None = None
    rmse: float | None = None
    r2: float | None = None


#: Scores that are better if they are smaller.
ERRORS = ("rmse",)


def score(
    true: Floats, prediction: Floats, shares: Floats | None = None, n_classes: int = 0
) -> Scores:
    """Scores n predictions. Cost: O(n log n) per class.

    Args:
        true: float64[n]. Codes 0..n_classes-1, or numbers.
        prediction: float64[n]. As `true`.
        shares: float64[n, n_classes]. The predicted probability of each class. Without it, there
            is no auc.
        n_classes: Classes; 0 for numbers.
    """
    if n_classes == 0:
        error, varies = true - prediction, len(true) > 0 and true.min() < true.max()
        # The mean of equal numbers may have a rounding error. It must not count as spread.
        spread = true - true.mean() if varies else np.zeros(1)
        return number_scores(len(true), float(error @ error), float(spread @ spread))
    code = true.astype(np.int64)
    pair = code * n_classes + prediction.astype(np.int64)
    confusion = np.bincount(pair, minlength=n_classes**2).reshape(n_classes, n_classes)
    found = list_class_scores(confusion)
    return found if shares is None else found._replace(auc=_auc_of_shares(code, shares))


def list_class_scores(confusion: Ints) -> Scores:
    """All scores of classes but auc. confusion: int64[c, c], the rows of each true class and
    predicted class."""
    total, hit = int(confusion.sum()), np.diagonal(confusion)
    if total == 0:
        return Scores()
    is_of, told = confusion.sum(axis=1), confusion.sum(axis=0)
    occurs = is_of + told
    f1 = 2 * hit / np.maximum(occurs, 1)
    last = float(f1[-1]) if len(f1) <= 2 else float(f1 @ is_of / total)
    return Scores(float(hit.sum() / total), last, float(f1[occurs > 0].mean()))


def number_scores(n: int, squares: float, spread: float) -> Scores:
    """The scores of numbers.

    Args:
        n: The number of predictions.
        squares: The sum of squared errors.
        spread: The sum of squared deviations of the true numbers from their mean.
    """
    if n == 0:
        return Scores()
    return Scores(rmse=float(np.sqrt(squares / n)), r2=1 - squares / spread if spread else None)


def find_auc(positive: Ints, negative: Ints) -> float | None:
    """The area under the ROC curve: the probability that a positive row has a larger score than a
    negative row. Ties count half.

    Args:
        positive: int64[s]. Positive rows by score, ascending.
        negative: int64[s]. Negative rows by score, ascending.

    Returns:
        The area; None unless there are rows of both kinds.
    """
    pairs = int(positive.sum()) * int(negative.sum())
    twice = 2 * (np.cumsum(negative) - negative) + negative
    return int(positive @ twice) / (2 * pairs) if pairs else None


def average_auc(by_class: list[float | None]) -> float | None:
    """The auc of a target: for two classes the auc of the last class, else the mean over the
    classes that have one."""
    known = [each for each in by_class if each is not None]
    if not known:
        return None
    return known[-1] if len(by_class) <= 2 else float(np.mean(known))


def _auc_of_shares(code: Ints, shares: Floats) -> float | None:
    found = []
    for c in range(shares.shape[1]):
        distinct, place = np.unique(shares[:, c], return_inverse=True)
        positive = np.bincount(place[code == c], minlength=len(distinct))
        found.append(find_auc(positive, np.bincount(place, minlength=len(distinct)) - positive))
    return average_auc(found)

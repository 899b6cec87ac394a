"""Learning in memory: fits a model to one table and tests it on another.

The order of rows affects the last digits of a model. Give tables in a fixed order.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonlib.arrays import Floats, Sparse
from anonlib.encode import about
from anonlib.errors import InputError
from anonlib.measure.features import Features, as_one_array
from anonlib.measure.learners import Learner, TaskSize
from anonlib.measure.scores import Scores, score
from anonlib.table.encoding import clear_nan, one_zero, to_float
from anonlib.table.schema import Column, Scale, find_target_scale

#: The most classes of a target.
MOST_CLASSES = 100
#: The most features times rows for models that need dense features. They take 1.6 GB.
MOST_DENSE = 200_000_000


@dataclass(frozen=True)
class LearnTarget:
    """A column to predict.

    Attributes:
        column: The column.
        classes: Its classes, in the order of its values; None to predict numbers.
    """

    column: Column
    classes: pa.Array | None = None

    @property
    def n_classes(self) -> int:
        """The number of classes; 0 for numbers."""
        return 0 if self.classes is None else len(self.classes)

    def values(self, table: pa.Table) -> Floats:
        """float64[n]. Codes of classes, or numbers. NaN for missing and infinite values, and for
        values that are no class."""
        with about(self.column.name):
            values = one_zero(clear_nan(as_one_array(table.column(self.column.id))))
            if self.classes is not None:
                values = pc.index_in(values, value_set=self.classes, skip_nulls=True)
            numbers = to_float(values)
        return np.where(np.isfinite(numbers), numbers, np.nan)


class Examples(NamedTuple):
    """Rows to learn from or to test on.

    Attributes:
        x: csr_matrix float64[n, f]. The features.
        y: float64[n]. The target, present in all rows.
    """

    x: Sparse
    y: Floats


def read_target(column: Column, scale: Scale | None, *tables: pa.Table) -> LearnTarget:
    """The target in a column: numbers or classes.

    Args:
        column: The column.
        scale: The target has numbers if it is continuous. If it is None, the column's type decides.
        tables: The classes are the distinct values in these tables.

    Raises:
        InputError: There are no classes, or more than MOST_CLASSES.
    """
    if (scale or find_target_scale(column.type, needs_classes=False)) is Scale.CONTINUOUS:
        return LearnTarget(column)
    found = [one_zero(clear_nan(as_one_array(table.column(column.id)))) for table in tables]
    classes = pa.concat_arrays(found).unique().drop_null()
    if not 0 < len(classes) <= MOST_CLASSES:
        raise InputError(
            f"column {column.name}: a target has 1 to {MOST_CLASSES} classes, this one "
            f"{len(classes)}; a number to predict is `continuous`"
        )
    return LearnTarget(column, classes.take(pc.sort_indices(classes)))


def take_examples(
    table: pa.Table, features: Features, target: LearnTarget, *, released: bool
) -> Examples:
    """The rows of a table whose target is present.

    Args:
        table: The rows, with columns named by id.
        features: The features.
        target: The target.
        released: Whether they are released rows, else original ones.
    """
    y = target.values(table)
    x = features.matrix(table, released=released)
    return Examples(x[~np.isnan(y)], y[~np.isnan(y)])


def fit_and_score(
    learner: Learner, train: Examples, test: Examples, *, n_classes: int, seed: int
) -> Scores:
    """Fits a model to examples and scores it on others, with scikit-learn in one thread.

    Args:
        learner: The kind of model.
        train: Examples to learn from.
        test: Examples to test on.
        n_classes: Classes of the target; 0 for numbers.
        seed: Seed of the model.

    Returns:
        The scores. All are None if there is nothing to learn from or to test on.
    """
    return learn_model(learner, train, n_classes=n_classes, seed=seed)(test)


def learn_model(
    learner: Learner, train: Examples, *, n_classes: int, seed: int
) -> Callable[[Examples], Scores]:
    """Fits a model and returns a function that scores it on examples. Arguments as in
    `fit_and_score`."""
    if not len(train.y) or (n_classes and (train.y == train.y[0]).all()):  # nothing to learn
        return partial(find_baseline, train, n_classes=n_classes)
    from threadpoolctl import threadpool_limits

    # Numbers are standardized, so that penalties and step sizes mean the same for all targets.
    mean, sd = (0.0, 1.0) if n_classes else (float(train.y.mean()), float(train.y.std()) or 1.0)
    model = _fit_estimator(learner, train._replace(y=(train.y - mean) / sd), n_classes, seed)

    def predict(test: Examples) -> Scores:
        if not len(test.y):
            return Scores()
        x = _as_taken(learner, test.x)
        with threadpool_limits(1):  # as in learning
            found = model.predict_proba(x) if n_classes else model.predict(x)
        if not n_classes:
            return score(test.y, np.asarray(found, np.float64) * sd + mean)
        shares = np.zeros((len(test.y), n_classes))
        shares[:, model.classes_.astype(np.int64)] = found
        return score(test.y, shares.argmax(axis=1).astype(np.float64), shares, n_classes)

    return predict


def find_baseline(train: Examples, test: Examples, *, n_classes: int) -> Scores:
    """The scores without a model: predicts the most frequent class of `train` (of several, the
    first), or the mean."""
    if not len(train.y) or not len(test.y):
        return Scores()
    if not n_classes:
        return score(test.y, np.full(len(test.y), train.y.mean()))
    counts = np.bincount(train.y.astype(np.int64), minlength=n_classes)
    guesses = np.full(len(test.y), float(counts.argmax()))
    return score(test.y, guesses, np.zeros((len(test.y), n_classes)), n_classes)


def _fit_estimator(learner: Learner, train: Examples, n_classes: int, seed: int) -> Any:
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    n = len(train.y)
    rarest = n if not n_classes else int(np.unique(train.y, return_counts=True)[1].min())
    model = learner.estimator(TaskSize(n_classes, n, rarest, seed))
    # One thread, since sums would depend on the number of threads.
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(_as_taken(learner, train.x), train.y)


def _as_taken(learner: Learner, x: Sparse) -> Any:
    if not learner.dense:
        return x
    if x.shape[0] * x.shape[1] > MOST_DENSE:
        raise InputError(
            f"{learner.type} can't hold {x.shape[0]:,} rows of {x.shape[1]:,} features; "
            "lower `sample_rows` or `max_categories`"
        )
    return x.toarray()

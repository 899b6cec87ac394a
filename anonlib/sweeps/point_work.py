"""Tries one point of a sweep: anonymizes rows in memory, learns from them and measures them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache, partial
from hashlib import sha256
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa

from anonlib.arrays import Floats, Ints
from anonlib.errors import AnonlibError, InputError
from anonlib.measure.examples import (
    Examples,
    LearnTarget,
    find_baseline,
    learn_model,
    read_target,
    take_examples,
)
from anonlib.measure.features import Features, fit, list_predictors
from anonlib.measure.learners import Learner
from anonlib.measure.scores import Scores
from anonlib.sweeps.cluster import compare_clusters
from anonlib.sweeps.file import learn_target
from anonlib.sweeps.person_splits import number_persons, split_persons
from anonlib.sweeps.point_release import PointRelease, release_point
from anonlib.sweeps.settings import Learn, Point
from anonlib.table.encoding import to_float
from anonlib.table.schema import Role, Scale, Schema, may_be_continuous


@dataclass(frozen=True)
class Result:
    """The result of a point.

    Attributes:
        n_rows: Released rows.
        n_tried: Rows that were to be released.
        n_table: Rows of the table that they are of.
        n_cells: Cells.
        least_persons: Persons of the smallest class.
        figures: By name: a loss or a score; None if it is not defined. None after an error.
        sizes: The number of classes, by their size in rows. Empty with a unit, where classes
            don't tell how likely a person is found.
        seconds: The duration of the point.
        error: The type and the text of an error, without raw values.
    """

    n_rows: int = 0
    n_tried: int = 0
    n_table: int = 0
    n_cells: int = 0
    least_persons: int = 0
    figures: dict[str, float | None] | None = None
    sizes: dict[int, int] = field(default_factory=dict)
    seconds: float = 0.0
    error: str | None = None


def try_point(
    point: Point, table: pa.Table, schema: Schema, version: Schema | None = None
) -> Result:
    """Runs a point on its case's table. The result has any error.

    Args:
        point: The point.
        table: The case's rows, in a fixed order.
        schema: Its columns.
        version: The columns as released by the point's `version`; None without one.
    """
    from threadpoolctl import threadpool_limits

    start = perf_counter()
    try:
        with threadpool_limits(1):
            release, scores = _PointWork(
                point, _sample(point, table, schema), schema, version
            ).run()
    except AnonlibError as error:
        text = f"{type(error).__name__}: {error}"
        return Result(error=text, seconds=perf_counter() - start)
    except Exception as error:  # its text may hold raw values
        return Result(error=f"failed with {type(error).__name__}", seconds=perf_counter() - start)
    return Result(
        n_rows=len(release.rows),
        n_tried=release.n_tried,
        n_table=table.num_rows,
        n_cells=release.n_cells,
        least_persons=release.least_persons,
        figures={**release.losses, **scores},
        sizes={} if schema.unit else release.sizes,
        seconds=perf_counter() - start,
    )


def _sample(point: Point, table: pa.Table, schema: Schema) -> pa.Table:
    sample = point.settings.sample
    if sample is None:
        return table
    by = None if sample.by is None else schema[sample.by].id
    rows, _ = split_persons(table, schema.unit, sample.share, point.seed, "sample", by)
    return table.take(pa.array(rows))


@dataclass(frozen=True)
class _PointWork:
    """A point with its data.

    Attributes:
        point: The point.
        table: The rows, sampled if the point has a sample.
        schema: The columns.
        version: The columns as released by the point's `version`; None without one.
    """

    point: Point
    table: pa.Table
    schema: Schema
    version: Schema | None

    def run(self) -> tuple[PointRelease, dict[str, float | None]]:
        """The release of the point, and its scores and comparisons by name.

        With `split: before` only the training rows are released, else all rows.
        """
        learn = self.point.settings.learn
        if learn is None:
            release = self._anonymize(self.table)
            return release, self._compare(release, self.table)
        target = self._target(learn)
        columns = list_predictors(self.schema, [target.column.id], learn.among)
        fit_features = partial(fit, columns, encoding=learn.encoding)
        test, train = self._split(learn, self.table, learn.holdout, "test")
        scoring = _Scoring(learn, target, self.point.seed, fit_features)
        raw, test_rows = self.table.take(pa.array(train)), self.table.take(pa.array(test))
        if learn.split == "after":
            release = self._anonymize(self.table)
            testing = _Release(release, fit_features(raw))
            scores = scoring.after(
                self._version(target, raw) or testing, testing, raw, test_rows, train, test
            )
            return release, {**self._compare(release, self.table), **scores}
        release = self._anonymize(raw)
        scores = {**scoring.before(release, raw, test_rows), **self._validate(scoring, raw)}
        return release, {**self._compare(release, raw), **scores}

    def _version(self, target: LearnTarget, raw: pa.Table) -> "_Release | None":
        """The release to learn from; None if it is the point's own.

        Args:
            target: The target.
            raw: The training rows of the source, to which features are fitted.
        """
        learn, config, schema = self.point.settings.learn, self.point.version, self.version
        if learn is None or learn.version is None or config is None or schema is None:
            return None
        columns = list_predictors(schema, [target.column.id], learn.among)
        release = release_point(self.table, schema, config, self._controller(self.table))
        return _Release(release, fit(columns, raw, encoding=learn.version.encoding))

    def _validate(self, scoring: "_Scoring", raw: pa.Table) -> dict[str, float | None]:
        """The mean scores of cross-validation within the training rows `raw`. For each fold, a
        model learns from a release of the other rows and is tested on the fold."""
        learn, left = scoring.learn, np.arange(raw.num_rows)
        scores: list[dict[str, float | None]] = []
        for fold in range(learn.folds):
            rest = raw.take(pa.array(left))
            part, _ = self._split(learn, rest, 1 / (learn.folds - fold), f"fold {fold}")
            test = left[part]
            left = np.setdiff1d(left, test)
            train = np.setdiff1d(np.arange(raw.num_rows), test)
            train_rows, test_rows = raw.take(pa.array(train)), raw.take(pa.array(test))
            scores.append(scoring.of_release(self._anonymize(train_rows), train_rows, test_rows))
        return _means(scores)

    def _split(self, learn: Learn, table: pa.Table, share: float, what: str) -> tuple[Ints, Ints]:
        by = None if learn.by is None else self.schema[learn.by].id
        return split_persons(table, self.schema.unit, share, self.point.seed, what, by)

    def _target(self, learn: Learn) -> LearnTarget:
        name = learn_target(self.point.settings, self.point.config.attributes) or ""
        scale = self.point.config.attributes[name].scale
        target = read_target(self.schema[name], scale, self.table)
        if not learn.model.suits(target.n_classes):
            kind = f"{target.n_classes} classes" if target.n_classes else "numbers"
            raise InputError(f"learn.model: {learn.model.type} doesn't predict {kind}")
        return target

    def _anonymize(self, table: pa.Table) -> PointRelease:
        return release_point(table, self.schema, self.point.config, self._controller(table))

    def _controller(self, table: pa.Table) -> Ints | None:
        """int64[n]. The controller of each row, at random by person; None for one controller."""
        count = self.point.settings.controllers
        if count == 1:
            return None
        person = number_persons(table, self.schema.unit)
        random = np.random.default_rng([self.point.seed, count])
        controller: Ints = random.permutation(int(person.max(initial=-1)) + 1)[person] % count
        return controller

    def _compare(self, release: PointRelease, table: pa.Table) -> dict[str, float | None]:
        """The figures that need no model. `table` is the table that was released."""
        figures, cluster = self._moments(release, table), self.point.settings.cluster
        if cluster is not None:
            targets = [column.id for column in self.schema.of(Role.TARGET)]
            columns = list_predictors(self.schema, targets, cluster.among)
            figures |= compare_clusters(release, table, columns, cluster, self.point.seed)
        return figures

    def _moments(self, release: PointRelease, table: pa.Table) -> dict[str, float | None]:
        """The largest changes among continuous columns that are released as numbers.

        Returns:
            `mean_error`: the change of the mean, in standard deviations of the source.
            `variance_error`: the relative change of the variance. Both are None without such
            columns.
        """
        mean_errors, variance_errors = [], []
        for column in self.schema.quasi_identifiers:
            if column.scale is not Scale.CONTINUOUS or not may_be_continuous(column.released_type):
                continue
            before = _numbers(table.column(column.id).take(pa.array(release.rows)))
            after = _numbers(release.released.column(column.id))
            if len(before) and len(after) and before.min() < before.max():
                mean_errors.append(abs(float(after.mean() - before.mean())) / float(before.std()))
                variance_errors.append(abs(float(after.var() / before.var()) - 1.0))
        return {
            "mean_error": max(mean_errors, default=None),
            "variance_error": max(variance_errors, default=None),
        }


@dataclass(frozen=True)
class _Release:
    """A release and its features.

    Attributes:
        table: The release.
        features: The features of its rows.
    """

    table: PointRelease
    features: Features

    def examples(self, rows: Ints, target: LearnTarget) -> Examples:
        """The examples of some rows, without suppressed rows. `rows`: places in the table."""
        chosen = self.table.released.take(pa.array(np.flatnonzero(np.isin(self.table.rows, rows))))
        return take_examples(chosen, self.features, target, released=True)


@dataclass(frozen=True)
class _Scoring:
    """Scores of models that learn from a release and from its source.

    Attributes:
        learn: The settings.
        target: The target of the models.
        seed: The seed of the point.
        fit_features: Fits features to rows.
    """

    learn: Learn
    target: LearnTarget
    seed: int
    fit_features: Callable[[pa.Table], Features]

    def before(
        self, release: PointRelease, raw: pa.Table, test_rows: pa.Table
    ) -> dict[str, float | None]:
        """The scores with `split: before`.

        Args:
            release: The release of the training rows.
            raw: The training rows of the source.
            test_rows: The test rows of the source.
        """
        scores = self.of_release(release, raw, test_rows)
        return {**scores, **self._of_raw(*self._examples(self.fit_features(raw), raw, test_rows))}

    def of_release(
        self, release: PointRelease, raw: pa.Table, test_rows: pa.Table
    ) -> dict[str, float | None]:
        features = self.fit_features(raw)
        train = take_examples(release.released, features, self.target, released=True)
        if self.learn.train == "raw":
            train = take_examples(raw, features, self.target, released=False)
        return self._scores(train, take_examples(test_rows, features, self.target, released=False))

    def after(
        self,
        training: _Release,
        testing: _Release,
        raw: pa.Table,
        test_rows: pa.Table,
        train: Ints,
        test: Ints,
    ) -> dict[str, float | None]:
        """The scores with `split: after`.

        Args:
            training: The release to learn from, of all rows.
            testing: The release to test on, of all rows.
            raw: The training rows of the source.
            test_rows: The test rows of the source.
            train: int64[number of training rows]. Their places in the table.
            test: int64[number of test rows]. Their places in the table.

        Raises:
            InputError: The releases have different features.
        """
        if training.features.names != testing.features.names:
            raise InputError("learn.version.set: its columns have other features than the point's")
        plain = train_examples, test_examples = self._examples(testing.features, raw, test_rows)
        if self.learn.train == "released":
            train_examples = training.examples(train, self.target)
        if self.learn.test == "released":
            test_examples = testing.examples(test, self.target)
        return {**self._scores(train_examples, test_examples), **self._of_raw(*plain)}

    def _examples(
        self, features: Features, raw: pa.Table, test_rows: pa.Table
    ) -> tuple[Examples, Examples]:
        """The examples of the training rows and of the test rows in the source."""
        train, test = (
            take_examples(rows, features, self.target, released=False) for rows in (raw, test_rows)
        )
        return train, test

    def _of_raw(self, train: Examples, test: Examples) -> dict[str, float | None]:
        """The scores of the same kind of model that learns from source rows, and of guesses without
        a model."""
        known = find_baseline(train, test, n_classes=self.target.n_classes)
        scores = {f"baseline_{k}": v for k, v in _name_scores(known).items()}
        return {**{f"raw_{k}": v for k, v in self._scores(train, test).items()}, **scores}

    def _scores(self, train: Examples, test: Examples) -> dict[str, float | None]:
        model = _Model(_digest(train), self.learn.model, self.target.n_classes, self.seed, train)
        return _name_scores(_learn(model)(test))


@dataclass(frozen=True)
class _Model:
    """A model to fit, as a key of the cache. `examples` is ignored when models are compared.

    Attributes:
        digest: SHA-256 of the examples.
        learner: The kind of model.
        n_classes: Classes of the target; 0 for numbers.
        seed: The seed of the model.
        examples: The examples to learn from.
    """

    digest: bytes
    learner: Learner
    n_classes: int
    seed: int
    examples: Examples = field(compare=False, repr=False)


# Cached, since points that differ only in k share the model of the raw rows.
@lru_cache(maxsize=8)
def _learn(model: _Model) -> Callable[[Examples], Scores]:
    return learn_model(model.learner, model.examples, n_classes=model.n_classes, seed=model.seed)


def _digest(examples: Examples) -> bytes:
    hashed = sha256(repr(examples.x.shape).encode())
    for part in (examples.x.data, examples.x.indices, examples.x.indptr, examples.y):
        hashed.update(part.tobytes())
    return hashed.digest()


def _name_scores(scores: Scores) -> dict[str, float | None]:
    return {name: value for name, value in scores._asdict().items() if value is not None}


def _means(folds: list[dict[str, float | None]]) -> dict[str, float | None]:
    """By `cv_` name: the mean of a score over folds; None if a fold lacks the score."""
    names = dict.fromkeys(name for each in folds for name in each)
    values = {name: [each.get(name) for each in folds] for name in names}
    return {
        f"cv_{name}": None if None in each else float(np.mean([v for v in each if v is not None]))
        for name, each in values.items()
    }


def _numbers(values: Any) -> Floats:
    numbers = to_float(values.combine_chunks())
    return numbers[~np.isnan(numbers)]

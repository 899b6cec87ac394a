"""What models learn from and are tested on: parts of a source and of its release."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame

from anonlib.evaluation import distributed_learning as distributed
from anonlib.evaluation.case import Case, held
from anonlib.measure import examples as in_memory
from anonlib.measure.examples import Target
from anonlib.measure.features import Features
from anonlib.measure.learners import Learner
from anonlib.measure.scores import Scores


@dataclass(frozen=True)
class Part:
    """Rows, original or released, with the columns that are needed by id. n: how many there are;
    sample: all of them, or about as many as wanted, in an order of their own."""

    rows: DataFrame
    released: bool
    n: int
    sample: pa.Table

    @classmethod
    def of(cls, rows: DataFrame, ids: Sequence[str], wanted: int, seed: int, **how: bool) -> "Part":
        """The part of these rows. Cost: a count and a sample of them."""
        rows = rows.select(*dict.fromkeys(ids))
        n = rows.count()
        return cls(rows, n=n, sample=distributed.sample(rows, n, wanted, seed), **how)


class Parts(NamedTuple):
    """train: released rows to learn from; raw: the original rows of the same persons; test: rows of
    the other persons, original ones if the release was made without them, else released ones;
    raw_test: their original rows."""

    train: Part
    raw: Part
    test: Part
    raw_test: Part

    @property
    def n_most(self) -> int:
        """The rows of the largest part."""
        return max(part.n for part in self)


def parts_of(
    case: Case, share: float, ids: Sequence[str], wanted: int, *, after: bool
) -> Parts | None:
    """The parts of a case with a share of the persons held out; None where there is no link left
    to split the release `after` it was made."""
    split = case.split(share, after=after)
    if split is None:
        return None
    how = ids, wanted, case.config.seed
    test = Part.of(split.test, *how, released=after)
    raw_test = test
    if after:
        out = held(case.schema, case.config.seed, share)
        raw_test = Part.of(case.source.where(out), *how, released=False)
    train = Part.of(split.train, *how, released=True)
    return Parts(train, Part.of(split.raw, *how, released=False), test, raw_test)


class Trial(NamedTuple):
    """What models are worth that learned from the release, and from the original rows."""

    released: Scores
    raw: Scores


def tried(
    parts: Parts,
    features: Features,
    target: Target,
    learners: Sequence[Learner],
    *,
    in_spark: bool,
    seed: int,
) -> tuple[Scores, list[Trial]]:
    """The baseline, and what comes of each kind of model: by Spark ML on all rows, or by
    scikit-learn on samples."""
    engine: Any = distributed if in_spark else in_memory
    how = {"n_classes": target.n_classes, "seed": seed}
    with ExitStack() as stack:

        def seen(part: Part) -> Any:
            if not in_spark:
                return in_memory.examples(part.sample, features, target, released=part.released)
            made = distributed.vectors(
                part.rows, features, target, released=part.released, n_rows=part.n, seed=seed
            )
            return stack.enter_context(made)

        train, raw, test = (seen(part) for part in parts[:3])
        raw_test = test if parts.raw_test is parts.test else seen(parts.raw_test)
        trials = [
            Trial(
                engine.fit_and_score(learner, train, test, **how),
                engine.fit_and_score(learner, raw, raw_test, **how),
            )
            for learner in learners
        ]
        return engine.baseline(raw, raw_test, n_classes=target.n_classes), trials

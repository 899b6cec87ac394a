"""Parts of a source and of its release: what models learn from and are tested on."""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from pyspark.sql import DataFrame

from anonlib.evaluation import distributed_learning as distributed
from anonlib.measure import examples as in_memory
from anonlib.measure.case import Comparison, Part, Parts
from anonlib.measure.examples import LearnTarget
from anonlib.measure.features import Features
from anonlib.measure.learners import Learner
from anonlib.measure.scores import Scores


def make_part(
    rows: DataFrame, ids: Sequence[str], wanted: int, seed: int, *, released: bool
) -> Part:
    """The part of these rows, with a sample of about `wanted`. Cost: a count and the sample."""
    rows = rows.select(*dict.fromkeys(ids))
    n = rows.count()
    sample = distributed.sample(rows, n, wanted, seed)
    return Part(rows, released=released, n=n, sample=sample)


def learn(
    parts: Parts,
    features: Features,
    target: LearnTarget,
    learners: Sequence[Learner],
    *,
    in_spark: bool,
    seed: int,
) -> tuple[Scores, list[Comparison]]:
    """The baseline's scores, and those of each kind of model: by Spark ML on all rows, or by
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
            Comparison(
                engine.fit_and_score(learner, train, test, **how),
                engine.fit_and_score(learner, raw, raw_test, **how),
            )
            for learner in learners
        ]
        return engine.baseline(raw, raw_test, n_classes=target.n_classes), trials

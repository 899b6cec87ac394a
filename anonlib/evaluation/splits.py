"""Parts of a source and of its release, to learn from and to test on."""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from pyspark.sql import DataFrame

from anonlib.evaluation import distributed_learning as distributed
from anonlib.measure import examples as in_memory
from anonlib.measure.case import Comparison, Part, Parts, score_learners
from anonlib.measure.examples import LearnTarget
from anonlib.measure.features import Features
from anonlib.measure.learners import Learner
from anonlib.measure.scores import Scores


def make_part(rows: DataFrame, ids: Sequence[str], size: int, seed: int, *, released: bool) -> Part:
    """A part of a case. Cost: a count and the sample.

    Args:
        rows: The rows.
        ids: The columns to keep.
        size: About the number of rows of the sample.
        seed: The seed of the sample.
        released: Whether they are released rows.
    """
    rows = rows.select(*dict.fromkeys(ids))
    n = rows.count()
    sample = distributed.sample(rows, n, size, seed)
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
    """Scores models that learn from the release and from original rows.

    Args:
        parts: The parts to learn from and to test on.
        features: The features.
        target: The target.
        learners: The kinds of models.
        in_spark: Whether Spark ML learns from all rows, else scikit-learn from samples.
        seed: The seed of the models.

    Returns:
        The scores without a model, and the scores of each kind of model.
    """
    engine: Any = distributed if in_spark else in_memory
    how = {"n_classes": target.n_classes, "seed": seed}
    with ExitStack() as stack:

        def view(part: Part) -> Any:
            if not in_spark:
                return in_memory.take_examples(
                    part.sample, features, target, released=part.released
                )
            made = distributed.make_vectors(
                part.rows, features, target, released=part.released, n_rows=part.n, seed=seed
            )
            return stack.enter_context(made)

        return score_learners(engine, parts, view, learners, **how)

"""How well models predict that learned from the release."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, WithJsonSchema, field_serializer, field_validator

from anonlib import registry
from anonlib.errors import ConfigError
from anonlib.measure import DeclaredColumn, Figure, Findings, Series
from anonlib.measure.examples import LearnTarget, read_target
from anonlib.measure.features import Features, list_predictors
from anonlib.measure.fidelity._models import ModelMeasure, round_figure
from anonlib.measure.learners import Learner
from anonlib.measure.scores import ERRORS, Scores
from anonlib.table.schema import Role, Scale

if TYPE_CHECKING:
    from anonlib.measure.case import Case, Comparison, Parts

#: A note says so if there are fewer test rows (FEW_ROWS), or fewer of a class (FEW_OF_CLASS).
FEW_ROWS, FEW_OF_CLASS = 200, 10
_SPEC = {"anyOf": [{"type": "string"}, {"type": "object", "required": ["type"]}]}
#: The meaning of each score.
_SCORES = {
    "accuracy": "share of test rows whose class is predicted right; 0 to 1, less is worse",
    "f1": "balance of false alarms and misses, of two classes for the last one, else the mean "
    "weighted by their rows; 0 to 1, less is worse",
    "f1_macro": "balance of false alarms and misses, each class counting the same; 0 to 1, less is "
    "worse",
    "auc": "how often a row of a class is held more likely to be of it than a row of another; 0 to "
    "1, 0.5 by chance, less is worse",
    "rmse": "typical error of predictions; in the units of the target, 0 is best, more is worse",
    "r2": "share of the target's variance that predictions explain; 1 is best, 0 as good as its "
    "mean, less is worse",
}
#: The scores of predicted classes, and of numbers.
_CLASSES = frozenset({"accuracy", "f1", "f1_macro", "auc"})
_NUMBERS = frozenset({"rmse", "r2"})
#: The meaning of each form of a score.
_FORMS = {
    "raw_{}": "the score of the same model learning from original rows; for comparison",
    "{}_loss": "how much worse the score of the release is than that of original rows; 0 is no "
    "loss, more is worse",
    "baseline_{}": "the score of always telling the most frequent class, or the mean; for "
    "comparison, a model that learned something does better",
}


class Learning(ModelMeasure):
    """How well models that learn from the release predict the target of other persons.

    `split` says how test rows are held out:

    - `before`: some persons are held out, and a release of the others is made for this measure
      only. Models learn from it and are tested on the original rows of the held-out persons.
    - `after`: the release is split, and its own rows are the test rows. If the anonymization looked
      at the target, test rows contain information on it, and scores are too good.

    Each score has further forms:

    - `raw_...`: the same model learns from original rows.
    - `..._loss`: how much worse the score of the release is than that of original rows. It is
      positive if the release is worse, for errors as well.
    - `baseline_...`: always predicts the most frequent class, or the mean.

    The target has classes or numbers by its `scale`, or by its type if it has no scale. Models that
    don't suit it are skipped. Spark ML fits tables of more than `sample_rows` rows. With
    `engine: sklearn`, and for models that Spark ML lacks, scikit-learn fits samples of them.
    Features are fitted on original training rows. Figures are rounded to 6 digits.
    Reference: LDA-MDAV, section 4.5 (before); TA_DA, section VI-B (after).
    """

    type: ClassVar[str] = "learning"
    usual: ClassVar[bool] = False
    names: ClassVar[Mapping[str, str]] = _SCORES | {
        form.format(score): meaning for form, meaning in _FORMS.items() for score in _SCORES
    }
    models: Annotated[tuple[Learner, ...], WithJsonSchema({"type": "array", "items": _SPEC})] = (
        Field(
            default=("logistic_regression", "linear_regression", "boosted_trees"),
            validate_default=True,
            min_length=1,
            description="the models, named by `type`",
        )
    )
    split: Literal["before", "after"] = Field(
        default="before", description="whether persons are held out before the release is made"
    )
    holdout: float = Field(default=0.3, gt=0, lt=1, description="the share of persons held out")
    columns: Literal["released", "quasi_identifiers"] = Field(
        default="released", description="what models learn from, besides targets and pseudonyms"
    )

    @property
    def held_out(self) -> float:
        # With `before`, a separate release is made, so rows of this one need no marks.
        return self.holdout if self.split == "after" else 0.0

    @field_validator("models", mode="before")
    @classmethod
    def _build(cls, value: Any) -> Any:
        if not isinstance(value, list | tuple):
            return value
        built = [each if isinstance(each, Learner) else _learner(each) for each in value]
        if twice := [each.type for i, each in enumerate(built) if each in built[:i]]:
            raise ValueError(f"{', '.join(twice)} is there twice; remove one")
        return tuple(built)

    @field_serializer("models")
    def _specs(self, models: tuple[Learner, ...]) -> list[dict[str, Any]]:
        # Pydantic would dump the models as the bare base class.
        return [registry.spec(model) for model in models]

    def list_subjects(self, figure: str, columns: Mapping[str, DeclaredColumn]) -> Sequence[str]:
        if figure.startswith("baseline_"):
            return []
        kind = _CLASSES | _NUMBERS if (known := _find_scores(columns)) is None else known
        score = figure.removeprefix("raw_").removesuffix("_loss")
        suited = [m for m in self.models if (m.classifies if score in _CLASSES else m.regresses)]
        return [label(model, self.models) for model in suited if score in kind]

    def explain_absence(self, figure: str, columns: Mapping[str, DeclaredColumn]) -> str:
        if not any(column.role is Role.TARGET for column in columns.values()):
            return "there is no column with the role target"
        if all(column.role is Role.TARGET for column in columns.values()):
            return "there is no column to learn from"
        known, score = _find_scores(columns), figure.removeprefix("raw_").removeprefix("baseline_")
        score = score.removesuffix("_loss")
        if known is not None and score not in known:
            kind = "classes" if known == _CLASSES else "numbers"
            return f"the target has {kind}, whose scores are {', '.join(sorted(known))}"
        kind = "classes" if score in _CLASSES else "numbers"
        suits = any(m.classifies if score in _CLASSES else m.regresses for m in self.models)
        return "" if suits else f"none of the models predicts {kind}"

    def measure(self, case: "Case") -> Findings:
        targets = case.schema.of(Role.TARGET)
        ids = [column.id for column in targets]
        columns = list_predictors(case.schema, ids, self.columns)
        if not targets or not columns:
            lacking = "column to learn from" if targets else "column with the role target"
            return self.nothing(f"the release has no {lacking}")
        ids += [column.id for column in columns]
        after = self.split == "after"
        parts = case.parts(self.holdout, ids, self.sample_rows, after=after)
        if parts is None:
            return self.nothing("published rows have no link to persons: take `split: before`")
        if min(part.n for part in parts) < max(case.k, 1):
            return self.nothing("fewer rows than k to learn from, or to test on")
        (column,) = targets
        scale = column.scale or case.target_scale
        target = read_target(column, scale, *(part.sample for part in parts))
        labelled = (int((~np.isnan(target.values(part.sample))).sum()) for part in parts)
        if min(labelled) < max(case.k, 1):
            return self.nothing("fewer rows than k have a target to learn from, or to test on")
        features = self.features(columns, parts.raw.sample)
        return self._of(case, parts, features, target)

    def _of(
        self, case: "Case", parts: "Parts", features: Features, target: LearnTarget
    ) -> Findings:
        """The findings for parts of the case, features and a target."""
        suited = [model for model in self.models if model.suits(target.n_classes)]
        if not suited:
            kind = "classes" if target.n_classes else "numbers"
            return self.nothing(f"none of the models predicts {kind}")
        figures: list[Figure] = []
        rows: list[tuple[str | float | None, ...]] = []
        name = "accuracy" if target.n_classes else "rmse"
        doubts = _list_doubts(case, parts, target)
        large = self.in_spark(case, parts.n_most)
        baselines = []
        for in_spark in (True, False):
            models = [model for model in suited if (large and model.in_spark) is in_spark]
            if not models:
                continue
            base, comparisons = case.learn(parts, features, target, models, in_spark=in_spark)
            baselines.append(base)
            for model, comparison in zip(models, comparisons, strict=True):
                of = label(model, self.models)
                sampled = not in_spark and parts.n_most > self.sample_rows
                said = [*doubts, f"of samples of {self.sample_rows:,} rows"] if sampled else doubts
                found = _figures(comparison, of, target.n_classes, "; ".join(said))
                figures += (replace(each, doubtful=bool(doubts)) for each in found)
                scores = (*comparison, base)
                rows.append((of, *(round_figure(getattr(each, name)) for each in scores)))
        figures += _baseline(baselines[0], target.n_classes)
        heads = ("model", "release", "raw", "baseline")
        return Findings(tuple(figures), (Series(name, target.column.name, heads, tuple(rows)),))


def _find_scores(columns: Mapping[str, DeclaredColumn]) -> frozenset[str] | None:
    """The scores that the target has by its scale; None if its type decides, or there is none."""
    scales = [column.scale for column in columns.values() if column.role is Role.TARGET]
    if not scales or scales[0] is None:
        return None
    return _NUMBERS if scales[0] is Scale.CONTINUOUS else _CLASSES


def label(model: Learner, among: Sequence[Learner]) -> str:
    """The name of a model in figures: its type. If there are several models of this type, also its
    parameters that differ from the defaults."""
    if sum(other.type == model.type for other in among) == 1:
        return model.type
    given = model.model_dump(exclude_defaults=True).items()
    return " ".join([model.type, *(f"{name}={value}" for name, value in given)])


def _list_doubts(case: "Case", parts: "Parts", target: LearnTarget) -> list[str]:
    """Why the figures prove little."""
    doubts = []
    if parts.test.released and case.looked_at_target:
        doubts.append("the anonymization looked at the target of the test rows: figures flatter")
    y = target.values(parts.raw_test.sample)
    y = y[~np.isnan(y)]
    if len(y) < FEW_ROWS:
        doubts.append(f"fewer than {FEW_ROWS} test rows")
    n_few = sum(int((y == c).sum()) < FEW_OF_CLASS for c in range(target.n_classes))
    if n_few:
        text = f"{n_few} of {target.n_classes} classes have fewer than {FEW_OF_CLASS} test rows"
        doubts.append(text)
    return doubts


def _figures(comparison: "Comparison", of: str, n_classes: int, note: str) -> Iterator[Figure]:
    for name in _list_defined(n_classes):
        ours, theirs = getattr(comparison.released, name), getattr(comparison.raw, name)
        loss = None if ours is None or theirs is None else theirs - ours
        if loss is not None and name in ERRORS:
            loss = -loss
        for form, value in (("{}", ours), ("raw_{}", theirs), ("{}_loss", loss)):
            yield _figure(form.format(name), value, of, note)


def _baseline(base: Scores, n_classes: int) -> Iterator[Figure]:
    for name in _list_defined(n_classes):
        yield _figure(f"baseline_{name}", getattr(base, name), "", "")


def _figure(name: str, value: float | None, of: str, note: str) -> Figure:
    undefined = "not defined on the test rows" if value is None else ""
    return Figure(name, round_figure(value), of, "; ".join(filter(None, [undefined, note])))


def _list_defined(n_classes: int) -> tuple[str, ...]:
    """The names of the scores for classes, or for numbers if n_classes is 0."""
    return tuple(name for name in _SCORES if name in (_CLASSES if n_classes else _NUMBERS))


def _learner(spec: Any) -> Learner:
    spec = {"type": spec} if isinstance(spec, str) else spec
    if not isinstance(spec, Mapping) or not isinstance(spec.get("type"), str):
        raise ValueError(f"name each model by `type`: {', '.join(registry.plugins('learner'))}")
    try:
        built: Learner = registry.build("learner", spec)
    except ConfigError as error:
        raise ValueError(error.line) from None
    return built

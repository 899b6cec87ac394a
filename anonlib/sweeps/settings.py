"""The fields of a sweep file, and the points of its grid."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import Field, field_validator

from anonlib.config.minimum_k import check_minimum_k
from anonlib.config.model import MAX_INT, Config, Section, SparkSection
from anonlib.errors import Problem
from anonlib.measure.features import NodeEncoding
from anonlib.measure.learners import Learner


class CaseSample(Section):
    """The sample of a case's rows that one point sees. The seed of the point draws it."""

    share: float = Field(gt=0.0, le=1.0, description="of the persons")
    by: str | None = Field(None, description="a column: the share of its every value")


class Version(Section):
    """Another release to learn from. The model is tested on the point's own release."""

    set: dict[str, Any] = Field(
        default_factory=dict,
        description="keys of the config, below partition, privacy.models, kernel or recode -> "
        "values that replace its own",
    )
    encoding: NodeEncoding = Field("fill_parent", description="of the released nodes")


class Learn(Section):
    """The model of a point, and the rows to learn from and to test on. The seed draws the test
    rows.

    Attributes:
        model: The kind of model.
        target: The column to learn; the config's target by default.
        split: before: only the other rows are anonymized, and test rows stay as in the source.
            after: all rows are anonymized.
        holdout: The share of persons to test on.
        by: A column to stratify by: each of its values has the same share of test rows.
        train: Learn from released rows, or from the same rows as in the source.
        test: With `split: after`: test on released rows, or on the same rows as in the source.
        version: With `split: after`: learn from another release of the table, and test on the
            point's.
        folds: Folds of cross-validation within the training rows; 0 for none. For each fold, the
            other rows are anonymized and learned from. `pick` can use its scores.
        among: The columns to learn from.
        encoding: How released nodes become features.
    """

    model: Learner
    target: str | None = Field(
        None, description="the column to learn, target or sensitive; the target if left out"
    )
    split: Literal["before", "after"] = "before"
    holdout: float = Field(0.3, gt=0.0, lt=1.0, description="share of the persons to test on")
    by: str | None = Field(None, description="a column: the share of its every value")
    train: Literal["released", "raw"] = "released"
    test: Literal["released", "raw"] = Field(
        "released", description="with `split: after`; else test rows are raw"
    )
    version: Version | None = Field(
        None, description="with `split: after`: how the rows to learn from are released"
    )
    folds: int = Field(0, ge=0, le=100, description="of cross-validation; 0 for none")
    among: Literal["released", "quasi_identifiers"] = Field(
        "released", description="the columns to learn from"
    )
    encoding: NodeEncoding = Field(
        "fill_parent", description="of released nodes; shares of nodes are proportional"
    )

    @field_validator("folds")
    @classmethod
    def _not_one(cls, folds: int) -> int:
        if folds == 1:
            raise ValueError("0, or at least 2")
        return folds


class Cluster(Section):
    """A clustering of the released rows, to compare with a clustering of their source rows."""

    clusters: int = Field(5, ge=2, le=10_000, description="of k-means")
    starts: int = Field(10, ge=1, le=1000, description="random starts, of which the best is taken")
    among: Literal["released", "quasi_identifiers"] = Field(
        "released", description="the columns to cluster by; never the target"
    )
    nominal: Literal["indicators", "codes"] = Field(
        "indicators",
        description="what k-means sees of categories: an indicator of each, or their numbers in "
        "the order of their names, standardized",
    )


class PointSettings(Section):
    """The settings of a point besides its config. `set` and `grid` may contain their keys, too."""

    learn: Learn | None = None
    cluster: Cluster | None = None
    sample: CaseSample | None = None
    controllers: int = Field(
        1,
        ge=1,
        le=1000,
        description="number of data controllers; the seed deals the rows out to them",
    )


class SweepCase(Section):
    """A table and how it is anonymized. `set` and `grid` have dotted keys of its config."""

    config: str | dict[str, Any] = Field(description="a config's file, or the config itself")
    set: dict[str, Any] = Field(default_factory=dict, description="values that replace its own")
    derive: dict[str, str] = Field(
        default_factory=dict,
        description="SQL expressions of columns to add or replace in what is read",
    )
    grid: Any = Field(
        None,
        description="keys that every grid of the sweep has here, with other values if need be; a "
        "list: grids instead of the sweep's",
    )


class Pick(Section):
    """The parameters to pick for each seed: once by the score of cross-validation and, as an upper
    bound, once by the test score."""

    parameters: tuple[str, ...] = Field(min_length=1, description="keys of the grid")
    by: Literal["accuracy", "f1", "f1_macro", "auc", "rmse", "r2"] = Field(
        "accuracy", description="the score; the largest is picked, of rmse the smallest"
    )


class SweepFile(Section):
    """A sweep file. Made by `load_sweep`."""

    cases: dict[str, SweepCase] = Field(min_length=1)
    grid: Any = Field(
        default_factory=dict,
        description="dotted keys of the configs -> lists of values; or a list of such grids",
    )
    seeds: int = Field(1, ge=1, le=10_000, description="every point is tried with seeds 0, 1, ...")
    learn: dict[str, Any] | None = None
    cluster: dict[str, Any] | None = None
    sample: dict[str, Any] | None = None
    controllers: int = Field(1, ge=1, le=1000)
    pick: Pick | None = None
    figures: tuple[str, ...] = Field((), description="what the summary shows; all if left out")
    max_rows: int = Field(100_000, ge=1, le=MAX_INT, description="most rows of a case's table")
    out: str = Field(min_length=1, description="folder of the results, which are private")
    spark: SparkSection = SparkSection()


@dataclass(frozen=True)
class Point:
    """One point of a grid.

    Attributes:
        case: The case.
        parameters: Keys of the grid and their values, without the seed.
        config: The config, with the seed.
        settings: The settings besides the config.
        text: The seed, then JSON of all that the point depends on except rows and code.
        version: The config of the release to learn from; None if it is `config`.
    """

    case: str
    parameters: Mapping[str, Any]
    config: Config
    settings: PointSettings
    text: str
    version: Config | None = None

    @property
    def seed(self) -> int:
        return self.config.seed


@dataclass(frozen=True)
class Sweep:
    """A sweep.

    Attributes:
        file: The sweep file.
        points: Its points in the order in which they are tried: seed by seed.
        bases: By case: its config with `set`, as a tree, with the sections that sweeps ignore.
    """

    file: SweepFile
    points: tuple[Point, ...]
    bases: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)


def find_sweep_problems(sweep: Sweep, *properties: str | None) -> Iterator[Problem]:
    """The problems that `check_minimum_k` finds in all points and their versions.

    Args:
        sweep: The sweep.
        properties: As in `check_minimum_k`.
    """
    for point in sweep.points:
        for config, part in ((point.config, ""), (point.version, "learn.version.set: ")):
            for problem in check_minimum_k(config.privacy.models, *properties) if config else ():
                of_point = problem.where.startswith("privacy.")
                yield (
                    Problem(f"cases.{point.case}: {part}{problem.where}", problem.text)
                    if of_point
                    else problem
                )

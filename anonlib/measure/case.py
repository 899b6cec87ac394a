"""The case: a release beside its source, as measures see it. It does their work in Spark, or in
memory."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import pyarrow as pa

from anonlib.arrays import Floats, Ints, average_ratio
from anonlib.measure.examples import LearnTarget
from anonlib.measure.features import Features
from anonlib.measure.learners import Learner
from anonlib.measure.nearest import Attack, Links
from anonlib.measure.regions import RegionCounts, Regions
from anonlib.measure.scores import Scores
from anonlib.measure.states import Count, Merge, States, read_costs
from anonlib.privacy import PrivacyModel
from anonlib.registry import Plugin
from anonlib.table.encoding import Encoding
from anonlib.table.schema import Column, Scale, Schema

if TYPE_CHECKING:
    from anonlib.measure.attack_tables import AttackTables


@dataclass(frozen=True)
class Sizes:
    """The sizes of classes.

    Attributes:
        size: int64[s], ascending. The sizes that occur.
        n_classes: int64[s]. The number of classes of each size.
        n_persons: int64[s]. The persons whose smallest class has each size: a person with rows in
            several classes is most easily found in the smallest one, and counts once.
        persons: Whether sizes count persons. Otherwise they count rows: a person may have several
            rows, but it is unknown which rows belong together.
    """

    size: Ints
    n_classes: Ints
    n_persons: Ints
    persons: bool

    @classmethod
    def of_rows(cls, size: Ints, n_classes: Ints, *, persons: bool) -> "Sizes":
        """The sizes of classes that count rows, each of which is in one class. persons: As in
        `Sizes`."""
        return cls(size, n_classes, size * n_classes, persons)

    @property
    def n(self) -> int:
        """The number of persons."""
        return int(self.n_persons.sum())

    @property
    def overlap(self) -> bool:
        """Whether a person has rows in several classes."""
        return self.n < int(self.size @ self.n_classes)

    @property
    def mean_chance(self) -> float:
        """The mean chance 1/f of persons to be found, in a class of f."""
        return average_ratio(self.n_persons, self.size, self.n)

    def share_above(self, chance: float) -> float:
        """The share of persons whose chance 1/f is above another one."""
        return int(self.n_persons @ (1.0 / self.size > chance)) / self.n

    @property
    def smallest(self) -> int:
        """The size of the smallest class; 0 without classes."""
        return int(self.size[0]) if len(self.size) else 0


@dataclass(frozen=True)
class Part:
    """Rows to fit a model to or to test it on.

    Attributes:
        rows: The rows, with the requested columns, named by id: a DataFrame in Spark; in memory an
            Arrow table.
        released: Whether they are released rows, else original ones.
        n: The number of rows.
        sample: All rows, or a sample of about the requested size, in a fixed order.
    """

    rows: Any
    released: bool
    n: int
    sample: pa.Table


class Parts(NamedTuple):
    """The parts of a case with some persons held out.

    Attributes:
        train: Released rows to learn from.
        raw: The original rows of the same persons.
        test: Rows of the other persons: original rows if the release was made without them, else
            released ones.
        raw_test: The original rows of the persons in `test`.
    """

    train: Part
    raw: Part
    test: Part
    raw_test: Part

    @property
    def n_most(self) -> int:
        """The number of rows of the largest part."""
        return max(part.n for part in self)


class Comparison(NamedTuple):
    """The scores of one kind of model.

    Attributes:
        released: The scores after learning from released rows.
        raw: The scores after learning from original rows.
    """

    released: Scores
    raw: Scores


def score_learners(
    engine: Any,
    parts: Parts,
    view: Callable[[Part], Any],
    learners: Sequence[Learner],
    *,
    n_classes: int,
    seed: int,
) -> tuple[Scores, list[Comparison]]:
    """Scores models that learn from the release and from original rows.

    Args:
        engine: What fits models: `anonlib.measure.examples`, or the module of another engine with
            its functions.
        parts: The parts to learn from and to test on.
        view: Makes examples of a part, as the engine takes them.
        learners: The kinds of models.
        n_classes: Classes of the target; 0 for numbers.
        seed: The seed of the models.

    Returns:
        The scores without a model, and the scores of each kind of model.
    """
    train, raw, test = (view(part) for part in parts[:3])
    raw_test = test if parts.raw_test is parts.test else view(parts.raw_test)
    how = {"n_classes": n_classes, "seed": seed}
    comparisons = [
        Comparison(
            engine.fit_and_score(learner, train, test, **how),
            engine.fit_and_score(learner, raw, raw_test, **how),
        )
        for learner in learners
    ]
    return engine.find_baseline(raw, raw_test, n_classes=n_classes), comparisons


class CellSums(NamedTuple):
    """What is counted under a name over the cells of a release, as a `CellMeasure` counts them.

    Attributes:
        released: float64[c]. Over the cells that are released.
        whole: float64[c]. Over all cells, those that were suppressed afterwards included.
    """

    released: Floats
    whole: Floats


def split_by_cost(state: Floats, least: int | None) -> CellSums:
    """The sums of a state. least: The least cost of suppressed cells; None if none are."""
    rows = read_costs(state)
    kept = rows if least is None else rows[rows[:, 0] < least]
    return CellSums(kept[:, 1:].sum(axis=0), rows[:, 1:].sum(axis=0))


class OtherRelease(NamedTuple):
    """Another release, with columns named by the ids of this one's.

    Attributes:
        n: Its rows.
        fold: Computes states over all of them, as `Case.fold`.
    """

    n: int
    fold: Callable[[Sequence[str], Count, Merge], States]


class CertaintyBin(NamedTuple):
    """Classes in which the most frequent sensitive value has about the same share.

    Attributes:
        bin: The number of the bin; 0 for the lowest shares.
        classes: Classes in the bin.
        rows: Rows of these classes.
        present: Rows with a value that is not missing.
        most: Rows that have the most frequent value of their class.
        certainty: The largest share of one value in a class.
        certain: Rows with a value in classes whose share reaches the threshold.
        smallest: Rows of the smallest class.
    """

    bin: int
    classes: int
    rows: int
    present: int
    most: int
    certainty: float
    certain: int
    smallest: int


class PersonRows(NamedTuple):
    """How rows of the source belong to persons.

    Attributes:
        most: The largest number of rows of one person; 1 or more.
        of_nobody: Rows without a person.
    """

    most: int
    of_nobody: int

    def count_sure(self, k: int) -> int:
        """A number of rows that surely belong to k persons, whichever rows they are."""
        return k * self.most + self.of_nobody

    def count_fewest(self, n_rows: int) -> int:
        """The fewest persons to whom so many rows can belong."""
        return ceil(max(n_rows - self.of_nobody, 0) / self.most)


@dataclass(frozen=True, kw_only=True)
class Case(ABC):
    """One release and its source. Columns are named by id.

    Attributes:
        schema: The columns.
        source: The rows to release, with the schema's types: a DataFrame, or an Arrow table. In
            quasi-identifiers, NaN is null.
        released: The released rows, as the source.
        n_source: Rows of the source.
        n_released: Rows of the release.
        k: The persons that every class must have; 0 without k-anonymity.
        models: The privacy models, which name columns by id.
        seed: The config's seed.
        encodings: The encoding of each quasi-identifier, by id, fitted on the whole source.
        measures: All measures of the config, which may share passes over the tables.
        target_scale: The target's scale, if the config gives it one.
        looked_at_target: Whether the kernel or a partitioner saw the target.
        partitioned: Whether the table's files are laid out by columns.
        shadow: Makes a release without held-out persons. Its argument is their share.
        link_key: The key of the links between released and original rows.
        counts: By type of measure: what workers counted in the cells; empty for a published
            release.
        fits: By type of measure: what it fitted to the whole table.
        least_cost: The least cost of suppressed cells; None if no cell is.
        cache: Results that measures share, by keys that they choose.
        has_spark: Whether Spark ML is there. In memory it is not.
    """

    schema: Schema
    source: Any
    released: Any
    n_source: int
    n_released: int
    k: int
    models: tuple[PrivacyModel, ...]
    seed: int
    encodings: Mapping[str, Encoding]
    measures: tuple[Plugin, ...]
    target_scale: Scale | None
    looked_at_target: bool
    partitioned: bool = False
    shadow: Callable[[float], Any] = field(repr=False)
    link_key: bytes = field(default=b"", repr=False)
    counts: Mapping[str, States] = field(default_factory=dict, repr=False)
    fits: Mapping[str, Any] = field(default_factory=dict, repr=False)
    least_cost: int | None = None
    cache: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)
    has_spark: ClassVar[bool]

    @property
    @abstractmethod
    def sizes(self) -> Sizes:
        """The classes of the release. Cost: one aggregate, and one by person if these can be told
        apart, shared by all measures."""

    @abstractmethod
    def source_sizes(self) -> Sizes:
        """The classes of the source. Cost: one aggregate; with a unit, another one by person."""

    @property
    @abstractmethod
    def pairs(self) -> tuple[pa.Table, pa.Table] | None:
        """At most 10,000 original rows, and the released row of each, in the same order. Suppressed
        rows are left out. None for a published release, whose rows have no links."""

    def cell_sums(self, type: str) -> Mapping[str, CellSums] | None:
        """What workers counted in the cells for a measure of a type, by name; None after the
        commit."""
        states = self.counts.get(type)
        if states is None:
            return None
        return {name: split_by_cost(state, self.least_cost) for name, state in states.items()}

    def cell_fit(self, type: str) -> Any:
        """What such a measure fitted to the whole table; None after the commit."""
        return self.fits.get(type)

    @abstractmethod
    def person_rows(self) -> PersonRows:
        """How the rows of the source belong to persons. Cost: one aggregate with a unit."""

    @abstractmethod
    def count_value_persons(self, id: str) -> tuple[pa.Array, Ints]:
        """The distinct values of a source column, and int64[values], the persons of each. Rows
        without a person count for nobody. Cost: one aggregate."""

    @abstractmethod
    def summarize(self, columns: Sequence[Column]) -> dict[str, tuple[float, ...]]:
        """Figures of source columns, by id. Cost: one aggregate.

        For numbers, dates and timestamps: least, greatest, mean and deviation of the finite values.
        For others: the approximate number of distinct values.
        """

    @abstractmethod
    def distinct_values(self, ids: Sequence[str]) -> dict[str, pa.Array]:
        """The distinct values of source columns, without missing ones. Cost: one aggregate."""

    @abstractmethod
    def tuples(
        self, ids: Sequence[str], most: int, *, released: bool
    ) -> tuple[pa.Table, Ints] | None:
        """The distinct tuples of columns, of the release or of the source. Cost: one aggregate.

        Returns:
            The tuples, and int64[tuples], the rows of each. None if there are more than `most`.
        """

    @abstractmethod
    def count_alike(
        self, combinations: Sequence[tuple[int, ...]], size: int, *, released: bool
    ) -> Ints:
        """How many rows agree with each row of a sample in each combination of quasi-identifiers.
        In a source with a unit, the row and those of other persons: rows without a person count as
        those of one. Cost: one aggregate for the sample, and one pass over the rows.

        Args:
            combinations: c combinations of places of quasi-identifiers.
            size: About the number of rows of the sample.
            released: Whether to look at the release, else at the source.

        Returns:
            int64[c, sampled rows].
        """

    @abstractmethod
    def count_population(
        self, source: Mapping[str, Any], columns: Mapping[str, str], regions: Regions
    ) -> RegionCounts:
        """The persons of another table in each region. Cost: one aggregate of that table, and
        tasks that compare its distinct rows with the regions.

        Args:
            source: The table, as a config's `source`.
            columns: By id of a quasi-identifier: the column of the table.
            regions: t regions of these quasi-identifiers.

        Raises:
            ConfigError, InputError: The table lacks a column, or its values have another type.
        """

    @abstractmethod
    def open_release(self, source: Mapping[str, Any], columns: Sequence[Column]) -> OtherRelease:
        """Another release. Cost: a count of its rows, and of values that can't be read.

        Args:
            source: Its table, as a config's `source`.
            columns: The columns to read, which it has by the same names and types as this release.

        Raises:
            ConfigError, InputError: The table lacks a column, or its values have another type.
        """

    @abstractmethod
    def link(self, attack: Attack, n: int) -> Links:
        """The links of the first n rows of an attack. Cost: O(n tuples), as Spark tasks."""

    @abstractmethod
    def places(self, most: int) -> pa.Table | None:
        """The places of at most `most` distinct released rows: those with the smallest hashes.

        Returns:
            `file`, `start` and `offset` of the first of equal rows; and, for each column, a number
            or a text to rank by. None before rows are published, since they have no final order
            yet.
        """

    @abstractmethod
    def certainty(
        self, name: str, protected: Sequence[str], threshold: float, n_bins: int
    ) -> tuple[list[CertaintyBin], int, int]:
        """How certain a guess of a sensitive column is within classes. Cost: two aggregates of the
        release.

        Args:
            name: The column, by its name.
            protected: The names of all protected columns.
            threshold: The share of one value from which a class is certain.
            n_bins: The number of bins of certainty.

        Returns:
            The bins.
            The rows with a value.
            The rows with the most frequent value.
        """

    @abstractmethod
    def lone_rows(self, protected: Sequence[str]) -> dict[str, int]:
        """The number of rows that are known to be the only ones of their class with their value,
        for each column released as shares, by name. Cost: one aggregate of the release, if there is
        such a column."""

    @abstractmethod
    def fold(self, ids: Sequence[str], count: Count, merge: Merge, *, released: bool) -> States:
        """Computes states over all rows, merged by name.

        Args:
            ids: The columns that `count` reads.
            count: Computes states.
            merge: Merges them.
            released: Whether to read the release, else the source.
        """

    @abstractmethod
    def part(self, ids: Sequence[str], size: int, *, released: bool) -> Part:
        """All rows of the release or of the source, with a sample of about `size` rows."""

    @abstractmethod
    def parts(self, share: float, ids: Sequence[str], size: int, *, after: bool) -> Parts | None:
        """The case with a share of the persons held out.

        Args:
            share: The share of persons held out.
            ids: The columns to keep.
            size: The approximate number of rows of each sample.
            after: Whether to split the release. Otherwise, another release is made without these
                persons.

        Returns:
            The parts. None if a published release is to be split: its rows have no link to persons.
        """

    def attack_tables(self, holdout: float, attempts: int) -> "AttackTables":
        """A release made without some persons, to attack. Cost: that release, once for each share
        held out.

        Args:
            holdout: The share of persons held out.
            attempts: The most persons of each kind to attack.
        """
        key = "attack_tables", holdout, attempts
        if key not in self.cache:
            self.cache[key] = self._make_attack_tables(holdout, attempts)
        found: AttackTables = self.cache[key]
        return found

    @abstractmethod
    def _make_attack_tables(self, holdout: float, attempts: int) -> "AttackTables":
        """The same, made anew."""

    @abstractmethod
    def learn(
        self,
        parts: Parts,
        features: Features,
        target: LearnTarget,
        learners: Sequence[Learner],
        *,
        in_spark: bool,
    ) -> tuple[Scores, list[Comparison]]:
        """Scores models that learn from the release and from original rows.

        Args:
            parts: The parts to learn from and to test on.
            features: The features.
            target: The target.
            learners: The kinds of models.
            in_spark: Whether Spark ML learns from all rows, else scikit-learn from samples.

        Returns:
            The scores without a model.
            The scores of each kind of model.
        """

    @abstractmethod
    def cluster(
        self,
        raw: Part,
        released: Part,
        features: Features,
        n_clusters: int,
        max_iter: int,
        *,
        in_spark: bool,
    ) -> list[Ints]:
        """Clusters the original rows by centres found in different rows, and compares the results.

        Args:
            raw: Original rows.
            released: Released rows.
            features: The features.
            n_clusters: The number of clusters.
            max_iter: Most steps of k-means.
            in_spark: Whether Spark ML finds centres in all rows, else scikit-learn in samples.

        Returns:
            int64[a, b]. The number of original rows that are in cluster a by centres of the
            original rows, and in cluster b by centres of the released rows.
            int64[a, b]. The same, with cluster b by centres of the original rows from another
            start.
        """

"""What a measure is handed: a release beside its source. Whatever needs Spark, the case does."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import pyarrow as pa

from anonlib.arrays import Floats, Ints
from anonlib.measure.examples import LearnTarget
from anonlib.measure.features import Features
from anonlib.measure.learners import Learner
from anonlib.measure.nearest import Attack, Links
from anonlib.measure.scores import Scores
from anonlib.registry import Plugin
from anonlib.table.encoding import Encoding
from anonlib.table.schema import Column, Scale, Schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Mergeable states by name: float64 arrays, which travel between Spark's tasks.
States: TypeAlias = Mapping[str, Floats]


@dataclass(frozen=True)
class Sizes:
    """How large classes are.

    Attributes:
        size: int64[s], ascending. The sizes that classes have.
        n_classes: int64[s]. How many classes have each size.
        persons: Whether sizes count persons. Else they count rows: a person may have several,
            which can't be told from those of others any more.
    """

    size: Ints
    n_classes: Ints
    persons: bool = True

    @property
    def n(self) -> int:
        """Persons; a person in several classes counts in each."""
        return int(self.size @ self.n_classes)

    @property
    def smallest(self) -> int:
        """The size of the smallest class; 0 where there is none."""
        return int(self.size[0]) if len(self.size) else 0


@dataclass(frozen=True)
class Part:
    """Rows to fit a model to or to test it on.

    Attributes:
        rows: The rows, with the columns that were asked for, by id.
        released: Whether they are of the release; else they are original rows.
        n: How many rows there are.
        sample: All rows, or about as many as were wanted, in an order of their own.
    """

    rows: "DataFrame"
    released: bool
    n: int
    sample: pa.Table


class Parts(NamedTuple):
    """The parts of a case with some persons held out.

    Attributes:
        train: Released rows to learn from.
        raw: The original rows of the same persons.
        test: Rows of the other persons. Original rows where the release was made without them,
            else released ones.
        raw_test: The original rows of the persons in `test`.
    """

    train: Part
    raw: Part
    test: Part
    raw_test: Part

    @property
    def n_most(self) -> int:
        """The rows of the largest part."""
        return max(part.n for part in self)


class Comparison(NamedTuple):
    """The scores of one kind of model: learned from the release, and from the original rows."""

    released: Scores
    raw: Scores


class CertaintyBin(NamedTuple):
    """Classes in which the most frequent sensitive value has about the same share.

    Attributes:
        bin: The bin of that share, from 0 for the lowest.
        classes: Classes in it.
        rows: Rows of these classes.
        present: Rows with a value that is not missing.
        most: Rows with the most frequent value of their class.
        certainty: The largest share of one value in a class.
        certain: Rows with a value, in classes where the share reaches the threshold.
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


class Case(ABC):
    """One release and its source. Columns are named by id.

    Attributes:
        schema: The columns.
        source: The rows that were to be released: typed, NaN as null in quasi-identifiers.
        released: The released rows.
        n_source: Rows of the source.
        n_released: Rows of the release.
        k: The persons that every class must have; 0 without k-anonymity.
        seed: The config's seed.
        encodings: How kernels saw each quasi-identifier of the whole source (means, deviations,
            ranges, categories).
        measures: All measures of the config, which may share their passes.
        target_scale: The target's scale, if the config gives it one.
        looked_at_target: Whether the kernel or a partitioner saw the target.
        partitioned: Whether the table's files are laid out by columns.
        shared: What measures computed together, by a key of their own.
    """

    schema: Schema
    source: "DataFrame"
    released: "DataFrame"
    n_source: int
    n_released: int
    k: int
    seed: int
    encodings: Mapping[str, Encoding]
    measures: tuple[Plugin, ...]
    target_scale: Scale | None
    looked_at_target: bool
    partitioned: bool
    shared: dict[Any, Any]

    @property
    @abstractmethod
    def sizes(self) -> Sizes:
        """The classes of the release. Cost: one aggregate, however many ask."""

    @abstractmethod
    def source_sizes(self) -> Sizes:
        """The classes of the source. Cost: one aggregate."""

    @property
    @abstractmethod
    def pairs(self) -> tuple[pa.Table, pa.Table] | None:
        """A sample of original rows, and each as it was released, in one order; at most 10,000.
        Suppressed rows are left out. None once a release is published: the link is not."""

    @abstractmethod
    def most_rows_of_a_person(self) -> int:
        """The largest number of rows that one person has in the source."""

    @abstractmethod
    def summarize(self, columns: Sequence[Column]) -> dict[str, tuple[float, ...]]:
        """Of source columns by id: least, greatest, mean and deviation of the finite values of a
        number, else about how many distinct values there are. Cost: one aggregate."""

    @abstractmethod
    def distinct_values(self, ids: Sequence[str]) -> dict[str, pa.Array]:
        """The distinct values of source columns, without missing ones. Cost: one aggregate."""

    @abstractmethod
    def tuples(self, ids: Sequence[str], most: int) -> tuple[pa.Table, Ints] | None:
        """The distinct released tuples of these columns, and the rows that have each; None where
        there are more than `most`."""

    @abstractmethod
    def link(self, attack: Attack, n: int) -> Links:
        """What an attack finds for its first n rows. Cost: O(n tuples), as Spark tasks."""

    @abstractmethod
    def places(self, most: int) -> pa.Table | None:
        """Where distinct released rows stand: `file`, `start` and `offset` of the first of equal
        rows, and a number or a text to rank each column by. At most `most` rows, those of the
        smallest hashes. None before rows are published, since they have no order yet."""

    @abstractmethod
    def certainty(
        self, name: str, protected: Sequence[str], threshold: float, n_bins: int
    ) -> tuple[list[CertaintyBin], int, int]:
        """Classes by how certain they make a guess of a sensitive column; how many rows have a
        value; how many have the most frequent one. Cost: two aggregates of the release."""

    @abstractmethod
    def lone_rows(self, protected: Sequence[str]) -> dict[str, int]:
        """By column released as shares: rows known to be the only ones of their class with their
        value. Cost: one aggregate of the release, if there are such columns."""

    @abstractmethod
    def fold(
        self,
        ids: Sequence[str],
        count: Callable[[Iterable[pa.Table]], States],
        merge: Callable[[str, Floats, Floats], Floats],
        *,
        released: bool,
    ) -> States:
        """The states that `count` makes of all rows, those of its tasks merged by name.

        Args:
            ids: The columns that `count` reads.
            count: Makes states of tables of rows. It runs in Spark's tasks.
            merge: Joins two states of one name; commutative up to rounding.
            released: Whether the rows are those of the release, else of the source.
        """

    @abstractmethod
    def part(self, ids: Sequence[str], wanted: int, *, released: bool) -> Part:
        """All rows of the source or of the release, with a sample of about `wanted` rows."""

    @abstractmethod
    def parts(self, share: float, ids: Sequence[str], wanted: int, *, after: bool) -> Parts | None:
        """The case with a share of the persons held out.

        Args:
            share: The share of persons held out.
            ids: The columns that are needed.
            wanted: Rows of a sample.
            after: Whether the release itself is split; else one is made without these persons.

        Returns:
            None where a published release is to be split: its rows have no link to persons.
        """

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
        """The scores of no model at all, and those of each kind of model: by Spark ML on all rows,
        or by scikit-learn on samples."""

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
        """How far clusterings of the original rows agree. int64[a, b] each: rows in cluster a of
        the original rows' k-means, and in cluster b of the release's; then in cluster b of the
        original rows' own from another start."""

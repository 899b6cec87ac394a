"""The interface of plans: a plan stages the released rows of a table, and adds up its figures."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark import Accumulator
from pyspark.sql import DataFrame

from anonlib.arrays import Floats
from anonlib.partition.settlement import Controllers
from anonlib.privacy import PrivacyModel
from anonlib.table.encoding import Values
from anonlib.table.schema import Schema
from anonlib.table.table_digest import Digest
from anonlib.worker.task import Task, Totals


@dataclass(frozen=True)
class StagedFigures:
    """The figures of a staged release.

    Attributes:
        n_rows: Anonymized rows, with suppressed ones.
        n_cells: Cells.
        n_blocks: Blocks.
        losses: By metric: its value; None if it is not defined. Suppressed cells count.
        digest: Digest of the released rows.
        source_digest: Digest of the source's rows behind them, with suppressed ones.
        losses_by_column: By metric and numeric column: the value.
        counts: By type of measure: the states that workers counted in all cells.
        notes: What the kernel says about its search, and the metrics about their figures.
    """

    n_rows: int
    n_cells: int
    n_blocks: int
    losses: dict[str, float | None]
    digest: Digest
    source_digest: Digest
    losses_by_column: dict[str, dict[str, float]] = field(default_factory=dict)
    counts: dict[str, dict[str, Floats]] = field(default_factory=dict, repr=False)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Plan(ABC):
    """How the rows of a table become released rows: block by block (`BlockPlan`), or by one search
    over its distinct tuples (`TuplePlan`).

    Attributes:
        n_rows: The rows that are planned for.
        values: What the protected columns have in these rows.
        controllers: What became of the data controllers; None without any.
        split_by: The ids of the columns that single-column cuts are of.
        levels: By column its height, where each column has one for the whole table; else None.
    """

    n_rows: int
    values: dict[str, Values]
    controllers: Controllers | None = None
    split_by: tuple[str, ...] = ()
    levels: dict[str, int] | None = None

    @property
    def own(self) -> Mapping[int, tuple[PrivacyModel, ...]]:
        """By controller: the models that it must hold besides those of the config."""
        return {} if self.controllers is None else self.controllers.own

    @property
    @abstractmethod
    def most_files(self) -> int:
        """Into how many files of about equal size whole cells can be dealt, many in each file."""

    @abstractmethod
    def stage(
        self,
        rows: DataFrame,
        schema: Schema,
        task: Task,
        totals: "Accumulator[list[Totals]]",
        *,
        n_partitions: int | None,
        pandas: bool,
    ) -> DataFrame:
        """The staged rows, lazily.

        Args:
            rows: The source's rows, by id.
            schema: Their columns.
            task: What the workers need.
            totals: Gets the totals of each task's rows.
            n_partitions: Partitions of the shuffle; derived from the number of rows if None.
            pandas: Whether blocks cross into Python as pandas frames, else as Arrow tables.
        """

    @abstractmethod
    def left_out(self, rows: DataFrame, schema: Schema) -> DataFrame:
        """The source's rows that are not staged."""

    @abstractmethod
    def add_up(
        self, released: Digest, totals: Sequence[Totals], schema: Schema, task: Task
    ) -> StagedFigures:
        """The figures of a staged release.

        Args:
            released: Digest of the released rows.
            totals: The totals of all staged rows.
            schema: The columns.
            task: What the workers had.
        """

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """For the private run record."""


def merge_read(totals: Sequence[Totals]) -> Digest:
    """The digest of the source's rows that all totals are of."""
    return sum((Digest(each.n_rows, each.low, each.high) for each in totals), Digest())

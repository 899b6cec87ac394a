"""Regions that released values stand for, and the rows of another table that lie in them."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonlib.arrays import MISSING, Bools, Floats, Ints
from anonlib.encode.texts import texts
from anonlib.hierarchy import Hierarchy
from anonlib.table.encoding import to_float

#: An Arrow array of any type.
Values: TypeAlias = Any
#: The column of the rows that each row of a table stands for.
N_ROWS = "n_rows"
#: The states: the rows in each region, and all rows.
IN_REGION, IN_ALL, IN_SEVERAL = "in region", "in all", "in several"


class ColumnRegions(ABC):
    """v distinct regions of a column."""

    @abstractmethod
    def read(self, values: Values) -> Floats:
        """float64[u]. Values, which may be missing, as numbers for `contain`."""

    @abstractmethod
    def contain(self, region: int, numbers: Floats) -> Bools:
        """bool[u]. Whether a region, 0..v-1, contains each of u values."""


@dataclass(frozen=True, eq=False)
class Ranges(ColumnRegions):
    """Ranges of numbers, or of ranks.

    Attributes:
        low: float64[v]. Their lower ends.
        high: float64[v]. Their upper ends.
        anything: bool[v]. Whether it contains every value, missing ones too.
        order: The values by rank; None for numbers, dates and timestamps.
    """

    low: Floats
    high: Floats
    anything: Bools
    order: Values | None = None

    def read(self, values: Values) -> Floats:
        return to_float(values if self.order is None else pc.index_in(values, value_set=self.order))

    def contain(self, region: int, numbers: Floats) -> Bools:
        if self.anything[region]:
            return np.ones(len(numbers), np.bool_)
        return np.asarray((self.low[region] <= numbers) & (numbers <= self.high[region]))


@dataclass(frozen=True, eq=False)
class Members(ColumnRegions):
    """Sets of values.

    Attributes:
        texts: string[c]. The values that occur in a set, as texts.
        among: bool[v, c + 2]. Whether each set has each of them, then missing values, then any
            other value.
    """

    texts: Values
    among: Bools

    def read(self, values: Values) -> Floats:
        code = pc.index_in(texts(values), value_set=self.texts, skip_nulls=True)
        codes = code.fill_null(len(self.texts) + 1).to_numpy(zero_copy_only=False)
        return np.where(_missing(values), len(self.texts), codes).astype(np.float64)

    def contain(self, region: int, numbers: Floats) -> Bools:
        return np.asarray(self.among[region, numbers.astype(np.int64)])


@dataclass(frozen=True, eq=False)
class Subtrees(ColumnRegions):
    """Nodes of a hierarchy. The root contains every value, missing and unknown ones too.

    Attributes:
        hierarchy: The hierarchy.
        node: int64[v]. The nodes; MISSING stands for missing values alone.
    """

    hierarchy: Hierarchy
    node: Ints

    def read(self, values: Values) -> Floats:
        leaf = self.hierarchy.places(texts(values))
        unknown = leaf < 0  # a missing value, or none of the hierarchy
        leaf[unknown] = np.where(_missing(values)[unknown], MISSING, MISSING - 1)
        return leaf.astype(np.float64)

    def contain(self, region: int, numbers: Floats) -> Bools:
        tree, node = self.hierarchy.tree, int(self.node[region])
        if node == MISSING:
            return np.asarray(numbers == MISSING)
        if node == len(self.hierarchy.names) - 1:
            return np.ones(len(numbers), np.bool_)
        return np.asarray((tree.low[node] <= numbers) & (numbers < tree.high[node]))


def _missing(values: Values) -> Bools:
    """bool[u]. Whether each value is missing."""
    missing: Bools = values.is_null(nan_is_null=True).to_numpy(zero_copy_only=False)
    return missing


class RegionCounts(NamedTuple):
    """The rows of a table in regions.

    Attributes:
        in_region: int64[t]. The rows in each region.
        n_rows: All rows.
        n_several: The rows that are in several regions.
    """

    in_region: Ints
    n_rows: int
    n_several: int


@dataclass(frozen=True, eq=False)
class Regions:
    """t regions: combinations of the regions of c columns.

    Attributes:
        ids: [c]. The columns.
        columns: [c]. Their regions.
        place: int64[t, c]. The region of each column.
    """

    ids: tuple[str, ...]
    columns: tuple[ColumnRegions, ...]
    place: Ints

    def count(self, tables: Iterable[pa.Table]) -> dict[str, Floats]:
        """The rows in each region: float64[t]; in all, and in several regions: float64[1] each.

        Regions are gone through column by column, with the rows that are left. Cost for r rows:
        O(r t) at worst, and O(r c) for regions that do not overlap.

        Args:
            tables: Rows with the columns, and N_ROWS.
        """
        counts, total, several = np.zeros(len(self.place)), 0.0, 0.0
        order = np.lexsort(self.place.T[::-1]) if self.ids else np.arange(len(self.place))
        for table in tables:
            weight = table.column(N_ROWS).to_numpy().astype(np.float64)
            total += float(weight.sum())
            numbers = [self._read(table, j) for j in range(len(self.ids))]
            times = np.zeros(table.num_rows, np.int64)
            self._add(counts, times, weight, numbers, order, np.arange(table.num_rows))
            several += float(weight[times > 1].sum())
        return {IN_REGION: counts, IN_ALL: np.array([total]), IN_SEVERAL: np.array([several])}

    def _read(self, table: pa.Table, j: int) -> Floats:
        """float64[r]. The values of column j, as its regions read them: each distinct one once."""
        coded = table.column(self.ids[j]).combine_chunks().dictionary_encode("encode")
        numbers: Floats = self.columns[j].read(coded.dictionary)[coded.indices.to_numpy()]
        return numbers

    def _add(
        self,
        counts: Floats,
        times: Ints,
        weight: Floats,
        numbers: Sequence[Floats],
        regions: Ints,
        rows: Ints,
        depth: int = 0,
    ) -> None:
        """Adds the weights of rows to the regions that contain them from column `depth` on, and
        to `times` the regions that contain each row.

        regions: Sorted by the regions of the columns.
        """
        if not len(rows):
            return
        if depth == len(numbers):
            counts[regions] += weight[rows].sum()
            times[rows] += len(regions)
            return
        start = np.flatnonzero(np.diff(self.place[regions, depth], prepend=-1))
        for part in np.split(regions, start[1:]):
            region = int(self.place[part[0], depth])
            inside = self.columns[depth].contain(region, numbers[depth][rows])
            self._add(counts, times, weight, numbers, part, rows[inside], depth + 1)

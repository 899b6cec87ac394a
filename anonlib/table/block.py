"""A block: the rows that one task anonymizes together, as the arrays that kernels work on."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from anonlib.arrays import (
    MISSING,
    Bools,
    Codes,
    Floats,
    Integers,
    Ints,
    freeze,
    freeze_fields,
)
from anonlib.hierarchy.tree import Tree
from anonlib.privacy import CellCounts, KnownGroups, PrivacyModel, Reference, SparseCounts
from anonlib.privacy.shares import count_persons, group_codes

#: A nominal column with more categories than this takes no part in class moments.
MOST_INDICATORS = 100


@dataclass(frozen=True)
class Tuples:
    """The distinct quasi-identifier tuples of a block.

    Attributes:
        first: int64[t]. The first row of each tuple.
        count: int64[t]. The rows of each tuple.
        id: int64[n]. The tuple of each row.
    """

    first: Ints
    count: Ints
    id: Ints


class Ranks(NamedTuple):
    """How a numeric column codes ranks: rank r of 0..n-1 is near low + r * step."""

    n: int
    low: float
    step: float


class Context(NamedTuple):
    """The insensitive columns of a block, for partitioners that look at them.

    Attributes:
        numeric: float64[n, c]. Standardized, on GRID.
        nominal: int32[n, d]. Codes from 0.
    """

    numeric: Floats
    nominal: Codes


@dataclass(frozen=True, eq=False)
class ClassMoments:
    """Moments of the classes of a target, as exact Python integers: the order in which rows or
    blocks are added up does not matter.

    There are d coordinates: the numeric columns in units of GRID, then an indicator for each
    category of the nominal columns with at most MOST_INDICATORS categories.

    Attributes:
        counts: [n_classes]. Rows of each class.
        sums: [n_classes, d]. Sums of the coordinates of each class.
        products: [d, d]. Sums of products over all rows.
    """

    counts: Integers
    sums: Integers
    products: Integers

    @classmethod
    def from_json(cls, text: str) -> "ClassMoments":
        """The inverse of `to_json`."""
        return cls(*(np.array(values, object) for values in json.loads(text)))

    def to_json(self) -> str:
        """As JSON, to travel between processes: lists of integers of any length."""
        return json.dumps([part.tolist() for part in (self.counts, self.sums, self.products)])

    def merge(self, other: "ClassMoments") -> "ClassMoments":
        """The moments of the rows of both."""
        return ClassMoments(
            self.counts + other.counts, self.sums + other.sums, self.products + other.products
        )


@dataclass(frozen=True)
class Block:
    """n rows with p numeric and q nominal quasi-identifiers and s protected columns.

    Rows are in canonical order: equal tuples side by side, ties broken by the whole row. The arrays
    can't be written to: metrics and the audit's references go by the same ones as kernels.

    Attributes:
        numeric: float64[n, p], on GRID. Standardized continuous columns, ordinal ranks, and 0/1
            flags of missing values.
        nominal: int32[n, q]. Codes 0..n_categories-1; missing is a category.
        sensitive: int32[n, s]. Codes of the protected columns, MISSING where missing.
        unit: int32[n] or None. Codes of persons; None if every row is a person of its own.
        widths: float64[p]. The range of each numeric column over the whole table.
        n_categories: int64[q]. Categories of each nominal column.
        models: The privacy models that every cell must hold.
        protected: The names of the columns of `sensitive`.
        ranks: [p] or empty. How a numeric column codes ranks; None for columns without ranks.
        trees: [q] or empty. The hierarchy of a nominal column; None for columns without one.
        target: float64[n] or None. What the released table is to predict. With n_classes, codes
            0..n_classes-1 (missing is a class); else standardized numbers on GRID, 0 if missing.
        n_classes: Classes of the target; 0 for numbers.
        moments: Moments of the target's classes over the whole table; None if the block is the
            whole table.
        context: The insensitive columns, or None. Kernels do not look at them.
        references: By protected column: its distribution over the whole table.
        joint: Whether models hold also among the rows of a cell that agree on all protected
            columns but the model's.
        weight: int64[n] or None. Rows of the table per row, without units; None means one. Only
            kernels with `takes_weights` get such blocks.
        may_suppress: Rows of the table that a kernel with `suppresses` may leave without a cell.
        extents: Whether all quasi-identifiers are released as intervals, sets or nodes, or not at
            all. These lose more, the more values they stand for.
    """

    numeric: Floats
    nominal: Codes
    sensitive: Codes
    unit: Codes | None
    widths: Floats
    n_categories: Ints
    models: tuple[PrivacyModel, ...]
    protected: tuple[str, ...] = ()
    ranks: tuple[Ranks | None, ...] = ()
    trees: tuple[Tree | None, ...] = ()
    target: Floats | None = None
    n_classes: int = 0
    moments: ClassMoments | None = None
    context: Context | None = None
    references: Mapping[str, Reference] = field(default_factory=dict)
    joint: bool = False
    weight: Ints | None = None
    may_suppress: int = 0
    extents: bool = False

    def __post_init__(self) -> None:
        freeze_fields(self, "numeric", "nominal", "sensitive", "unit")
        freeze_fields(self, "widths", "n_categories", "target", "weight")
        if self.context is not None:
            numeric, nominal = self.context
            object.__setattr__(self, "context", Context(freeze(numeric), freeze(nominal)))

    @property
    def n(self) -> int:
        return len(self.numeric)

    @property
    def min_rows(self) -> int:
        """The smallest number of rows that a cell can have under the models."""
        return max((model.min_rows for model in self.models), default=1)

    @property
    def counts_rows_only(self) -> bool:
        """Whether min_rows rows are enough for a cell, whatever they are."""
        return self.unit is None and not self.protected

    def tree(self, j: int) -> Tree:
        """The hierarchy of nominal column j; a flat one where it has none."""
        tree = self.trees[j] if self.trees else None
        return Tree.flat(int(self.n_categories[j])) if tree is None else tree

    @cached_property
    def tuples(self) -> Tuples:
        """The distinct tuples, in row order. Cost O(n (p + q))."""
        if self.n == 0:
            empty = np.zeros(0, np.int64)
            return Tuples(empty, empty, empty)
        new = np.ones(self.n, np.bool_)
        new[1:] = (self.numeric[1:] != self.numeric[:-1]).any(axis=1)
        new[1:] |= (self.nominal[1:] != self.nominal[:-1]).any(axis=1)
        first = np.flatnonzero(new)
        id = np.cumsum(new) - 1
        return Tuples(first, self._rows(id, len(first)), id)

    def _rows(self, id: Ints, n: int, rows: Ints | None = None) -> Ints:
        """int64[n]: how many rows of the table have each id (arguments as for `counts`)."""
        if self.weight is None:
            return np.bincount(id, minlength=n)
        weight = self.weight if rows is None else self.weight[rows]
        return np.bincount(id, weight, minlength=n).astype(np.int64)  # exact below 2^53

    def counts(self, cell_id: Ints, n_cells: int, rows: Ints | None = None) -> CellCounts:
        """The counts by which models judge cells.

        Args:
            cell_id: int64. The cell, 0..n_cells-1, of every row, or of each of `rows`.
            n_cells: Number of cells.
            rows: int64 or None. Counts these rows only; None means all.
        """
        counts = self._counts(cell_id, n_cells, rows, self.protected)
        if not self.joint:
            return counts
        if self.unit is not None:  # a group without a person has nobody to protect
            there = (self.unit if rows is None else self.unit[rows]) != MISSING
            rows = np.flatnonzero(there) if rows is None else rows[there]
            cell_id = cell_id[there]
        known = {}
        for name in {model.column for model in self.models if model.column is not None}:
            others = self._others[name] if rows is None else self._others[name][rows]
            group, cell = group_codes(cell_id, others)
            known[name] = KnownGroups(cell, self._counts(group, len(cell), rows, (name,)))
        return replace(counts, known=known)

    @cached_property
    def _others(self) -> Mapping[str, Ints]:
        """int64[n], by protected column: codes of the combinations of all others."""
        return {
            name: np.unique(np.delete(self.sensitive, j, axis=1), axis=0, return_inverse=True)[1]
            for j, name in enumerate(self.protected)
        }

    def _counts(
        self, cell_id: Ints, n_cells: int, rows: Ints | None, names: tuple[str, ...]
    ) -> CellCounts:
        n_rows = self._rows(cell_id, n_cells, rows)
        codes, weight = self.sensitive, self.weight
        if rows is not None:
            codes, weight = codes[rows], None if weight is None else weight[rows]
        of = {name: codes[:, self.protected.index(name)] for name in names}
        if self.unit is None:
            counts = {name: count_sparse(cell_id, values, weight) for name, values in of.items()}
            return CellCounts(n_rows, n_rows, counts, self.references)
        unit = self.unit if rows is None else self.unit[rows]
        there = unit != MISSING
        cell, person = cell_id[there], unit[there]
        n_persons = np.bincount(count_sparse(cell, person).cell, minlength=n_cells)
        counts = {
            name: count_persons(cell, person, values[there], n_cells) for name, values in of.items()
        }
        return CellCounts(n_rows, n_persons, counts, self.references)

    def holds(self, cell_id: Ints, n_cells: int, rows: Ints | None = None) -> Bools:
        """bool[n_cells]: which cells hold every model (arguments as for `counts`)."""
        counts = self.counts(cell_id, n_cells, rows)
        result = np.ones(n_cells, np.bool_)
        for model in self.models:
            result &= model.holds_within(counts)
        return result


def count_sparse(cell_id: Ints, codes: Codes, weight: Ints | None = None) -> SparseCounts:
    """Counts of the (cell, code) pairs that occur, without MISSING codes. A row counts `weight`
    times."""
    present = codes != MISSING
    cell, code = cell_id[present], codes[present].astype(np.int64)
    if len(cell) == 0:
        empty = np.zeros(0, np.int64)
        return SparseCounts(empty, empty, empty)
    width = int(code.max()) + 1
    pairs = cell * width + code
    if weight is None:
        pair, count = np.unique(pairs, return_counts=True)
    else:
        pair, place = np.unique(pairs, return_inverse=True)
        count = np.bincount(place, weight[present]).astype(np.int64)
    return SparseCounts(pair // width, pair % width, count)


def part(block: Block, rows: Ints | slice) -> Block:
    """The block of some rows. It shares the memory of rows that are a slice."""
    return replace(
        block,
        numeric=np.ascontiguousarray(block.numeric[rows]),
        nominal=np.ascontiguousarray(block.nominal[rows]),
        sensitive=np.ascontiguousarray(block.sensitive[rows]),
        unit=None if block.unit is None else block.unit[rows],
        weight=None if block.weight is None else block.weight[rows],
        target=None if block.target is None else block.target[rows],
        context=block.context and Context(block.context.numeric[rows], block.context.nominal[rows]),
    )

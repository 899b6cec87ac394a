"""Helpers of the models that look at counts: sums and shares of the values of a cell."""

import numpy as np

from anonlib.privacy import CellCounts, Floats, Ints, Reference, SparseCounts


def count_present(counts: SparseCounts, n_cells: int) -> Ints:
    """int64[m]. The rows of each cell with a present value."""
    return np.bincount(counts.cell, counts.count, n_cells).astype(np.int64)


def shares(counts: SparseCounts, n_cells: int) -> Floats:
    """float64[e]. The share of each entry in the present values of its cell."""
    result: Floats = counts.count / count_present(counts, n_cells)[counts.cell]
    return result


def sum_counts(cell: Ints, value: Ints, count: Ints) -> SparseCounts:
    """Adds up the counts of equal (cell, value) pairs, and sorts the pairs."""
    width = int(value.max(initial=0)) + 1
    pair, place = np.unique(cell * width + value, return_inverse=True)
    total = np.bincount(place, count, len(pair)).astype(np.int64)
    return SparseCounts(pair // width, pair % width, total)


def group_codes(cell: Ints, code: Ints) -> tuple[Ints, Ints]:
    """Groups n rows by cell and code.

    Returns:
        int64[n], the group of each row, 0..g-1; and int64[g], the cell of each group.
    """
    width = int(code.max(initial=0)) + 1
    pair, group = np.unique(cell * width + code, return_inverse=True)
    return group, pair // width


def with_missing(cells: CellCounts, column: str) -> tuple[SparseCounts, Ints]:
    """Counts with missing values as one more category, the last.

    Returns:
        The counts of the column; and int64[v], the counts of its reference. If nothing is missing
        in the reference, it has no such category.
    """
    counts, reference = cells.sensitive[column], cells.references[column]
    whole = reference.count
    if reference.n_missing:
        whole = np.append(whole, reference.n_missing)
    absent = cells.n_rows - count_present(counts, len(cells.n_rows))
    where = np.flatnonzero(absent)
    cell = np.concatenate([counts.cell, where])
    value = np.concatenate([counts.value, np.full(len(where), len(reference.count))])
    return SparseCounts(cell, value, np.concatenate([counts.count, absent[where]])), whole


def against(cells: CellCounts, column: str) -> tuple[SparseCounts, Floats, Floats]:
    """Shares in cells, and in the whole table, with missing values as a category.

    Returns:
        The counts of the column; float64[e], the share p of each entry in its cell; and float64[v],
        the share q of each value in the whole table.
    """
    counts, whole = with_missing(cells, column)
    return counts, counts.count / cells.n_rows[counts.cell], whole / whole.sum()


def reference_of(values: Ints, n_values: int) -> Reference:
    """The reference of coded values; -1 is missing."""
    return Reference(np.bincount(values[values >= 0], minlength=n_values), int((values < 0).sum()))


def whole_table(column: str, reference: Reference, n_persons: int) -> CellCounts:
    """The counts of the whole table as one cell."""
    value = np.flatnonzero(reference.count)
    counts = SparseCounts(np.zeros(len(value), np.int64), value, reference.count[value])
    n_rows = int(reference.count.sum()) + reference.n_missing
    sizes = (np.array([n_rows]), np.array([n_persons]))
    return CellCounts(*sizes, {column: counts}, {column: reference})

"""Sums and shares of the values of a cell, for the models that look at counts."""

import numpy as np

from anonlib.arrays import Codes
from anonlib.privacy import CellCounts, Floats, Ints, Reference, SparseCounts


def sum_cells(counts: SparseCounts, n_cells: int) -> Ints:
    """int64[m]. The sum of the entries of each cell."""
    return np.bincount(counts.cell, counts.count, n_cells).astype(np.int64)


def count_known(counts: SparseCounts, n_cells: int) -> Ints:
    """int64[m]. The persons of each cell with a present value."""
    return sum_cells(counts, n_cells) if counts.n_known is None else counts.n_known


def list_shares(counts: SparseCounts, n_cells: int) -> Floats:
    """float64[e]. The share of each entry in the present values of its cell."""
    result: Floats = counts.count / sum_cells(counts, n_cells)[counts.cell]
    return result


def count_persons(
    cell: Ints, person: Codes | Ints, code: Codes | Ints, n_cells: int
) -> SparseCounts:
    """Counts the persons of each cell by their values. Cost O(n log n).

    Args:
        cell: int64[n]. The cell of each row, 0..m-1.
        person: int[n]. The person of each row, from 0.
        code: int[n]. The value of each row; -1 for a missing one.
        n_cells: m.
    """
    width, n_persons = int(code.max(initial=-1)) + 2, int(person.max(initial=-1)) + 1
    pair, place = np.unique(cell * width + code + 1, return_inverse=True)
    of_pair = np.unique(place * n_persons + person) // max(1, n_persons)
    count = np.bincount(of_pair, minlength=len(pair))
    where, value = pair // width, pair % width - 1
    present = value >= 0
    n_missing = np.zeros(n_cells, np.int64)
    n_missing[where[~present]] = count[~present]
    known = np.unique((cell * n_persons + person)[code >= 0]) // max(1, n_persons)
    n_known = np.bincount(known, minlength=n_cells)
    return SparseCounts(where[present], value[present], count[present], n_missing, n_known)


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
    absent = counts.n_missing
    if absent is None:
        absent = cells.n_rows - sum_cells(counts, len(cells.n_rows))
    where = np.flatnonzero(absent)
    cell = np.concatenate([counts.cell, where])
    value = np.concatenate([counts.value, np.full(len(where), len(reference.count))])
    return SparseCounts(cell, value, np.concatenate([counts.count, absent[where]])), whole


def compare_shares(cells: CellCounts, column: str) -> tuple[SparseCounts, Floats, Floats]:
    """Shares in cells, and in the whole table, with missing values as a category.

    Returns:
        The counts of the column; float64[e], the share p of each entry in its cell; and float64[v],
        the share q of each value in the whole table.
    """
    counts, whole = with_missing(cells, column)
    total = sum_cells(counts, len(cells.n_rows))
    return counts, counts.count / total[counts.cell], whole / whole.sum()


def make_reference(values: Ints, n_values: int, person: Codes | Ints | None = None) -> Reference:
    """The reference of coded values.

    Args:
        values: int64[n]. The value of each row; -1 for a missing one.
        n_values: The number of values.
        person: int[n] or None. The person of each row; -1 for nobody. None means that each row is
            a person.
    """
    if person is None:
        count = np.bincount(values[values >= 0], minlength=n_values)
        return Reference(count, int((values < 0).sum()))
    there = person >= 0
    cell = np.zeros(there.sum(), np.int64)
    found = count_persons(cell, person[there], values[there], 1)
    count = np.zeros(n_values, np.int64)
    count[found.value] = found.count
    return Reference(count, 0 if found.n_missing is None else int(found.n_missing[0]))


def count_whole_table(
    column: str, reference: Reference, n_persons: int, n_known: int | None = None
) -> CellCounts:
    """The counts of the whole table as one cell.

    Args:
        column: The protected column.
        reference: Its distribution.
        n_persons: The persons of the table.
        n_known: The persons with a present value; None if each row is a person.
    """
    value = np.flatnonzero(reference.count)
    cell = np.zeros(len(value), np.int64)
    known = None if n_known is None else np.array([n_known])
    missing = np.array([reference.n_missing])
    counts = SparseCounts(cell, value, reference.count[value], missing, known)
    n_rows = int(reference.count.sum()) + reference.n_missing
    sizes = (np.array([n_rows]), np.array([n_persons]))
    return CellCounts(*sizes, {column: counts}, {column: reference})

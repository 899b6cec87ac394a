"""How many rows of a table agree with each row of a sample, in combinations of columns."""

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from anonlib.arrays import Ints
from anonlib.measure.states import States

#: Places of columns, ascending.
Combination: TypeAlias = tuple[int, ...]


def list_combinations(n_columns: int, most: int) -> list[Combination]:
    """All combinations of at most `most` of n columns, small ones first."""
    sizes = range(1, min(most, n_columns) + 1)
    return [each for size in sizes for each in combinations(range(n_columns), size)]


def read_keys(table: pa.Table) -> Ints:
    """int64[n, d]. The hashes in the d columns of a table."""
    columns = [column.to_numpy() for column in table.columns]
    return np.column_stack(columns).astype(np.int64) if columns else np.zeros((0, 0), np.int64)


def count_others(
    count: Callable[[Sequence[Combination]], Ints], choices: Sequence[Combination], person: int
) -> Ints:
    """Counts each row and the rows of other persons that agree with it.

    Args:
        count: Counts the rows that agree, int64[c, s] for c combinations, as `count_alike`.
        choices: The combinations.
        person: The place of the persons among the columns.
    """
    every = count([*choices, *((*each, person) for each in choices)])
    return every[: len(choices)] - every[len(choices) :] + 1


def count_alike(sample: Ints, choices: Sequence[Combination], tables: Iterable[pa.Table]) -> States:
    """Counts rows by combination. Cost O(n c log s) for n rows, c combinations and s sampled rows.

    Args:
        sample: int64[s, d]. By row and column: a hash of 64 bits, of the value and the column. Then
            sums of hashes, modulo 2^64, are hashes of combinations.
        choices: The combinations.
        tables: Rows with the same d columns.

    Returns:
        By number of the combination: float64[s]. For each sampled row: the rows that agree with it.
    """
    found = [np.unique(_sum(sample, each), return_inverse=True) for each in choices]
    counts = [np.zeros(len(keys)) for keys, _ in found]
    for table in tables:
        rows, n = np.unique(read_keys(table), axis=0, return_counts=True)
        if not len(rows) or not len(sample):
            continue
        for count, (keys, _), each in zip(counts, found, choices, strict=True):
            hashes = _sum(rows, each)
            place = np.minimum(np.searchsorted(keys, hashes), len(keys) - 1)
            there = keys[place] == hashes
            count += np.bincount(place[there], n[there], len(keys))
    pairs = zip(counts, found, strict=True)
    return {str(i): count[place.ravel()] for i, (count, (_, place)) in enumerate(pairs)}


def _sum(hashes: Ints, columns: Combination) -> Ints:
    """int64[n]. The hash of a combination of columns: integers of numpy wrap."""
    total: Ints = hashes[:, list(columns)].sum(axis=1)
    return total

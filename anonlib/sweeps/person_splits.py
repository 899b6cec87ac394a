"""Splits the rows of a table at random, person by person."""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from anonlib.arrays import Ints
from anonlib.errors import InputError
from anonlib.table.row_numbers import number_classes
from anonlib.worker.task import code_persons


def number_persons(table: pa.Table, unit: Iterable[str]) -> Ints:
    """int64[n], from 0. The person of each row, by the columns of a unit. Without a unit, each row
    is a person."""
    codes = code_persons([table.column(id).combine_chunks() for id in unit])
    return np.arange(table.num_rows) if codes is None else np.unique(codes, return_inverse=True)[1]


def split_persons(
    table: pa.Table, unit: Iterable[str], share: float, seed: int, what: str, by: str | None = None
) -> tuple[Ints, Ints]:
    """Splits rows at random into two parts. All rows of a person are in the same part.

    The split depends on the order of the rows.

    Args:
        table: The rows.
        unit: The columns that identify a person.
        share: The share of persons in the first part.
        seed: The seed.
        what: The purpose. Different purposes get different splits.
        by: A column to stratify by; None for none.

    Returns:
        int64, ascending. The rows of the first part, and the rows of the second.

    Raises:
        InputError: A person has several values of `by`, and could be in both parts.
    """
    n = table.num_rows
    person = number_persons(table, unit)
    random = np.random.default_rng([seed, *what.encode()])
    group = np.zeros(n, np.int64) if by is None else number_classes([table.column(by)])
    if by is not None and len(np.unique(np.stack([person, group]), axis=1).T) > len(set(person)):
        raise InputError("`by`: there are persons with several values of this column; leave it out")
    chosen = np.zeros(n, np.bool_)
    for each in range(int(group.max(initial=-1)) + 1):
        mine = np.unique(person[group == each])
        some = random.permutation(mine)[: round(share * len(mine))]
        chosen |= (group == each) & np.isin(person, some)
    return np.flatnonzero(chosen), np.flatnonzero(~chosen)

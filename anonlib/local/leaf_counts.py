"""Counts the leaves of a plan in memory, exactly as Spark counts them (`anonlib/run/leaves.py`)."""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from anonlib.arrays import MISSING, Codes, Ints
from anonlib.partition.repair import BlockCounts, Joint, as_values, count_words
from anonlib.privacy import PrivacyModel
from anonlib.privacy.shares import count_persons
from anonlib.table.block import count_sparse
from anonlib.table.encoding import (
    Values,
    code_among,
    code_known,
    code_protected,
    list_protected_values,
)
from anonlib.table.schema import Schema
from anonlib.worker.task import code_persons


def count_in_memory(
    rows: pa.Table,
    leaf: Ints,
    n_leaves: int,
    schema: Schema,
    values: Mapping[str, Values],
    models: Sequence[PrivacyModel],
    missing_tokens: tuple[str, ...],
    *,
    exact: bool,
) -> BlockCounts:
    """Counts the rows, persons and protected values of each leaf. Cost O(n log n).

    Args:
        rows: n rows, by id.
        leaf: int64[n]. The leaf of each row.
        n_leaves: Leaves.
        schema: The columns.
        values: By id: the values of the protected columns that models count.
        models: The models that leaves must hold.
        missing_tokens: Texts that mean a missing value.
        exact: Whether the distinct values of other protected columns are counted, up to the largest
            number that a model requires. Otherwise, a sketch has a lower bound.
    """
    person = code_persons([rows.column(id).combine_chunks() for id in schema.unit])
    some = np.arange(len(leaf)) if person is None else np.flatnonzero(person != MISSING)
    n_rows = np.bincount(leaf, minlength=n_leaves)
    n_persons = n_rows
    if person is not None:
        n_persons = np.bincount(count_sparse(leaf[some], person[some]).cell, minlength=n_leaves)
    asked = max((model.min_values for model in models), default=0)
    counts, sketches = {}, {}
    for id in schema.protected:
        column = rows.column(id).combine_chunks()
        if id in values:
            code = code_among(column, missing_tokens, values[id].categories)
            counts[id] = count_sparse(leaf, code)
            if person is not None:
                counts[id] = count_persons(leaf[some], person[some], code[some], n_leaves)
        elif exact:
            code = code_protected(column, missing_tokens)
            size = np.bincount(count_sparse(leaf[some], code[some]).cell, minlength=n_leaves)
            rich = np.flatnonzero(size)
            counts[id] = as_values(rich, np.minimum(size[rich], asked))
        else:
            sketches[id] = np.zeros((n_leaves, count_words(models)), np.int64)
            _sketch(sketches[id], leaf[some], column.take(pa.array(some)), missing_tokens)
    references = {id: each.reference for id, each in values.items()}
    joint = None
    if schema.joint:
        joint = _count_combinations(rows, leaf, some, person, schema, values, missing_tokens)
    return BlockCounts(n_rows, n_persons, sketches, bool(schema.unit), counts, references, joint)


def _sketch(words: Ints, leaf: Ints, values: pa.Array, missing_tokens: tuple[str, ...]) -> None:
    """Sets the bits of the values of each row in the words of its leaf: the bits that Spark sets.

    Args:
        words: int64[leaves, w]. They are changed.
        leaf: int64[n]. The leaf of each row.
        values: The protected values.
        missing_tokens: Texts that mean a missing value.
    """
    from anonlib.table.hashes import hash_values  # this imports numba

    listed = list_protected_values(values, missing_tokens).categories
    code = code_among(values, missing_tokens, listed)
    there = code != MISSING
    hashes = hash_values(listed)[code[there]]
    bits = np.left_shift(np.int64(1), hashes % 64)
    np.bitwise_or.at(words, (leaf[there], (hashes >> 6) % words.shape[1]), bits)


def _count_combinations(
    rows: pa.Table,
    leaf: Ints,
    some: Ints,
    person: Codes | None,
    schema: Schema,
    values: Mapping[str, Values],
    missing_tokens: tuple[str, ...],
) -> Joint:
    """The persons of each leaf with each combination of the protected columns."""
    columns = {id: rows.column(id).combine_chunks() for id in schema.protected}
    codes = [code_known(each, missing_tokens, values.get(id)) for id, each in columns.items()]
    stacked = np.column_stack([leaf, *codes]).astype(np.int64)[some]
    known, place = np.unique(stacked, axis=0, return_inverse=True)
    if person is not None:  # a person counts once for each combination that it has
        place = count_sparse(place, person[some]).cell
    return Joint(schema.protected, known[:, 0], known[:, 1:], np.bincount(place))

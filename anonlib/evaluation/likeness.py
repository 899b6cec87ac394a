"""Counts the rows of a table that agree with sampled rows, in combinations of quasi-identifiers."""

from collections.abc import Sequence
from functools import reduce
from operator import add, and_

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from anonlib.arrays import Floats, Ints
from anonlib.auditing import AuditSpec
from anonlib.auditing.canonical import make_key
from anonlib.evaluation.classes import make_release_view
from anonlib.evaluation.distributed_learning import sample
from anonlib.evaluation.fold import fold
from anonlib.measure.alike import Combination, count_alike, read_keys
from anonlib.table.schema import Schema


def hash_released_keys(released: DataFrame, schema: Schema, spec: AuditSpec) -> DataFrame:
    """The hashes of the quasi-identifiers of a release, compared as in its audit."""
    view, _ = make_release_view(released, schema, spec)
    key = dict(zip(spec.quasi_identifiers, view.keys, strict=False))  # without any, one key is left
    names = [column.name for column in schema.quasi_identifiers]  # in the order of the source
    return _hash(view.rows, [F.col(key[name]) for name in names])


def hash_source_keys(source: DataFrame, schema: Schema) -> DataFrame:
    """The hashes of the quasi-identifiers of a source; with a unit, then those of persons: rows
    without a person have the same one."""
    types = {field.name: field.dataType for field in source.schema.fields}
    ids = [column.id for column in schema.quasi_identifiers]
    keys = [make_key(F.col(id), types[id]) for id in ids]
    if schema.unit:
        known = reduce(and_, [F.col(id).isNotNull() for id in schema.unit])
        keys.append(F.when(known, F.struct(*schema.unit)))
    return _hash(source, keys)


def _hash(rows: DataFrame, keys: Sequence[Column]) -> DataFrame:
    """Hashes of values, another function for each column. Spark's hash skips nulls."""
    hashes = [F.xxhash64(F.lit(i), key.isNull(), key).alias(f"h{i}") for i, key in enumerate(keys)]
    return rows.select(*hashes)


def count_in_table(
    keys: DataFrame, n_rows: int, choices: Sequence[Combination], size: int, seed: int
) -> Ints:
    """How many rows agree with each row of a sample in each combination of columns.

    The sample is sent with the function, as numbers, since pyspark can't broadcast large arrays
    when it encrypts.

    Args:
        keys: The hashes of the rows.
        n_rows: Their number.
        choices: The c combinations.
        size: About the number of rows of the sample.
        seed: The seed of the sample.

    Returns:
        int64[c, sampled rows].
    """
    sampled_keys = read_keys(sample(keys, n_rows, size, seed))
    found = fold(
        keys,
        lambda tables: count_alike(sampled_keys, choices, tables),
        lambda name, a, b: add(a, b),
    )
    counts: list[Floats] = [found[str(i)] for i in range(len(choices))]
    return np.array(counts).astype(np.int64).reshape(len(choices), len(sampled_keys))

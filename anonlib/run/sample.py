"""The sample of a source: the rows that come first in the order of a seeded hash."""

import numpy as np
import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anonlib.spark.values import hash_row
from anonlib.table.columns import CONTROLLER_HASH, HASH, TUPLE
from anonlib.table.schema import Role, Schema

#: The place of a row in the order of the sample.
SEEDED = "seeded"


def take_sample(rows: DataFrame, schema: Schema, n_rows: int, size: int, seed: int) -> pa.Table:
    """At most `size` of n_rows rows: those of the smallest seeded hash, in its order. Their columns
    are those of `list_sampled`."""
    names = list_sampled(schema)
    rows = with_sample_columns(rows, schema, seed).select(*names, SEEDED)
    limit = limit_sample(size, n_rows)
    if limit is not None:
        rows = rows.where(F.col(SEEDED) < F.lit(limit))
    return take_first(rows.toArrow(), size).select(names)


def limit_sample(size: int, n_rows: int) -> int | None:
    """The seeded hash, of 64 bits, below which a little more than `size` of n_rows rows are, so
    that chance can't leave the sample too small. None if all rows are needed."""
    share = 1.1 * size / n_rows + 1e-6
    return int(2**64 * share) - 2**63 if share < 1.0 else None


def list_sampled(schema: Schema) -> list[str]:
    """The columns of a sample."""
    roles = (Role.QUASI_IDENTIFIER, Role.SENSITIVE, Role.TARGET)
    columns = (*schema.of(*roles), *schema.context)
    controller = [] if schema.controller is None else [CONTROLLER_HASH]
    return [*dict.fromkeys([*[c.id for c in columns], *schema.unit]), HASH, TUPLE, *controller]


def with_sample_columns(rows: DataFrame, schema: Schema, seed: int) -> DataFrame:
    """Adds TUPLE, SEEDED and, with data controllers, CONTROLLER_HASH to the rows of a source."""
    added = {TUPLE: hash_tuple(rows, schema), SEEDED: F.xxhash64(F.lit(seed), F.col(HASH))}
    if schema.controller is not None:
        added[CONTROLLER_HASH] = F.xxhash64(schema.controller)
    return rows.withColumns(added)


def take_first(rows: pa.Table, size: int) -> pa.Table:
    """The rows that come first, in the order of HASH and SEEDED."""
    order = np.lexsort((rows.column(HASH).to_numpy(), rows.column(SEEDED).to_numpy()))
    return rows.take(pa.array(order[:size])).combine_chunks()


def hash_tuple(rows: DataFrame, schema: Schema) -> SparkColumn:
    """The hash of a row's quasi-identifiers and controller."""
    ids = [column.id for column in schema.quasi_identifiers]
    return hash_row(rows.select(*dict.fromkeys([*ids, *filter(None, [schema.controller])])))

"""Protected columns counted together, for models that hold where the others are known."""

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anonlib.block import Ints
from anonlib.config import Config
from anonlib.encoding import Values, codes_among, protected_codes
from anonlib.errors import Problem
from anonlib.partition._repair import Joint
from anonlib.resolve import bound_models, with_ids
from anonlib.schema import Schema
from anonlib.spark.values import canonical

#: Most combinations of values of the protected columns.
MAX_COMBINATIONS = 100_000
WHOLE = "__anonlib_whole"


def joint_counts(
    rows: DataFrame, schema: Schema, values: Mapping[str, Values], config: Config, by: str
) -> Joint:
    """How often each combination of the protected columns stands in each value of `by`, of
    0..n-1: exact, at most as many counts as there are rows."""
    return _joint(_grouped(rows, schema, config, by).toArrow(), schema, values, by)


def joint_problems(
    rows: DataFrame, schema: Schema, values: Mapping[str, Values], config: Config
) -> Iterator[Problem]:
    """Models that the whole table as one cell does not hold where other columns are known."""
    if not schema.joint:
        return
    names = [schema.by_id(id).name for id in schema.protected]
    grouped = _grouped(rows.withColumn(WHOLE, F.lit(0)), schema, config, WHOLE)
    found = grouped.limit(MAX_COMBINATIONS + 1).toArrow()
    if len(found) > MAX_COMBINATIONS:
        text = (
            f"columns {', '.join(names)} have more than {MAX_COMBINATIONS} combinations of values"
        )
        yield Problem("privacy.joint", f"{text}, too many; coarsen or drop some")
        return
    joint = _joint(found, schema, values, WHOLE)
    references = {id: each.reference for id, each in values.items()}
    for model in with_ids(bound_models(config), schema):
        if model.column is None:
            continue
        known = joint.known(model.column, references, bool(schema.unit))
        holding = model.holds(known.counts)
        if not holding.all():
            name = schema.by_id(model.column).name
            others = [other for other in names if other != name]
            verb = "are" if len(others) > 1 else "is"
            text = (
                f"{model.type}: column {name} does not hold it where {', '.join(others)} {verb} "
                f"known, in {(~holding).sum()} of {len(holding)} groups of the whole table; "
                "coarsen or drop a column, or leave joint out"
            )
            yield Problem("privacy.joint", text)


def _grouped(rows: DataFrame, schema: Schema, config: Config, by: str) -> DataFrame:
    tokens = config.privacy.missing_tokens
    columns = [
        canonical(F.col(id), schema.by_id(id).type, tokens).alias(id) for id in schema.protected
    ]
    return rows.select(by, *columns).groupBy(by, *schema.protected).count()


def _joint(found: pa.Table, schema: Schema, values: Mapping[str, Values], by: str) -> Joint:
    def codes(id: str) -> Ints:
        column = found.column(id).combine_chunks()
        if id in values:
            return codes_among(column, (), values[id].categories).astype(np.int64)
        return protected_codes(column, ()).astype(np.int64)

    leaf, count = (found.column(name).to_numpy().astype(np.int64) for name in (by, "count"))
    stacked = np.column_stack([codes(id) for id in schema.protected])
    return Joint(schema.protected, leaf, stacked, count)

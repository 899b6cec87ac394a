"""A release beside its source, as measures look at it: made in memory, with cells of the test's
own choice."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import anonlib
from anonlib.arrays import Ints
from anonlib.config.keys import new_token_key
from anonlib.evaluation.samples import is_held_out
from anonlib.evaluation.spark_case import SparkCase
from anonlib.recode import Cells, Domain
from anonlib.run.scan import scan
from anonlib.source.resolved_source import open_source
from anonlib.table.columns import DEAL, HELD, LINK, TOKEN, key_links, key_values
from anonlib.table.schema import Schema

LINK_KEY = b"of these tests"
#: From the source's rows, by id and in a fixed order, to the cell 0..m-1 of each.
Choice = Callable[[pa.Table], Ints]


def along(id: str, size: int) -> Choice:
    """Cells of `size` rows and more, of neighbours along a numeric column."""

    def cells(table: pa.Table) -> Ints:
        rank = np.argsort(np.argsort(table.column(id).to_numpy(), kind="stable"), kind="stable")
        return np.minimum(rank // size, max(len(rank) // size - 1, 0))

    return cells


def across(size: int) -> Choice:
    """Cells of `size` rows and more that have nothing in common."""
    return lambda table: np.arange(table.num_rows) % max(table.num_rows // size, 1)


def make_case(
    spark: SparkSession,
    config: Mapping[str, Any],
    frame: pd.DataFrame,
    cells: Choice,
    *,
    held_out: float = 0.0,
) -> SparkCase:
    """The case of a table and its release into these cells, whose rows are marked as held out if
    a share is given. Every row has its link, and its person's token if there is a unit."""
    parsed = anonlib.parse(config)
    source = open_source(spark, parsed, spark.createDataFrame(frame))
    scanned = scan(source, parsed)
    # In memory: measures read them often.
    typed = source.rows()
    schema, rows = source.schema, spark.createDataFrame(typed.toArrow(), typed.schema)
    out = is_held_out(schema, parsed.seed, held_out).alias(HELD)

    @cache
    def shadow(share: float) -> DataFrame:
        return _released(spark, schema, rows.where(~is_held_out(schema, parsed.seed, share)), cells)

    marked = rows.select("*", out) if held_out else rows
    return SparkCase.of(
        parsed,
        schema,
        source=rows,
        released=_released(spark, schema, marked, cells),
        n_source=scanned.n_rows,
        n_released=scanned.n_rows,
        encodings={encoding.id: encoding for encoding in scanned.encodings},
        shadow=shadow,
        link_key=LINK_KEY,
    )


def _released(spark: SparkSession, schema: Schema, rows: DataFrame, cells: Choice) -> DataFrame:
    table = rows.orderBy(DEAL).toArrow().combine_chunks()
    id = cells(table)
    released = {}
    for column in schema.released:
        values = table.column(column.id).combine_chunks()
        if column.recoder is not None:
            domain = Domain(column.order, column.hierarchy)
            of_cells = column.recoder.recode(values, Cells(id, int(id.max()) + 1), domain)
            values = of_cells.take(pa.array(id))
        released[column.id] = values
    if HELD in table.column_names:
        released[HELD] = table.column(HELD)
    released[LINK] = key_links(table.column(DEAL), LINK_KEY)
    if schema.unit:
        released[TOKEN] = key_values([table.column(id) for id in schema.unit], new_token_key())
    order = np.random.default_rng(0).permutation(table.num_rows)
    return spark.createDataFrame(pa.table(released).take(pa.array(order)))

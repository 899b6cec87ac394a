"""Figures of source columns that have no encoding, since no kernel uses them."""

from collections.abc import Sequence
from functools import reduce
from operator import and_

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anonlib.arrays import Ints
from anonlib.measure.case import PersonRows
from anonlib.spark.values import as_double, count_units
from anonlib.table.schema import Column, may_be_continuous


def summarize(source: DataFrame, columns: Sequence[Column]) -> dict[str, tuple[float, ...]]:
    """Figures of columns, by id. Cost: one aggregate.

    For numbers, dates and timestamps: the least and the greatest finite value, their mean and their
    standard deviation. For other types: the approximate number of distinct values.
    """
    aggregates = []
    for column in columns:
        if may_be_continuous(column.type):
            x = as_double(F.col(column.id), column.type)
            finite = F.when(
                F.abs(x) < float("inf"), x
            )  # also drops NaN, which is above inf in Spark
            aggregates += [F.min(finite), F.max(finite), F.avg(finite), F.stddev_pop(finite)]
        else:
            aggregates += [F.approx_count_distinct(column.id), *[F.lit(None)] * 3]
    if not aggregates:
        return {}
    named = [each.alias(f"a{i}") for i, each in enumerate(aggregates)]
    found = [each or 0.0 for each in source.agg(*named).collect()[0]]
    return {
        column.id: tuple(found[4 * i : 4 * i + (4 if may_be_continuous(column.type) else 1)])
        for i, column in enumerate(columns)
    }


def list_distinct_values(source: DataFrame, ids: Sequence[str]) -> dict[str, pa.Array]:
    """The distinct values of columns, without missing ones. Cost: one aggregate."""
    if not ids:
        return {}
    table = source.agg(*[F.collect_set(id).alias(id) for id in ids]).toArrow()
    return {id: table.column(id).combine_chunks().flatten() for id in ids}


def count_value_persons(source: DataFrame, unit: Sequence[str], id: str) -> tuple[pa.Array, Ints]:
    """As `Case.count_value_persons`. unit: As for `count_person_rows`."""
    table = source.groupBy(id).agg(count_units(unit).alias("n_persons")).toArrow()
    return table.column(id).combine_chunks(), table.column("n_persons").to_numpy()


def count_person_rows(source: DataFrame, unit: Sequence[str]) -> PersonRows:
    """How rows belong to persons. Cost: one aggregate with a unit.

    Args:
        source: The source.
        unit: The columns that identify a person; empty if each row is a person.
    """
    if not unit:
        return PersonRows(1, 0)
    counts = source.groupBy(*unit).count()
    is_person = reduce(and_, [F.col(id).isNotNull() for id in unit])
    most = F.max(F.when(is_person, F.col("count")))
    of_nobody = F.sum(F.when(~is_person, F.col("count")))
    row = counts.agg(most, of_nobody).collect()[0]
    return PersonRows(int(row[0] or 1), int(row[1] or 0))

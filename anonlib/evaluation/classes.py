"""Counts the classes of a release and of its source."""

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import and_

import numpy as np
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from anonlib.auditing import AuditSpec
from anonlib.auditing.view import View, make_view
from anonlib.measure.case import CertaintyBin, Sizes
from anonlib.table.columns import TOKEN
from anonlib.table.schema import Schema


def make_release_view(
    released: DataFrame, schema: Schema, spec: AuditSpec, protected: Sequence[str] = ()
) -> tuple[View, AuditSpec]:
    """A release as its audit sees it.

    Args:
        released: The released rows, with columns named by id.
        schema: The columns.
        spec: The spec of the published table.
        protected: Names of protected columns to include.

    Returns:
        The view, and its spec. With a unit, the spec counts persons by their tokens, if the rows
        still have them.
    """
    columns = [F.col(column.id).alias(column.name) for column in schema.released]
    if spec.persons != "rows" and TOKEN in released.columns:
        columns.append(F.col(TOKEN))
        spec = replace(spec, persons="token", token=TOKEN)
    return make_view(released.select(*columns), spec, protected, ()), spec


def tally_released_sizes(released: DataFrame, schema: Schema, spec: AuditSpec) -> Sizes:
    """The sizes of the classes of a release.

    Cost: one aggregate; with a unit, another one by person. The driver gets one row per size: at
    most (2 n)^(1/2) for n rows.
    """
    view, spec = make_release_view(released, schema, spec)
    if view.token is not None:
        return _count_persons(view.rows, view.keys, [view.token])
    return _count_rows(view.rows, view.keys, persons=spec.persons != "unknown")


def tally_source_sizes(source: DataFrame, schema: Schema) -> Sizes:
    """The sizes of the classes of a source. Cost: as `tally_released_sizes`."""
    keys = [column.id for column in schema.quasi_identifiers]
    if schema.unit:
        return _count_persons(source, keys, schema.unit)
    return _count_rows(source, keys, persons=True)


def _count_rows(rows: DataFrame, keys: Sequence[str], *, persons: bool) -> Sizes:
    """The sizes of classes in rows. persons: As in `Sizes`."""
    classes = rows.groupBy(*keys).agg(F.count("*").alias("size"))
    found = sorted(classes.where("size > 0").groupBy("size").count().collect())
    size, n_classes = np.array(found, np.int64).reshape(-1, 2).T
    return Sizes.of_rows(size, n_classes, persons=persons)


def _count_persons(rows: DataFrame, keys: Sequence[str], person: Sequence[str]) -> Sizes:
    """The sizes of classes in persons, by the columns that identify them. Rows in which one of
    these is missing do not count."""
    known = reduce(and_, [F.col(name).isNotNull() for name in person])
    pairs = rows.where(known).select(*keys, *person).distinct()
    sized = pairs.withColumn("size", F.count("*").over(Window.partitionBy(*keys)))
    smallest = sized.groupBy(*person).agg(F.min("size").alias("size"))
    both = sized.select("size", F.lit(1).alias("pair"), F.lit(0).alias("person")).unionAll(
        smallest.select("size", F.lit(0), F.lit(1))
    )
    found = sorted(both.groupBy("size").agg(F.sum("pair"), F.sum("person")).collect())
    size, n_pairs, n_persons = np.array(found, np.int64).reshape(-1, 3).T
    return Sizes(size, n_pairs // size, n_persons, persons=True)


def rate_certainty(
    view: View, value: str, threshold: float, n_bins: int
) -> tuple[list[CertaintyBin], int, int]:
    """How certain classes make a guess of a column. Cost: two aggregates.

    Args:
        view: The release.
        value: The column of the view.
        threshold: A class is certain if one value has at least this share.
        n_bins: The number of bins of certainty.

    Returns:
        The bins, without classes that have no present value.
        The number of rows with a present value.
        The number of rows with the most frequent value.
    """
    n, there = F.col("n"), F.col(value).isNotNull()
    counts = view.rows.groupBy(*view.keys, value).agg(F.count("*").alias("n"))
    classes = counts.groupBy(*view.keys).agg(
        F.sum(n).alias("rows"),
        F.sum(F.when(there, n)).alias("present"),
        F.max(F.when(there, n)).alias("most"),
    )
    classes = classes.where("present > 0").withColumn("share", F.expr("most / present"))
    last = F.lit(n_bins - 1)
    place = F.least(F.expr(f"({n_bins} * most) div present").cast("int"), last)
    bins = classes.groupBy(place.alias("bin")).agg(
        F.count("*").alias("classes"),
        F.sum("rows").alias("rows"),
        F.sum("present").alias("present"),
        F.sum("most").alias("most"),
        F.max("share").alias("certainty"),
        F.sum(F.when(F.col("share") >= threshold, F.col("present")).otherwise(0)).alias("certain"),
        F.min("rows").alias("smallest"),
    )
    whole = view.rows.where(there).groupBy(value).agg(F.count("*").alias("n"))
    row = whole.agg(F.sum("n"), F.max("n")).collect()[0]
    found = sorted(CertaintyBin(*each) for each in bins.collect())
    return found, int(row[0] or 0), int(row[1] or 0)

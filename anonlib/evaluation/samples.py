"""Samples of a source: rows to attack, persons to hold out, and pairs of original and released
rows."""

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from anonlib.measure.draws import (
    HELD_OUT,
    MAX_PAIRS,
    MODULUS,
    PAIRS,
    limit_pairs,
    limit_share,
    match_links,
)
from anonlib.spark.values import hash_row
from anonlib.table.columns import DEAL, HELD, LINK, NO_LINK, key_links
from anonlib.table.schema import Schema

_PLACE, _RANK, _COUNT = "__anonlib_place", "__anonlib_rank", "__anonlib_count"


def is_sampled(n_rows: int) -> Column:
    """Whether a row is in the sample for attacks, by its hash (`limit_pairs`)."""
    return F.pmod(F.xxhash64(F.lit(PAIRS), DEAL), F.lit(MODULUS)) < limit_pairs(n_rows)


def is_held_out(schema: Schema, seed: int, share: float) -> Column:
    """Whether the person of a row is held out. It is the same for all rows of a person."""
    persons = [F.col(id) for id in schema.unit] or [F.col(DEAL)]
    nulls = [column.isNull() for column in persons]
    hashed = F.xxhash64(F.lit(HELD_OUT.format(seed)), *nulls, *persons)
    return F.pmod(hashed, F.lit(MODULUS)) < limit_share(share)


def pair_samples(
    source: DataFrame, released: DataFrame, schema: Schema, n_source: int, link_key: bytes
) -> tuple[pa.Table, pa.Table]:
    """A sample of original rows with their released rows. Suppressed rows are left out.

    Args:
        source: The original rows.
        released: The released rows, with links.
        schema: The columns.
        n_source: Rows of the source.
        link_key: The key of the links, which are keyed hashes. Only the run has it, in memory.

    Returns:
        At most MAX_PAIRS original rows, and the released row of each, in the same order.
    """
    ids = [c.id for c in schema.columns if c.id in source.columns]
    theirs = source.where(is_sampled(n_source)).select(*ids, DEAL)
    # The sample may have more rows than the limit: take the first by their hashes.
    theirs = theirs.orderBy(DEAL).limit(MAX_PAIRS).toArrow()
    links = key_links(theirs.column(DEAL), link_key)
    ours = released.where(F.col(LINK) != NO_LINK).drop(HELD)
    ours = ours.withColumn(_PLACE, hash_row(ours.drop(LINK)))
    if len(links) == MAX_PAIRS:
        ours = _of(ours, links)
    found = ours.orderBy(_PLACE).drop(_PLACE).toArrow()
    left, right = match_links(links, found.column(LINK))
    return theirs.take(left).drop([DEAL]), found.take(right).drop([LINK])


def _of(ours: DataFrame, links: pa.Array) -> DataFrame:
    """The released rows with some links. Each link gets as many rows as it occurs in `links`: the
    first rows by their hashes."""
    counts = pa.table({LINK: links}).group_by(LINK).aggregate([([], "count_all")])
    wanted = ours.sparkSession.createDataFrame(counts.rename_columns([LINK, _COUNT]))
    rank = F.row_number().over(Window.partitionBy(LINK).orderBy(_PLACE))
    of_these = ours.join(F.broadcast(wanted), LINK).withColumn(_RANK, rank)
    return of_these.where(F.col(_RANK) <= F.col(_COUNT)).drop(_RANK, _COUNT)

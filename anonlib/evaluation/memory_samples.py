"""Samples of tables in memory: the rows and persons that Spark draws, by the same hashes."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from anonlib.arrays import Bools, Ints
from anonlib.measure.draws import (
    HELD_OUT,
    MAX_PAIRS,
    MODULUS,
    PAIRS,
    SAMPLE,
    limit_pairs,
    limit_share,
    match_links,
)
from anonlib.table.columns import DEAL, HELD, LINK, NO_LINK, key_links
from anonlib.table.hashes import hash_rows, hash_text, hash_values
from anonlib.table.schema import Schema
from anonlib.worker.marks import Marks


def with_deal(table: pa.Table, schema: Schema) -> pa.Table:
    """The rows of a source with DEAL, the hash of all columns of the schema."""
    hashes = hash_rows(to_arrays(table, [column.id for column in schema.columns]))
    return table.append_column(DEAL, pa.array(hashes))


def mark(table: pa.Table, schema: Schema, seed: int, marks: Marks) -> pa.Table:
    """The rows of a source (`with_deal`) with what measures need to come back to them."""
    if marks.link_key:
        place = hash_values(table.column(DEAL).combine_chunks(), hash_text(PAIRS)) % MODULUS
        drawn = place < limit_pairs(table.num_rows)
        link = np.where(drawn, table.column(DEAL).to_numpy(), NO_LINK)
        table = table.append_column(LINK, pa.array(link))
    if marks.share:
        table = table.append_column(HELD, pa.array(find_held_out(table, schema, seed, marks.share)))
    return table


def find_held_out(table: pa.Table, schema: Schema, seed: int, share: float) -> Bools:
    """bool[n]. Whether the person of a row is held out."""
    persons = to_arrays(table, schema.unit or (DEAL,))
    place = hash_rows(persons, hash_text(HELD_OUT.format(seed))) % MODULUS
    held: Bools = place < limit_share(share)
    return held


def draw_sample(table: pa.Table, size: int, seed: int) -> pa.Table:
    """A sample of about `size` rows. Of equal rows it has their share. Its rows and their order
    depend only on values and seed."""
    if not table.num_columns:
        return table
    hashes = hash_rows(to_arrays(table, table.column_names))
    _, first, count = np.unique(hashes, return_index=True, return_counts=True)
    place = hash_values(pa.array(hashes[first]), hash_text(SAMPLE.format(seed)))
    share = min(1.0, size / max(table.num_rows, 1))
    kept = np.floor(count * share + (place % MODULUS) / MODULUS).astype(np.int64)
    order = np.argsort(place, kind="stable")
    return table.take(pa.array(np.repeat(first[order], kept[order]))).combine_chunks()


def pair_rows(
    source: pa.Table, released: pa.Table, schema: Schema, link_key: bytes
) -> tuple[pa.Table, pa.Table]:
    """At most MAX_PAIRS original rows, and the released row of each, in the same order.

    Args:
        source: The original rows, with LINK before it was keyed.
        released: The released rows, with the keyed LINK.
        schema: The columns.
        link_key: The key of the links.
    """
    ids = [c.id for c in schema.columns]
    theirs = source.filter(pa.array(source.column(LINK).to_numpy() != NO_LINK))
    order = np.argsort(theirs.column(DEAL).to_numpy(), kind="stable")[:MAX_PAIRS]
    theirs = theirs.take(pa.array(order))
    ours = released.filter(pa.array(released.column(LINK).to_numpy() != NO_LINK))
    named = [c.id for c in schema.released]
    ours = ours.take(pa.array(np.argsort(hash_rows(to_arrays(ours, named)), kind="stable")))
    left, right = match_links(key_links(theirs.column(DEAL), link_key), ours.column(LINK))
    return theirs.select(ids).take(left), ours.select(named).take(right)


def to_arrays(table: pa.Table, ids: Sequence[str]) -> list[pa.Array]:
    """Columns of a table, each as one array."""
    return [table.column(id).combine_chunks() for id in ids]


def take_first_of_each(numbers: Ints, size: int) -> Ints:
    """int64[size]. A place of each number from 0 to size - 1."""
    first = np.empty(size, np.int64)
    first[numbers[::-1]] = np.arange(len(numbers))[::-1]
    return first

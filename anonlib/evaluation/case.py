"""What measures look at: a release beside its source, with the columns named by id."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from anonlib.config.model import Config
from anonlib.evaluation.classes import Sizes, released_sizes
from anonlib.spark.values import row_hash
from anonlib.table.columns import DEAL, HELD, LINK, NO_LINK, keyed_links
from anonlib.table.encoding import Encoding
from anonlib.table.schema import Schema

#: Most pairs of an original and a released row that an attack may look at.
MAX_PAIRS = 10_000
_PLACE, _RANK, _COUNT = "__anonlib_place", "__anonlib_rank", "__anonlib_count"


@dataclass(frozen=True)
class Split:
    """Rows to train models on and rows to test them on.

    train: the released rows of the persons that are not held out. raw: the original rows of the
    same. test: of the persons held out, the original rows; where the release was split after it
    was made, released ones. All have the released columns by id.
    """

    train: DataFrame
    raw: DataFrame
    test: DataFrame


@dataclass(frozen=True)
class Case:
    """One release and its source.

    source: the rows that were to be released, with the schema's columns by id (typed, NaN as null
    in quasi-identifiers), HASH and DEAL. released: the released columns by id. n_source, n_released
    are their rows. encodings: how kernels saw each quasi-identifier of the whole source, by id
    (means, deviations, ranges, categories). shadow: makes a release of the persons that are not
    held out, by their share; its rows. link_key: of the links of released rows to original ones.
    """

    config: Config
    schema: Schema
    source: DataFrame
    released: DataFrame
    n_source: int
    n_released: int
    encodings: dict[str, Encoding]
    shadow: Callable[[float], DataFrame] = field(repr=False)
    link_key: bytes = field(default=b"", repr=False)
    #: what measures found together, for each other
    shared: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def k(self) -> int:
        return self.config.k

    @property
    def looked_at_target(self) -> bool:
        """Whether the kernel or a partitioner saw the target."""
        return self.config.needs_target

    @cached_property
    def sizes(self) -> Sizes:
        """The sizes of the release's classes: one aggregate, whoever asks."""
        return released_sizes(self.released, self.schema, self.config)

    @cached_property
    def pairs(self) -> tuple[pa.Table, pa.Table] | None:
        """At most MAX_PAIRS rows of the source, and what each was released as, in one order: a
        sample by the rows' hashes. Rows that were suppressed are left out. None where the link is
        gone: it is never published, and in staging it is a hash under a key that the run alone has,
        in memory."""
        if LINK not in self.released.columns:
            return None
        ids = [c.id for c in self.schema.columns if c.id in self.source.columns]
        theirs = self.source.where(sampled(self.n_source)).select(*ids, DEAL)
        # Of rows that are often repeated there may be any number: the first by their hashes count.
        theirs = theirs.orderBy(DEAL).limit(MAX_PAIRS).toArrow()
        links = keyed_links(theirs.column(DEAL), self.link_key)
        ours = self.released.where(F.col(LINK) != NO_LINK).drop(HELD)
        ours = ours.withColumn(_PLACE, row_hash(ours.drop(LINK)))
        if len(links) == MAX_PAIRS:
            ours = _of(ours, links)
        found = ours.orderBy(_PLACE).drop(_PLACE).toArrow()
        left, right = _matched(links, found.column(LINK))
        return theirs.take(left).drop([DEAL]), found.take(right).drop([LINK])

    def split(self, share: float, *, after: bool = False) -> Split | None:
        """The persons apart by a hash, `share` of them held out before a release of the others is
        made (a shadow, for this alone); or `after`, out of the release itself: None where it is
        published already, since its rows then have no link to persons."""
        out = held(self.schema, self.config.seed, share)
        ids = [column.id for column in self.schema.released]
        if not after:
            train = self.shadow(share).select(*ids)
            raw, test = self.source.where(~out), self.source.where(out)
            return Split(train, raw.select(*ids), test.select(*ids))
        if HELD not in self.released.columns:
            return None
        train, test = self.released.where(~F.col(HELD)), self.released.where(HELD)
        raw = self.source.where(~out).select(*ids)
        return Split(train.select(*ids), raw, test.select(*ids))


def sampled(n_rows: int) -> SparkColumn:
    """Whether a row is among those that attacks look at, by its hash: MAX_PAIRS or fewer, but for
    chance and for rows that repeat."""
    modulus = 2**20
    share = min(modulus, 0.97 * modulus * MAX_PAIRS / max(n_rows, 1))
    return F.pmod(F.xxhash64(F.lit("pairs"), DEAL), F.lit(modulus)) < int(np.ceil(share))


def held(schema: Schema, seed: int, share: float) -> SparkColumn:
    """Whether a row's person is held out: the same of all rows of a person."""
    persons = [F.col(id) for id in schema.unit] or [F.col(DEAL)]
    nulls = [column.isNull() for column in persons]
    place = F.pmod(F.xxhash64(F.lit(f"held out {seed}"), *nulls, *persons), F.lit(2**20))
    return place < int(share * 2**20)


def _of(ours: DataFrame, links: pa.Array) -> DataFrame:
    """Of each link's rows as many as there are of it among these, the first by their hashes."""
    counts = pa.table({LINK: links}).group_by(LINK).aggregate([([], "count_all")])
    wanted = ours.sparkSession.createDataFrame(counts.rename_columns([LINK, _COUNT]))
    rank = F.row_number().over(Window.partitionBy(LINK).orderBy(_PLACE))
    of_these = ours.join(F.broadcast(wanted), LINK).withColumn(_RANK, rank)
    return of_these.where(F.col(_RANK) <= F.col(_COUNT)).drop(_RANK, _COUNT)


def _matched(theirs: pa.Array, ours: pa.ChunkedArray) -> tuple[pa.Array, pa.Array]:
    """Places of equal hashes on both sides, each used once, in the order of the first side. Rows of
    one hash are equal in all that the run reads, so that any of them may stand for the others."""
    left, right = theirs.to_numpy(), ours.to_numpy()
    first, second = np.argsort(left, kind="stable"), np.argsort(right, kind="stable")
    left, right = left[first], right[second]
    among = np.arange(len(right)) - np.searchsorted(right, right)
    place = np.searchsorted(left, right) + among
    there = place < np.searchsorted(left, right, side="right")
    mine, other = first[place[there]], second[there]
    # Hashes are under a key of the run: their order is no order of figures that are to come again.
    order = np.argsort(mine)[:MAX_PAIRS]
    return pa.array(mine[order]), pa.array(other[order])

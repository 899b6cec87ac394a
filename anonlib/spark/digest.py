"""The row count and an order-free hash of a table: do two tables hold the same rows?"""

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from anonlib.spark.values import row_hash


@dataclass(frozen=True)
class Digest:
    """The digest of a multiset of rows; the order of rows does not matter.

    Attributes:
        n_rows: The number of rows.
        low: The sum of the low 32 bits of the rows' 64-bit hashes.
        high: The sum of their high 32 bits.
    """

    n_rows: int
    low: int
    high: int


def sums(frame: DataFrame, kept: Column | None = None) -> list[Column]:
    """The aggregates that `make_digest` reads: over all rows, or over rows where `kept` is true."""
    hashed = row_hash(frame)
    if kept is not None:
        hashed = F.when(kept, hashed)
    low, high = hashed.bitwiseAND(F.lit(0xFFFFFFFF)), F.shiftright(hashed, 32)
    return [
        F.count(hashed).alias("digest_n"),
        F.sum(low).alias("digest_low"),
        F.sum(high).alias("digest_high"),
    ]


def make_digest(row: Row) -> Digest:
    """The digest from a row with the aggregates of `sums`."""
    return Digest(int(row.digest_n), int(row.digest_low or 0), int(row.digest_high or 0))


def digest(frame: DataFrame) -> Digest:
    """The digest of a frame's rows."""
    return make_digest(frame.agg(*sums(frame)).collect()[0])

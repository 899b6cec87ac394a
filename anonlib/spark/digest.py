"""Digests of tables in Spark; `anonlib.table.table_digest` has the same of tables in memory."""

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from anonlib.spark.translation import translate_errors
from anonlib.spark.values import make_hashable
from anonlib.table.columns import HIGH, LOW
from anonlib.table.table_digest import Digest

#: Hashes are summed in pieces of 16 bits, so that 64-bit sums have room for 2**47 rows. Spark would
#: refuse the sum of whole hashes as an overflow, and decimals are slow.
PIECE_BITS = 16
PIECES = [
    (f"{half}_{shift}", half, shift) for half in (LOW, HIGH) for shift in range(0, 64, PIECE_BITS)
]


def with_halves(frame: DataFrame, names: Sequence[str]) -> DataFrame:
    """Adds LOW and HIGH, the halves of a 128-bit hash of some columns: two independent hashes of 64
    bits. Text is hashed by its bytes, whatever its collation."""
    fields = frame.select(*names).schema.fields
    nulls = [F.col(field.name).isNull() for field in fields]
    values = [make_hashable(field, collated=False) for field in fields]
    low, high = F.xxhash64(*nulls, *values), F.xxhash64(F.lit(1), *nulls, *values)
    return frame.select("*", low.alias(LOW), high.alias(HIGH))


def sum_halves(condition: Column | None = None) -> list[Column]:
    """The aggregates that `make_digest` reads.

    condition: Which rows count; all by default. The rows must have LOW and HIGH.
    """
    counted = F.lit(True) if condition is None else condition
    mask = F.lit(2**PIECE_BITS - 1)
    found = [F.count_if(counted).alias("digest_n")]
    for name, half, shift in PIECES:
        piece = F.shiftrightunsigned(half, shift).bitwiseAND(mask)
        found.append(F.sum(F.when(counted, piece)).alias(name))
    return found


def make_digest(row: Row | Mapping[str, Any]) -> Digest:
    """Makes the digest from a row of the aggregates of `sums`."""
    found = dict.fromkeys((LOW, HIGH), 0)
    for name, half, shift in PIECES:
        found[half] += int(row[name] or 0) << shift
    return Digest(int(row["digest_n"]), found[LOW] % 2**64, found[HIGH] % 2**64)


def digest(frame: DataFrame) -> Digest:
    """The digest of a frame's rows."""
    return digest_halves(with_halves(frame, frame.columns))


def digest_table(table: DataFrame, places: Sequence[int] | None = None) -> Digest:
    """The digest of a published table: of its values, by the order of its columns.

    places: Those of the columns in another order.
    """
    order = range(len(table.columns)) if places is None else places
    with translate_errors("release.path"):
        plain = table.toDF(*[f"c{i}" for i in range(len(table.columns))])
        return digest(plain.select(*[f"c{i}" for i in order]))


def digest_as(table: DataFrame, columns: Sequence[tuple[int, str]]) -> Digest | None:
    """The digest of a published table: of the values of these columns, by their places and in this
    order, read as these types of whole numbers. None if a value is none of its type.

    Cost: a pass, and one more if a column has another type.
    """
    with translate_errors("release.path"):
        plain = table.toDF(*[f"c{i}" for i in range(len(table.columns))])
        narrow = {i: type for i, type in columns if table.schema[i].dataType.simpleString() != type}
        for i, type in narrow.items():
            lost = F.col(f"c{i}").isNotNull() & F.col(f"c{i}").try_cast(type).isNull()
            if not plain.where(lost).isEmpty():
                return None
            plain = plain.withColumn(f"c{i}", F.col(f"c{i}").try_cast(type))
        return digest(plain.select(*[f"c{i}" for i, _ in columns]))


def digest_halves(rows: DataFrame, condition: Column | None = None) -> Digest:
    """The digest of rows with LOW and HIGH, and with a condition of those that it holds of."""
    return make_digest(rows.agg(*sum_halves(condition)).collect()[0])

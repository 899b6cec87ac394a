"""Arrays that all rows share, and look-ups in them.

Spark has an object for each value of an array in a query's text, and every task reads all of them:
7.6 s a task for a tree of 60,000 leaves. Here an array is one piece of bytes, which a task gets
with the broadcast of its stage and reads as it is.
"""

from collections.abc import Mapping
from math import ceil, log2

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from anonlib.arrays import Ints
from anonlib.partition.cuts import Singles
from anonlib.spark.jvm import java_class


def constants(arrays: Mapping[str, pa.Array]) -> dict[str, Column]:
    """Columns that have one array, the same in every row. Query plans don't show its values.

    Cost: one query without tasks for all of them, some 20 ms.
    """
    spark = SparkSession.active()  # any session of this JVM would do
    lists = {
        name: pa.ListArray.from_arrays(pa.array([0, len(each)], pa.int32()), each)
        for name, each in arrays.items()
    }
    frame = spark.createDataFrame(pa.table(lists))
    query = frame._jdf.queryExecution()
    row, fields = query.executedPlan().executeCollect()[0], query.analyzed().schema()
    literal = java_class(spark, "org.apache.spark.sql.catalyst.expressions.Literal")
    to_column = java_class(spark, "org.apache.spark.sql.classic.ExpressionUtils").column
    return {
        name: Column(to_column(literal(row.getArray(i), fields.apply(i).dataType())))
        for i, name in enumerate(lists)
    }


def rows_of(values: Singles) -> pa.Array:
    """The rows of a float32[n, d], as lists, for `constants`."""
    n, d = values.shape
    return pa.ListArray.from_arrays(pa.array(range(0, n * d + 1, d), pa.int32()), values.ravel())


def at(values: Ints, place: Column) -> Column:
    """The value at a place of an int64[n], whose values have 32 bits. Null where there is no such
    place."""
    return F.get(constants({"values": pa.array(values, pa.int32())})["values"], place)


def look_up(key: Column, hashes: Ints, values: Ints, default: int) -> Column:
    """The value of a key.

    Args:
        key: 64-bit hashes.
        hashes: int64[n]. All keys.
        values: int64[n]. The value of each, of 32 bits.
        default: The value of a key that is not in `hashes`.
    """
    if not len(hashes):
        return F.lit(default)
    n_buckets = 2 ** ceil(log2(len(hashes)))
    bucket = hashes % n_buckets
    order = np.argsort(bucket, kind="stable")
    starts = np.searchsorted(bucket[order], np.arange(n_buckets + 1))
    # In each bucket the default comes first: `array_position` is 0 for a key that is not there.
    results = np.insert(values[order], starts[:-1], default)
    parts = constants(
        {
            "keys": _lists(starts, pa.array(hashes[order], pa.int64())),
            "results": _lists(starts + np.arange(n_buckets + 1), pa.array(results, pa.int32())),
        }
    )
    here = F.pmod(key, F.lit(n_buckets)).cast("int")
    place = F.array_position(F.get(parts["keys"], here), key)
    return F.get(F.get(parts["results"], here), place.cast("int"))


def _lists(starts: Ints, values: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(starts, pa.int32()), values)

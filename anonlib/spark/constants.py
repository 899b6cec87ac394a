"""Arrays that all rows share, and look-ups in them.

Spark has an object for each value of an array in a query's text, and every task reads all of them:
0.5 s a task for a tree of 60,000 leaves. Here an array is one piece of bytes, which a task gets
with the broadcast of its stage and reads as it is.
"""

from collections.abc import Mapping
from math import ceil, log2
from typing import Any

import numpy as np
import numpy.typing as npt
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from anonlib.arrays import Ints
from anonlib.spark.jvm import find_java_class

Bytes = npt.NDArray[np.uint8]

#: Spark's names of the types of values.
_TYPES = {"int32": "int", "int64": "bigint", "float32": "float"}
#: Bytes of a word.
_WORD = 8
#: Keys that are looked at one by one, about.
FEW = 8


def make_constants(arrays: Mapping[str, npt.NDArray[Any]]) -> dict[str, Column]:
    """Columns that have one array each, the same in every row. Query plans don't show its values.

    Args:
        arrays: int32, int64 or float32, [n] or [n, d].
    """
    spark = SparkSession.active()  # any session of this JVM would do
    unsafe = find_java_class(spark, "org.apache.spark.sql.catalyst.expressions.UnsafeArrayData")
    literal = find_java_class(spark, "org.apache.spark.sql.catalyst.expressions.Literal")
    start = find_java_class(spark, "org.apache.spark.unsafe.Platform").BYTE_ARRAY_OFFSET
    to_type = find_java_class(spark, "org.apache.spark.sql.types.DataType").fromDDL
    to_column = find_java_class(spark, "org.apache.spark.sql.classic.ExpressionUtils").column
    result = {}
    for name, values in arrays.items():
        data = bytearray(_as_spark_keeps(values).tobytes())
        array = unsafe()
        array.pointTo(data, start, len(data))
        type = "array<" * values.ndim + _TYPES[values.dtype.name] + ">" * values.ndim
        result[name] = Column(to_column(literal(array, to_type(type))))
    return result


def _as_spark_keeps(values: npt.NDArray[Any]) -> Bytes:
    """uint8[bytes]. An array as Spark's UnsafeArrayData: the number of elements, a bit for each of
    them that is null, then the elements, all in whole words. For an element that is an array, there
    is its place and its size; the arrays follow."""
    if values.ndim == 1:
        return _rows(values[None]).ravel()
    rows = _rows(values)
    n, size = rows.shape
    head = _WORD + _WORD * ceil(n / 64) + _WORD * n
    places = ((head + size * np.arange(n, dtype=np.int64)) << 32) | size
    return np.concatenate([_rows(places[None]).ravel(), rows.ravel()])


def _rows(values: npt.NDArray[Any]) -> Bytes:
    """uint8[n, bytes]. The arrays of n rows of the same length."""
    n, d = values.shape
    nulls = _WORD * ceil(d / 64)
    content = values.view(np.uint8).reshape(n, d * values.itemsize)
    size = _WORD + nulls + _WORD * ceil(content.shape[1] / _WORD)
    result = np.zeros((n, size), np.uint8)
    result[:, :_WORD] = np.array([d], np.int64).view(np.uint8)
    result[:, _WORD + nulls : _WORD + nulls + content.shape[1]] = content
    return result


def at(values: Ints, place: Column) -> Column:
    """The value at a place of an int64[n], whose values have 32 bits. Null where there is no such
    place."""
    return F.get(make_constants({"values": values.astype(np.int32)})["values"], place)


def look_up(key: Column, hashes: Ints, values: Ints, default: int) -> Column:
    """The value of a key.

    Args:
        key: 64-bit hashes.
        hashes: int64[n]. All keys, each once.
        values: int64[n]. The value of each, of 32 bits.
        default: The value of a key that is null or not in `hashes`.
    """
    # Each part is written once where that is possible: what is written twice may be computed twice.
    if len(hashes) <= FEW:
        parts = make_constants(
            {"keys": hashes, "values": np.array([default, *values.tolist()], np.int32)}
        )
        place = F.array_position(parts["keys"], key)
        return F.coalesce(F.get(parts["values"], place.cast("int")), F.lit(default))
    n_buckets = 2 ** ceil(log2(len(hashes) / FEW))
    bucket = hashes % n_buckets
    order = np.argsort(bucket, kind="stable")
    size = np.bincount(bucket, minlength=n_buckets)
    start = np.cumsum(size) - size
    # The default is before the values of each bucket, at the place of a key that is not there.
    parts = make_constants(
        {
            "start": (start + 1).astype(np.int32),
            "size": size.astype(np.int32),
            "keys": hashes[order],
            "default": (start + np.arange(n_buckets)).astype(np.int32),
            "values": np.insert(values[order], start, default).astype(np.int32),
        }
    )
    here = F.pmod(key, F.lit(n_buckets)).cast("int")
    there = F.slice(parts["keys"], F.get(parts["start"], here), F.get(parts["size"], here))
    place = F.get(parts["default"], here) + F.array_position(there, key).cast("int")
    return F.coalesce(F.get(parts["values"], place), F.lit(default))

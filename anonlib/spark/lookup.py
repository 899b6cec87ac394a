"""Look-ups in small tables that are literals of a query plan: row-local, without a join."""

from collections.abc import Iterable, Sequence
from math import ceil, log2

from pyspark.sql import Column
from pyspark.sql import functions as F

from anonlib.block import Ints
from anonlib.partition._plan import Singles

#: Longer lists are looked up by buckets of their hashes.
LONGEST = 32


def matrix(values: Singles) -> Column:
    """An array of rows of floats as one folded literal: nine digits say a float exactly."""
    text = ",".join("[" + ",".join(f"{v:.9g}" for v in row) + "]" for row in values.tolist())
    return F.from_json(F.lit(f"[{text}]"), "array<array<float>>")


def at(values: Ints, place: Column) -> Column:
    """The value at a place of an array, which is one folded literal."""
    return F.get(_array(values.tolist(), "int"), place)


def looked_up(key: Column, hashes: Sequence[int], values: Iterable[int], default: int) -> Column:
    """The value that goes with a key, a hash, `default` where it is not among `hashes`."""
    found = list(zip(hashes, values, strict=True))
    if len(found) <= LONGEST:
        if not found:
            return F.lit(default)
        place = F.array_position(_array([h for h, _ in found], "bigint"), key)
        return F.get(_array([default, *[v for _, v in found]], "int"), place.cast("int"))
    n_buckets = 2 ** ceil(log2(len(found)))
    keys: list[list[int]] = [[] for _ in range(n_buckets)]
    results = [[default] for _ in range(n_buckets)]
    for h, v in found:
        keys[h % n_buckets].append(h)
        results[h % n_buckets].append(v)
    bucket = F.pmod(key, F.lit(n_buckets)).cast("int")
    place = F.array_position(F.get(_nested(keys, "bigint"), bucket), key)
    return F.get(F.get(_nested(results, "int"), bucket), place.cast("int"))


def _array(values: Sequence[int], type: str) -> Column:
    return F.split(F.lit(",".join(map(str, values))), ",").cast(f"array<{type}>")


def _nested(values: Sequence[Sequence[int]], type: str) -> Column:
    text = ",".join("[" + ",".join(map(str, row)) + "]" for row in values)
    return F.from_json(F.lit(f"[{text}]"), f"array<array<{type}>>")

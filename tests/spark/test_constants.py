"""Arrays that all rows share: Spark reads in them what was put in, and finds what they have."""

from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from anonlib.spark.constants import at, look_up, make_constants

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32"])
def test_arrays_are_read_as_they_are(spark: SparkSession, dtype: str) -> None:
    """Of every length around that of a word of null bits, flat and as rows."""
    random = np.random.default_rng(0)
    arrays: dict[str, Any] = {}
    for n in (0, 1, 2, 63, 64, 65, 1000):
        values = random.integers(-(2**31), 2**31 - 2, n).astype(dtype)
        arrays[f"a{n}"] = values
        arrays[f"b{n}"] = np.stack([values, values + 1, -values])
        arrays[f"c{n}"] = values[:, None]
    shared = make_constants(arrays)
    row = spark.range(1).select(*[value.alias(name) for name, value in shared.items()]).collect()[0]
    for name, values in arrays.items():
        assert row[name] == values.tolist(), name
    text = str(shared["b65"])  # texts of plans show no value
    assert not [value for value in arrays["a65"].tolist() if str(value) in text]


def test_places(spark: SparkSession) -> None:
    place = F.col("id").cast("int")
    rows = spark.range(-1, 4).select(at(np.array([5, -6, 7]), place).alias("v")).collect()
    assert [row.v for row in rows] == [None, 5, -6, 7, None]


@pytest.mark.parametrize("step", [1, 2**20])
@pytest.mark.parametrize("n", [0, 1, 2, 8, 9, 31, 5000])
def test_look_ups(spark: SparkSession, n: int, step: int) -> None:
    """Also of keys that nobody has, and where all keys are in one bucket."""
    random = np.random.default_rng(n)
    hashes = random.integers(-(2**63), 2**63 - 1, n) // step * step
    values = random.integers(-100, 100, n)
    asked = [*hashes.tolist(), *range(-20, 20), *range(n, n + 5), 2**63 - 1, -(2**63), None]
    keys = spark.createDataFrame([(key,) for key in asked], "key bigint")
    found = keys.select("key", look_up(F.col("key"), hashes, values, -7).alias("v")).collect()
    wanted = dict(zip(hashes.tolist(), values.tolist(), strict=True))
    assert [row.v for row in found] == [wanted.get(row.key, -7) for row in found]

"""Hashes of rows without Spark are those of Spark."""

from collections.abc import Sequence
from datetime import date
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from anonlib.spark.digest import digest
from anonlib.spark.values import RARE_TEXT, hash_row
from anonlib.table.hashes import hash_rows, hash_seeded
from anonlib.table.table_digest import Digest, digest_in_memory

pytestmark = pytest.mark.spark

N = 200


def mixed(extremes: Sequence[object], random: np.random.Generator, type: pa.DataType) -> pa.Array:
    """N values: all of `extremes`, then some of them at random, and nulls."""
    picks = [*range(len(extremes)), *random.integers(0, len(extremes), N - len(extremes))]
    null = random.random(N) < 0.15
    return pa.array([None if null[i] else extremes[j] for i, j in enumerate(picks)], type)


def numbers(random: np.random.Generator) -> dict[str, pa.Array]:
    ints = {
        f"int{bits}": mixed([0, 1, -1, 2 ** (bits - 1) - 1, -(2 ** (bits - 1))], random, type)
        for bits, type in [(8, pa.int8()), (16, pa.int16()), (32, pa.int32()), (64, pa.int64())]
    }
    odd = np.array([0x7FF8 << 48, 0xFFF8 << 48, (0x7FF0 << 48) + 1], "<u8").view("<f8")
    reals = [0.0, -0.0, np.inf, -np.inf, np.nan, *odd, 1e-310, -1.5, 3e38]
    whole = [0, 1, -1, 127, 128, -128, -129, 255, 256, 2**63, -(2**63), -(2**64), 10**18 - 1]
    decimals = {
        f"decimal{digits}": mixed(
            [
                Decimal(f"{x}E-2")
                for x in [*whole, 10**digits - 1, 1 - 10**digits]
                if abs(x) < 10**digits
            ],
            random,
            pa.decimal128(digits, 2),
        )
        for digits in (4, 9, 18, 19, 38)
    }
    return {
        **ints,
        "double": mixed(reals, random, pa.float64()),
        "float": mixed([*reals[:5], -1.5, 1e-40, 3e38], random, pa.float32()),
        **decimals,
    }


def others(random: np.random.Generator) -> dict[str, pa.Array]:
    texts = [
        "",
        "a",
        "Zürich",
        "e\u0301",
        "日本語",
        "\0",
        " ",
        "😀" * 9,
        *["xy" * n for n in range(8, 50)],
    ]
    days = [date(1970, 1, 1), date(1969, 12, 31), date(1, 1, 1), date(9999, 12, 31)]
    micros = [0, -1, 1, 999_999, -62_135_596_800_000_000, 253_402_300_799_999_999]
    nanos = [0, -1, 1, 999, 1000, -1001, 2**62]
    return {
        "boolean": mixed([True, False], random, pa.bool_()),
        "date": mixed(days, random, pa.date32()),
        "seconds": mixed([0, -1, 10**9], random, pa.timestamp("s")),
        "millis": mixed([0, -1, 10**12], random, pa.timestamp("ms", "UTC")),
        "micros": mixed(micros, random, pa.timestamp("us", "UTC")),
        "local": mixed(micros, random, pa.timestamp("us")),
        "nanos": mixed(nanos, random, pa.timestamp("ns")),
        "text": mixed(texts, random, pa.string()),
        "large": mixed(texts, random, pa.large_string()),
        "coded": mixed(texts, random, pa.string()).dictionary_encode(),
        "binary": mixed([random.bytes(n) for n in range(70)], random, pa.binary()),
        "fixed": mixed([random.bytes(20) for _ in range(9)], random, pa.binary(20)),
        "no text": pa.nulls(N, pa.string()),
        "void": pa.nulls(N),
        "interval": mixed(
            [{"low": 1.5, "high": None}, {"low": None, "high": -0.25}, {"low": 0.0, "high": 7.0}],
            random,
            pa.struct({"low": pa.float64(), "high": pa.float64()}),
        ),
        "set": mixed(
            [[], [None], ["a"], ["b", None, "é"], [RARE_TEXT], ["a", RARE_TEXT, None]],
            random,
            pa.list_(pa.string()),
        ),
        "shares": mixed(
            [[], [{"node": 3, "share": 0.5}, None], [{"node": None, "share": 1.0}]],
            random,
            pa.list_(pa.struct({"node": pa.int32(), "share": pa.float64()})),
        ),
        "deep": mixed(
            [{"a.b": [["x"], None, []]}, {"a.b": [["x", None]]}, {"a.b": None}],
            random,
            pa.struct({"a.b": pa.list_(pa.list_(pa.string()))}),
        ),
    }


def check(spark: SparkSession) -> None:
    """All columns together, and each alone."""
    random = np.random.default_rng(11)
    columns = {**numbers(random), **others(random)}
    frame = spark.createDataFrame(pa.table({"row": pa.array(range(N)), **columns}))
    every = {"all": hash_row(frame.drop("row"))}
    every |= {f"hash of {name}": hash_row(frame.select(name)) for name in columns}
    found = frame.select("row", *[value.alias(name) for name, value in every.items()]).toArrow()
    found = found.sort_by("row")
    assert hash_rows([*columns.values()]).tolist() == found.column("all").to_pylist()
    wrong = [
        name
        for name, column in columns.items()
        if hash_rows([column]).tolist() != found.column(f"hash of {name}").to_pylist()
    ]
    assert wrong == []


def test_rows(spark: SparkSession) -> None:
    check(spark)


def test_rows_by_generated_code(compiling: SparkSession) -> None:
    check(compiling)


def test_digest(spark: SparkSession) -> None:
    """Of all columns, whatever the order of rows; also of none."""
    random = np.random.default_rng(12)
    table = pa.table({**numbers(random), **others(random)})
    assert digest_in_memory(table) == digest(spark.createDataFrame(table))
    assert digest_in_memory(table.take(random.permutation(N))) == digest_in_memory(table)
    halves = [digest_in_memory(part) for part in (table[: N // 3], table[N // 3 :])]
    assert halves[0] + halves[1] == digest_in_memory(table)
    assert digest_in_memory(table[:0]) == Digest()


def test_parts_of_nested_values_have_their_place(spark: SparkSession) -> None:
    """Also of structs with names that Spark can't tell apart."""
    sets = "a array<string>, b array<string>"
    rows = [(["a", "b"], ["c"]), (["a"], ["b", "c"]), (["a"], ["b", "c", None])]
    alike = [((None, "v"),), (("v", None),), ((None, None),), (None,)]
    for schema, given in ((sets, rows), ("s struct<x: string, X: string>", alike)):
        frames = [spark.createDataFrame([row], schema) for row in given]
        assert len({digest(frame) for frame in frames}) == len(given)


def test_seeded(spark: SparkSession) -> None:
    hashes = np.array([0, 1, -1, 2**63 - 1, -(2**63), 4_105_715_581_806_190_027])
    seeds = [0, 1, -1, 42, 2**31 - 1, -(2**31), 2**31, -(2**31) - 1, 2**63 - 1, -(2**63)]
    frame = spark.createDataFrame(pa.table({"row": pa.array(range(len(hashes))), "h": hashes}))
    seeded = [F.xxhash64(F.lit(seed), F.col("h")).alias(str(seed)) for seed in seeds]
    found = frame.select("row", *seeded).toArrow().sort_by("row")
    for seed in seeds:
        assert hash_seeded(seed, hashes).tolist() == found.column(str(seed)).to_pylist(), seed

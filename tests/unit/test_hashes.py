"""Hashes of rows, without Spark, against XXH64 in plain Python and published values."""

import os
import subprocess
import sys
from datetime import date
from decimal import Context, Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from anonlib.errors import InputError
from anonlib.table.hashes import hash_rows, hash_seeded, mix_bytes

#: With room for the digits of Spark's longest decimals.
CONTEXT = Context(prec=38)
MASK = 2**64 - 1
P1, P2, P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
P4, P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
LENGTHS = [0, 1, 3, 4, 5, 7, 8, 9, 12, 16, 31, 32, 33, 39, 63, 64, 65, 100]


def rotate(x: int, bits: int) -> int:
    x &= MASK
    return (x << bits | x >> (64 - bits)) & MASK


def take_word(lane: int, word: bytes) -> int:
    return rotate(lane + int.from_bytes(word, "little") * P2, 31) * P1 & MASK


def xxh64(data: bytes, seed: int) -> int:
    """XXH64 by its specification."""
    n, state = len(data), (seed + P5) & MASK
    if n >= 32:
        lanes = [seed + P1 + P2, seed + P2, seed, seed - P1]
        while len(data) >= 32:
            lanes = [take_word(x, data[8 * i : 8 * i + 8]) for i, x in enumerate(lanes)]
            data = data[32:]
        state = sum(rotate(x, bits) for x, bits in zip(lanes, (1, 7, 12, 18), strict=True))
        for lane in lanes:
            state = (state ^ take_word(0, lane.to_bytes(8, "little"))) * P1 + P4 & MASK
    state = state + n & MASK
    while len(data) >= 8:
        state = rotate(state ^ take_word(0, data[:8]), 27) * P1 + P4 & MASK
        data = data[8:]
    if len(data) >= 4:
        state = rotate(state ^ int.from_bytes(data[:4], "little") * P1, 23) * P2 + P3 & MASK
        data = data[4:]
    for byte in data:
        state = rotate(state ^ byte * P5, 11) * P1 & MASK
    state = (state ^ state >> 33) * P2 & MASK
    state = (state ^ state >> 29) * P3 & MASK
    return state ^ state >> 32


def row_hash(values: list[bytes | None], seed: int = 42) -> int:
    """The hash of one row, by the bytes that Spark hashes of each value."""
    state = seed & MASK
    for value in values:
        state = xxh64((value is None).to_bytes(4, "little"), state)
    for value in values:
        state = state if value is None else xxh64(value, state)
    return state - 2**64 if state >= 2**63 else state


def hashes_of(*columns: pa.Array, seed: int = 42) -> list[int]:
    return list(hash_rows(columns, seed).tolist())


def number(value: int, size: int) -> bytes:
    return value.to_bytes(size, "little", signed=True)


def sanity_buffer(n: int) -> bytes:
    """The input of the sanity test of xxHash's program xxhsum."""
    state, result = 2654435761, bytearray()
    for _ in range(n):
        result.append(state >> 24)
        state = state * state % 2**32
    return bytes(result)


@pytest.mark.parametrize(
    ("data", "seed", "wanted"),
    [
        # xxhsum's sanity test
        (sanity_buffer(0), 0, 0xEF46DB3751D8E999),
        (sanity_buffer(0), 2654435761, 0xAC75FDA2929B17EF),
        (sanity_buffer(1), 0, 0x4FCE394CC88952D8),
        (sanity_buffer(1), 2654435761, 0x739840CB819FA723),
        (sanity_buffer(14), 0, 0xCFFA8DB881BC3A3D),
        (sanity_buffer(14), 2654435761, 0x5B9611585EFCC9CB),
        (sanity_buffer(101), 0, 0x0EAB543384F878AD),
        (sanity_buffer(101), 2654435761, 0xCAA65939306F1E21),
        # the documentation of PySpark's xxhash64
        (b"ABC", 42, 4105715581806190027),
    ],
)
def test_published_values(data: bytes, seed: int, wanted: int) -> None:
    """Of the oracle, and of the core that hashes bytes."""
    assert xxh64(data, seed) == wanted
    state = np.full(1, seed, np.uint64)
    begin, end, null = np.zeros(1, np.int64), np.full(1, len(data)), np.zeros(1, np.bool_)
    with np.errstate(over="ignore"):
        mix_bytes(state, freeze(data), begin, end, null)
    assert state.tolist() == [wanted]


def freeze(data: bytes) -> Any:
    return np.frombuffer(data, np.uint8) if data else np.frombuffer(b"x", np.uint8)[:0]


@pytest.mark.parametrize("type", [pa.binary(), pa.large_binary()])
def test_lengths(type: pa.DataType) -> None:
    values = [sanity_buffer(n) for n in LENGTHS]
    assert hashes_of(pa.array(values, type)) == [row_hash([value]) for value in values]


TEXTS = ["", "a", None, "Zürich", "日本語のとても長いテキスト", "\0", "😀" * 9, "x" * 100]


@pytest.mark.parametrize("type", [pa.string(), pa.large_string(), None])
def test_texts(type: pa.DataType | None) -> None:
    column = pa.array(TEXTS, type or pa.string())
    column = column if type else column.dictionary_encode()
    assert hashes_of(column) == [row_hash([t if t is None else t.encode()]) for t in TEXTS]


def bits(value: float, dtype: Any) -> bytes:
    return np.array(value, dtype).tobytes()


EXTREMES = [None, 0, 1, -1, 127, -128]
TYPES = {
    "boolean": (pa.array([True, None, False]), [number(1, 4), None, number(0, 4)]),
    "void": (pa.nulls(2), [None, None]),
    "all null": (pa.array([None, None], pa.string()), [None, None]),
    **{
        f"int{8 * size}": (
            pa.array([*EXTREMES, -(2 ** (8 * size - 1))], type),
            [None if x is None else number(x, width) for x in [*EXTREMES, -(2 ** (8 * size - 1))]],
        )
        for type, size, width in [
            (pa.int8(), 1, 4),
            (pa.int16(), 2, 4),
            (pa.int32(), 4, 4),
            (pa.int64(), 8, 8),
        ]
    },
    **{
        str(type): (
            pa.array([0.0, -0.0, None, 1.5, -np.inf], type),
            [bits(0, dtype), bits(0, dtype), None, bits(1.5, dtype), bits(-np.inf, dtype)],
        )
        for type, dtype in [(pa.float32(), "<f4"), (pa.float64(), "<f8")]
    },
    "float NaN": (
        pa.array(np.array([0x7FC00000, 0xFFC00001, 0x7F800001], "<u4").view("<f4")),
        [bytes.fromhex("0000c07f")] * 3,
    ),
    "double NaN": (
        pa.array(np.array([0x7FF8 << 48, 0xFFF8 << 48, (0x7FF0 << 48) + 1], "<u8").view("<f8")),
        [bytes.fromhex("000000000000f87f")] * 3,
    ),
    "date": (
        pa.array([date(1970, 1, 2), None, date(1969, 12, 31)]),
        [number(1, 4), None, b"\xff" * 4],
    ),
    **{
        f"timestamp[{unit}]": (
            pa.array([1, None, -1], pa.timestamp(unit, zone)),
            [number(micros, 8), None, number(-micros, 8)],
        )
        for unit, zone, micros in [("s", None, 10**6), ("ms", "UTC", 1000), ("us", "UTC", 1)]
    },
    "timestamp[ns]": (  # to the last whole microsecond
        pa.array([1999, None, -1], pa.timestamp("ns", "Europe/Zurich")),
        [number(1, 8), None, number(-1, 8)],
    ),
    "decimal": (
        pa.array([Decimal("-1.5"), None, Decimal("9" * 16 + ".99")], pa.decimal128(18, 2)),
        [number(-150, 8), None, number(10**18 - 1, 8)],
    ),
    "fixed binary": (pa.array([b"abcd", None], pa.binary(4)), [b"abcd", None]),
}


@pytest.mark.parametrize("name", TYPES)
def test_types(name: str) -> None:
    column, wanted = TYPES[name]
    assert hashes_of(column) == [row_hash([value]) for value in wanted]


@pytest.mark.parametrize("type", [pa.decimal128(38, 3), pa.decimal256(38, 3)])
def test_wide_decimals_are_the_shortest_bytes(type: pa.DataType) -> None:
    near = [
        sign * 2**bits + by
        for bits in (0, 7, 8, 63, 64, 120)
        for sign in (1, -1)
        for by in (-1, 0, 1)
    ]
    whole = [0, *near, 10**38 - 1, 1 - 10**38]
    column = pa.array([None, *[Decimal(x).scaleb(-3, CONTEXT) for x in whole]], type)
    sizes = [(x if x >= 0 else ~x).bit_length() // 8 + 1 for x in whole]
    wanted = [x.to_bytes(size, "big", signed=True) for x, size in zip(whole, sizes, strict=True)]
    assert hashes_of(column) == [row_hash([value]) for value in [None, *wanted]]


def table() -> list[pa.Array]:
    random = np.random.default_rng(7)
    n = 60
    null = random.random((3, n)) < 0.2
    texts = ["ä" * int(size) for size in random.integers(0, 40, n)]
    return [
        pa.array(random.integers(-(2**63), 2**63 - 1, n), mask=null[0]),
        pa.array(texts, mask=null[1]),
        pa.array(random.normal(size=n), mask=null[2]),
        pa.array(random.random(n) < 0.5),
        pa.array(random.integers(-(10**9), 10**9, n)).cast(pa.decimal128(30, 2)),
        pa.array(random.integers(-(10**9), 10**9, n), pa.int32()).cast(pa.decimal128(12, 0)),
        pa.array(random.integers(-(10**9), 10**9, n)).cast(pa.timestamp("ns")),
    ]


def listed(*rows: object) -> pa.Array:
    return pa.array(rows, pa.list_(pa.string()))


def nested(*rows: object) -> pa.Array:
    return pa.array(rows, pa.list_(pa.list_(pa.string())))


def paired(*rows: object) -> pa.Array:
    return pa.array(rows, pa.struct({"x": pa.string(), "y": pa.string()}))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([listed(["a", "b"]), listed(["c"])], [listed(["a"]), listed(["b", "c"])]),
        ([listed(["a", None])], [listed(["a"])]),
        ([listed(["a", None])], [listed([None, "a"])]),
        ([listed([])], [listed(None)]),
        ([nested([["a"], ["b"]])], [nested([["a", "b"], []])]),
        ([nested([["a"], None])], [nested([["a"], []])]),
        ([paired({"x": "a", "y": None})], [paired({"x": None, "y": "a"})]),
        ([paired(None)], [paired({"x": None, "y": None})]),
    ],
)
def test_parts_of_nested_values_have_their_place(
    one: list[pa.Array], other: list[pa.Array]
) -> None:
    """Else a row whose values moved between two columns of sets would be the same row."""
    assert hashes_of(*one) != hashes_of(*other)


def test_null_flags_come_first_and_a_hash_is_the_next_seed() -> None:
    columns = pa.array([7, None], pa.int32()), pa.array([None, "a"])
    wanted = [row_hash([number(7, 4), None]), row_hash([None, b"a"])]
    assert hashes_of(*columns) == wanted
    assert wanted[0] == hashes_of(columns[0], pa.nulls(2))[0]  # names and types are not hashed
    for seed in (0, -1, 2**63 - 1, -(2**63)):
        assert hashes_of(*columns, seed=seed)[0] == row_hash([number(7, 4), None], seed)


def test_slices_have_the_hashes_of_their_rows() -> None:
    columns, whole = table(), hashes_of(*table())
    assert len(set(whole)) == len(whole)
    for start, n in [(0, 60), (1, 13), (9, 51), (59, 1), (60, 0)]:
        assert hashes_of(*[c.slice(start, n) for c in columns]) == whole[start : start + n]


def test_the_order_of_rows_does_not_matter() -> None:
    order = np.random.default_rng(1).permutation(60)
    moved = hashes_of(*[column.take(pa.array(order)) for column in table()])
    assert moved == np.array(hashes_of(*table()))[order].tolist()


@pytest.mark.parametrize("type", [pa.null(), pa.string(), pa.float64(), pa.decimal128(38, 0)])
def test_no_rows(type: pa.DataType) -> None:
    found = hash_rows([pa.array([], type)])
    assert (found.dtype, len(found)) == (np.int64, 0)
    assert len(hash_seeded(3, found)) == 0


@pytest.mark.parametrize("seed", [0, 1, -1, 2**31 - 1, -(2**31), 2**31, -(2**31) - 1, -(2**63)])
def test_seeded(seed: int) -> None:
    hashes = [0, -1, 2**63 - 1, -(2**63)]
    size = 4 if -(2**31) <= seed < 2**31 else 8
    seeded = xxh64(number(seed, size), 42)
    wanted = [np.uint64(xxh64(number(h, 8), seeded)).astype(np.int64).item() for h in hashes]
    assert hash_seeded(seed, np.array(hashes)).tolist() == wanted


@pytest.mark.parametrize(
    "type",
    [
        *[pa.uint8(), pa.uint64(), pa.float16(), pa.date64(), pa.time64("us"), pa.duration("us")],
        *[pa.map_(pa.string(), pa.int8()), pa.list_(pa.int8(), 2), pa.struct({"a": pa.uint8()})],
        *[pa.decimal256(39, 0), pa.dictionary(pa.int8(), pa.uint8())],
    ],
    ids=str,
)
def test_other_types_are_refused(type: pa.DataType) -> None:
    with pytest.raises(InputError, match="rows can't be hashed: a column is of type"):
        hash_rows([pa.nulls(1, type)])


def test_times_out_of_range_are_refused_without_their_value() -> None:
    with pytest.raises(InputError, match=r"a timestamp\[s\] is out of Spark's range$") as found:
        hash_rows([pa.array([2**55 + 77], pa.timestamp("s"))])
    assert str(2**55 + 77) not in str(found.value)


def test_uncompiled_code_gives_the_same_without_a_warning() -> None:
    program = """
from tests.unit.test_hashes import hash_rows, hash_seeded, table
hashes = hash_rows(table())
print(*hashes, *hash_seeded(-3, hashes))
"""
    env = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, "-W", "error::RuntimeWarning", "-c", program]
    home = Path(__file__).parents[2]
    done = subprocess.run(
        command, env=env, cwd=home, capture_output=True, text=True, check=True, timeout=300
    )
    assert done.stderr == ""
    hashes = hash_rows(table())
    assert [*map(int, done.stdout.split())] == [*hashes, *hash_seeded(-3, hashes)]

"""Spark's xxhash64 of rows in Arrow, without Spark: equal to its hashes bit by bit.

Spark hashes a row column by column. The hash so far is the seed for the next value, and a null
leaves it as it is. Each value is hashed by XXH64, as 4 or 8 bytes, or as the bytes of a text. That
would make [a, b] and [c] equal to [a] and [b, c]: so the length of a list is hashed before it, and
whether a part is null before each part, as `anonlib.spark.values.make_hashable` does.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as types

from anonlib.arrays import Bools, Ints
from anonlib.compiled import njit
from anonlib.errors import InputError

Words = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.uint8]

#: The seed of Spark's functions.
SEED = 42
#: The most digits of a decimal that Spark keeps as a long, and of any decimal of Spark.
LONG_DIGITS, MOST_DIGITS = 18, 38
#: The bytes of an Arrow decimal, and those of a block of XXH64.
DECIMAL, BLOCK = 16, 32

#: The primes of XXH64. All constants of the arithmetic are unsigned: with a signed one, numba would
#: go over to floats.
PRIME_1 = np.uint64(0x9E3779B185EBCA87)
PRIME_2 = np.uint64(0xC2B2AE3D27D4EB4F)
PRIME_3 = np.uint64(0x165667B19E3779F9)
PRIME_4 = np.uint64(0x85EBCA77C2B2AE63)
PRIME_5 = np.uint64(0x27D4EB2F165667C5)
ZERO, FOUR, EIGHT = np.uint64(0), np.uint64(4), np.uint64(8)
LOW_HALF = np.uint64(0xFFFFFFFF)
WORD_BITS = np.uint64(64)

#: The plain types: how their values lie in memory, and whether Spark hashes 8 bytes of them (else
#: 4).
PLAIN = {
    pa.int8(): (np.int8, False),
    pa.int16(): (np.int16, False),
    pa.int32(): (np.int32, False),
    pa.int64(): (np.int64, True),
    pa.date32(): (np.int32, False),
    pa.float32(): (np.float32, False),
    pa.float64(): (np.float64, True),
}
#: The types of texts and binaries: how their offsets lie in memory.
TEXTS = {
    pa.string(): np.int32,
    pa.binary(): np.int32,
    pa.large_string(): np.int64,
    pa.large_binary(): np.int64,
}
#: Types that polars gives its texts -> those that are hashed.
VIEWS = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}


def hash_rows(columns: Sequence[pa.Array], seed: int = SEED) -> Ints:
    """The hash of each row, as `anonlib.spark.values.hash_row` gives it for the same columns.

    It takes each column's null flag first, then each value. Cost: O(bytes).

    Args:
        columns: At least one; all of n rows.
        seed: Of 64 bits.

    Returns:
        int64[n].

    Raises:
        InputError: A column is of a type that Spark does not have, or that is not hashed here.
    """
    state = np.full(len(columns[0]), seed % 2**64, np.uint64)
    # Uncompiled, as with NUMBA_DISABLE_JIT, numpy would warn of products beyond 64 bits.
    with np.errstate(over="ignore"):
        for column in columns:
            _mix_null(state, column)
        for column in columns:
            _mix(state, column)
    return state.view(np.int64)


def hash_values(values: pa.Array, seed: int = SEED) -> Ints:
    """int64[n]. The hash of each value: what Spark gives for `F.xxhash64(values)`.

    seed: Of 64 bits: the hash of what comes before the values.

    Raises InputError for a type that Spark has not, or that is not hashed here.
    """
    return hash_chains([values], seed)


def hash_chains(columns: Sequence[pa.Array], seed: int = SEED) -> Ints:
    """int64[n]. The hash of each row without flags of nulls: what Spark gives for
    `F.xxhash64(*columns)`, if no column is nested. Otherwise as `hash_values`."""
    state = np.full(len(columns[0]), seed % 2**64, np.uint64)
    with np.errstate(over="ignore"):
        for column in columns:
            _mix(state, column)
    return state.view(np.int64)


def hash_text(text: str) -> int:
    """The hash of a text, as the seed of what comes after it."""
    return int(hash_values(pa.array([text]))[0])


def _mix(state: Words, column: pa.Array) -> None:
    """Takes a column into the rows' hashes, which are replaced. Nested values are hashed part by
    part, as in Spark."""
    kind = _find_plain_type(column.type)
    if kind != column.type:
        column = column.cast(kind)
    if types.is_struct(kind):
        for i in range(kind.num_fields):
            part = pc.struct_field(column, [i])  # null where the struct is
            _mix_null(state, part)
            _mix(state, part)
        return
    if any(check(kind) for check in (types.is_list, types.is_large_list)):
        _mix_lists(state, column)
        return
    column = _simplify(column)
    _mix_plain(state, column, column.is_null().to_numpy(zero_copy_only=False))


def _mix_null(state: Words, column: pa.Array) -> None:
    """Takes into the rows' hashes which values are null."""
    null = column.is_null().to_numpy(zero_copy_only=False)
    mix_words(state, null.astype(np.uint64), np.zeros(len(state), np.bool_), False)


def _find_plain_type(kind: pa.DataType) -> pa.DataType:
    """The type without views, at any depth: Arrow can't take rows of them, nor decode them."""
    if types.is_struct(kind):
        return pa.struct([field.with_type(_find_plain_type(field.type)) for field in kind.fields])
    if types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_find_plain_type(kind.value_type)))
    if types.is_large_list(kind):
        return pa.large_list(kind.value_field.with_type(_find_plain_type(kind.value_type)))
    if types.is_dictionary(kind):
        values = _find_plain_type(kind.value_type)
        return pa.dictionary(kind.index_type, values, kind.ordered)
    return VIEWS.get(kind, kind)


def _mix_lists(state: Words, column: pa.Array) -> None:
    """Takes the lengths of lists into the rows' hashes, then the elements, one place after the
    other."""
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy().astype(np.int64)
    null = column.is_null().to_numpy(zero_copy_only=False)
    mix_words(state, lengths.view(np.uint64), null, False)
    elements = pc.list_flatten(column)
    start = np.cumsum(lengths) - lengths
    for place in range(int(lengths.max(initial=0))):
        rows = np.flatnonzero(lengths > place)
        some = state[rows]
        part = elements.take(pa.array(start[rows] + place))
        _mix_null(some, part)
        _mix(some, part)
        state[rows] = some


def _mix_plain(state: Words, column: pa.Array, null: Bools) -> None:
    """Takes a column into the rows' hashes, which are replaced."""
    if column.type in PLAIN:
        mix_words(state, _words(column), null, PLAIN[column.type][1])
    elif types.is_decimal(column.type) and column.type.precision <= LONG_DIGITS:
        mix_words(state, _decimals(column)[:, 0].copy(), null, True)
    else:
        in_texts = column.type in TEXTS
        mix_bytes(state, *(_texts(column) if in_texts else _wide_decimals(column)), null)


def hash_seeded(seed: int, hashes: Ints) -> Ints:
    """Other hashes from hashes: what Spark gives for `F.xxhash64(F.lit(seed), hashes)`.

    Args:
        seed: Of 64 bits. As in Spark, it is an int if 32 bits are enough, else a long.
        hashes: int64[n]. Without nulls.

    Returns:
        int64[n].
    """
    state = np.full(len(hashes), SEED, np.uint64)
    none = np.zeros(len(state), np.bool_)
    with np.errstate(over="ignore"):
        is_long = not -(2**31) <= seed < 2**31
        mix_words(state, np.full(len(state), seed % 2**64, np.uint64), none, is_long)
        mix_words(state, hashes.astype(np.int64).view(np.uint64), none, True)
    return state.view(np.int64)


def _simplify(column: pa.Array) -> pa.Array:
    """The column in a type that Spark hashes alike: of PLAIN, of TEXTS, or a decimal128."""
    kind = column.type
    if types.is_dictionary(kind):
        return _simplify(column.dictionary_decode())
    if kind in PLAIN or kind in TEXTS:
        return column
    if types.is_boolean(kind) or types.is_null(kind):
        return column.cast(pa.int8())
    if types.is_fixed_size_binary(kind):
        return column.cast(pa.binary())
    if types.is_timestamp(kind):
        return _to_micros(column)
    if types.is_decimal(kind) and kind.precision <= MOST_DIGITS:
        return column.cast(pa.decimal128(kind.precision, kind.scale))
    raise InputError(f"rows can't be hashed: a column is of type {kind}")


def _to_micros(column: pa.Array) -> pa.Array:
    """Times as microseconds. Spark, too, takes the last whole one before a time."""
    kind = column.type
    if kind.unit == "ns":
        nanos = _read(column.buffers()[1], np.dtype(np.int64), column.offset, len(column))
        null = column.is_null().to_numpy(zero_copy_only=False)
        return pa.array(nanos // 1000, pa.int64(), mask=null)
    try:
        return column.cast(pa.timestamp("us", kind.tz)).cast(pa.int64())
    except pa.ArrowException:  # its text holds a value
        raise InputError(f"rows can't be hashed: a {kind} is out of Spark's range") from None


def _read(
    buffer: pa.Buffer | None, dtype: np.dtype[np.generic], offset: int, n: int
) -> npt.NDArray[np.generic]:
    """n values of a buffer, from value `offset` on. Arrow may leave out the buffer of no values."""
    if buffer is None or buffer.size == 0:
        return np.zeros(n, dtype)
    return np.frombuffer(buffer, dtype, n, offset * dtype.itemsize)


def _words(column: pa.Array) -> Words:
    """The bits of plain values; of shorter ones in the low half."""
    dtype = np.dtype(PLAIN[column.type][0])
    values = _read(column.buffers()[1], dtype, column.offset, len(column))
    if dtype.kind == "i":
        return values.astype(np.int64).view(np.uint64)
    values = values.copy()
    values[np.isnan(values)] = np.nan  # Spark's one NaN
    values[values == 0] = 0.0  # and its one zero: not -0.0
    return values.view(f"u{dtype.itemsize}").astype(np.uint64)


def _decimals(column: pa.Array) -> Words:
    """uint64[n, 2]. The unscaled values, low half first."""
    halves = _read(column.buffers()[1], np.dtype(np.uint64), 2 * column.offset, 2 * len(column))
    return halves.astype(np.uint64).reshape(-1, 2)


def _wide_decimals(column: pa.Array) -> tuple[Bytes, Ints, Ints]:
    """The bytes of unscaled values, and where each begins and ends: as Java's BigInteger has them,
    big-endian, as few as hold the sign."""
    digits = np.ascontiguousarray(_decimals(column).view(np.uint8)[:, ::-1])
    sign = np.where(digits[:, :1] >= 128, 255, 0).astype(np.uint8)
    # Bytes that are all sign go, but for the last byte; one bit of sign must stay. XOR with the
    # sign makes them zeros, and leaves no room for that bit in a byte above 127.
    folded = digits ^ sign
    first = np.where(folded.any(axis=1), (folded != 0).argmax(axis=1), DECIMAL - 1)
    first -= folded[np.arange(len(folded)), first] >= 128
    begin = np.arange(0, DECIMAL * len(digits), DECIMAL)
    return _freeze(digits.ravel()), begin + first, begin + DECIMAL


def _texts(column: pa.Array) -> tuple[Bytes, Ints, Ints]:
    """The bytes of texts, and where each begins and ends."""
    _, places, data = column.buffers()
    dtype = np.dtype(TEXTS[column.type])
    ends = _read(places, dtype, column.offset, len(column) + 1).astype(np.int64)
    size = 0 if data is None else data.size
    return _freeze(_read(data, np.dtype(np.uint8), 0, size).view(np.uint8)), ends[:-1], ends[1:]


def _freeze(data: Bytes) -> Bytes:
    """The same memory, read-only: some of Arrow's is, and numba compiles for each kind anew."""
    view = data.view()
    view.flags.writeable = False
    return view


@njit
def mix_words(state: Words, words: Words, null: Bools, is_long: bool) -> None:
    """Takes a column of numbers into the rows' hashes.

    Args:
        state: uint64[n]. The hashes so far. They are replaced.
        words: uint64[n]. The bits of the values.
        null: bool[n]. Which values are null.
        is_long: Whether a value is 8 bytes long, else 4: the low half of its word.
    """
    for i in range(len(state)):
        if not null[i]:
            if is_long:
                state[i] = _avalanche(_add_long(state[i] + PRIME_5 + EIGHT, words[i]))
            else:
                state[i] = _avalanche(_add_int(state[i] + PRIME_5 + FOUR, words[i] & LOW_HALF))


@njit
def mix_bytes(state: Words, data: Bytes, begin: Ints, end: Ints, null: Bools) -> None:
    """Takes a column of texts into the rows' hashes.

    Args:
        state: uint64[n]. The hashes so far. They are replaced.
        data: uint8[]. The bytes of all texts.
        begin: int64[n]. The place in `data` where a text begins.
        end: int64[n]. The place after its last byte.
        null: bool[n]. Which texts are null.
    """
    for i in range(len(state)):
        if not null[i]:
            state[i] = _hash_bytes(data, begin[i], end[i], state[i])


@njit
def _hash_bytes(data: Bytes, at: int, end: int, seed: np.uint64) -> np.uint64:
    """XXH64 of data[at:end]."""
    size = np.uint64(end - at)
    if end - at >= BLOCK:
        # Four lanes, of every fourth word each.
        a, b = seed + PRIME_1 + PRIME_2, seed + PRIME_2
        c, d = seed, seed - PRIME_1
        while at + BLOCK <= end:
            a = _round(a, _word(data, at, 8))
            b = _round(b, _word(data, at + 8, 8))
            c = _round(c, _word(data, at + 16, 8))
            d = _round(d, _word(data, at + 24, 8))
            at += BLOCK
        state = _rotate(a, np.uint64(1)) + _rotate(b, np.uint64(7))
        state += _rotate(c, np.uint64(12)) + _rotate(d, np.uint64(18))
        state = _merge(_merge(_merge(_merge(state, a), b), c), d)
    else:
        state = seed + PRIME_5
    state += size
    while at + 8 <= end:
        state = _add_long(state, _word(data, at, 8))
        at += 8
    if at + 4 <= end:
        state = _add_int(state, _word(data, at, 4))
        at += 4
    while at < end:
        state = _rotate(state ^ np.uint64(data[at]) * PRIME_5, np.uint64(11)) * PRIME_1
        at += 1
    return _avalanche(state)


@njit
def _word(data: Bytes, at: int, size: int) -> np.uint64:
    """The number in `size` bytes, lowest byte first."""
    result = ZERO
    for j in range(size):
        result |= np.uint64(data[at + j]) << np.uint64(8 * j)
    return result


@njit
def _rotate(value: np.uint64, bits: np.uint64) -> np.uint64:
    return (value << bits) | (value >> (WORD_BITS - bits))


@njit
def _round(lane: np.uint64, word: np.uint64) -> np.uint64:
    return _rotate(lane + word * PRIME_2, np.uint64(31)) * PRIME_1


@njit
def _merge(state: np.uint64, lane: np.uint64) -> np.uint64:
    return (state ^ _round(ZERO, lane)) * PRIME_1 + PRIME_4


@njit
def _add_long(state: np.uint64, word: np.uint64) -> np.uint64:
    return _rotate(state ^ _round(ZERO, word), np.uint64(27)) * PRIME_1 + PRIME_4


@njit
def _add_int(state: np.uint64, word: np.uint64) -> np.uint64:
    return _rotate(state ^ word * PRIME_1, np.uint64(23)) * PRIME_2 + PRIME_3


@njit
def _avalanche(state: np.uint64) -> np.uint64:
    """Every bit of the result depends on all bits."""
    state = (state ^ (state >> np.uint64(33))) * PRIME_2
    state = (state ^ (state >> np.uint64(29))) * PRIME_3
    return state ^ (state >> np.uint64(32))

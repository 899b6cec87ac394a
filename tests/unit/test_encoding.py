"""Encodings: quasi-identifiers on the grid, codes of protected columns, the canonical order."""

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonlib.arrays import GRID, MISSING
from anonlib.errors import BlockError, ConfigError, InputError
from anonlib.table.encoding import (
    MAX_RANGE,
    Encoding,
    code_among,
    code_known,
    code_protected,
    find_moments,
    fit_whole,
    list_protected_values,
    mix,
    note_rounded,
    to_float,
)
from anonlib.table.schema import Column, Role, Scale, Schema

QUICK = settings(max_examples=60)
EDGE = MAX_RANGE + 1e-6


def fitted(values: pa.Array, scale: Scale = Scale.CONTINUOUS, seen: Any = None) -> Encoding:
    """The encoding of a column as the scan fits it on its values (its sample: `seen`)."""
    numbers = to_float(values)
    present = numbers[~np.isnan(numbers)]
    low, high = (float(present.min()), float(present.max())) if len(present) else (0.0, 0.0)
    mean, sd = find_moments(numbers if seen is None else np.asarray(seen, float), low, high)
    return Encoding("c0", scale, bool(values.null_count), mean, sd, low, high)


@pytest.mark.parametrize(
    ("values", "tokens", "text"),
    [
        (["a", "x", "y"], ("?", ""), "lacks 2 of the distinct values that the column has; add"),
        (["a", "?", "y"], ("?", ""), "lacks 2 of .*; one is a missing token: '\\?', which a quasi"),
        (["  ", "na", "a"], ("?", "", "NA"), "lacks 2 .*; 2 are missing tokens: '', 'NA', which"),
        (["a", "b", "?"], (), "lacks 1 of the distinct values that the column has; add"),
        (["a", "B ", "y"], (), "lacks 2 .*; 1 would match in another case or without blanks"),
    ],
)
def test_an_order_that_lacks_missing_tokens(
    values: list[str], tokens: tuple[str, ...], text: str
) -> None:
    """Errors name the config's own words, and no value."""
    column = Column(
        name="ill",
        id="c0",
        role=Role.QUASI_IDENTIFIER,
        type=pa.string(),
        source_type="string",
        scale=Scale.ORDINAL,
        order=("a", "b"),
    )
    with pytest.raises(ConfigError, match=rf"^attributes\.ill\.order: {text}"):
        fit_whole(column, pa.array(values), tokens)


def ranked(categories: pa.Array, *, missing: bool = False) -> Encoding:
    n = len(categories)
    mean, sd = find_moments(np.arange(n, dtype=float), 0.0, n - 1.0)
    return Encoding("c0", Scale.ORDINAL, missing, mean, sd, 0.0, n - 1.0, categories)


def check(encoding: Encoding, values: pa.Array) -> Any:
    """The encoded column, finite, on the grid, within its range."""
    z = encoding.numeric(values)
    assert z.shape == (len(values), 1 + encoding.missing)
    assert np.isfinite(z).all()
    assert (z / GRID == np.rint(z / GRID)).all()
    assert (np.abs(z) <= EDGE).all()
    present = z[~values.is_null().to_numpy(zero_copy_only=False), 0]
    if len(present):
        assert encoding.widths[0] == np.ptp(present)
    assert np.isfinite(encoding.widths).all()
    return z


@given(st.lists(st.none() | st.floats(-1e6, 1e6), min_size=1, max_size=30))
@QUICK
def test_continuous(values: list[float | None]) -> None:
    column = pa.array(values, pa.float64())
    encoding = fitted(column)
    z = check(encoding, column)
    absent = np.array([value is None for value in values])
    expected = (to_float(column) - encoding.mean) / encoding.sd
    assert z[~absent, 0] == pytest.approx(expected[~absent], abs=GRID)
    assert (z[absent, 0] == 0).all()  # at the mean
    if encoding.missing:
        assert z[:, 1].tolist() == absent.tolist()


@given(st.lists(st.none() | st.floats(allow_nan=False, allow_infinity=False), min_size=1))
@QUICK
def test_continuous_of_any_size(values: list[float | None]) -> None:
    column = pa.array(values, pa.float64())
    check(fitted(column), column)


@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=20),
    st.integers(0, 20),
)
@QUICK
def test_range_is_bounded_whatever_the_sample_saw(values: list[float], n_seen: int) -> None:
    column = pa.array(values, pa.float64())
    check(fitted(column, seen=values[:n_seen] or [np.nan]), column)


@pytest.mark.parametrize(
    "values",
    [
        [1e300, -1e300, 5.0],
        [1.7e308, -1.7e308, 0.0],
        [1.7e308, 1.6e308],
        [1e-300, 2e-300, 5e-300],
        [0.0, 5e-324],
        [1e-310, 3e-310],
        [0.0] * 1000 + [1e300],
        [1e16, 1e16 + 2],
    ],
)
def test_huge_and_tiny_scales(values: list[float]) -> None:
    check(fitted(pa.array(values)), pa.array(values))


def test_scales_do_not_matter() -> None:
    x = np.array([0.0, 1.0, 3.0, 7.0])
    columns = [pa.array(x * scale) for scale in (1.0, 2.0**900, 2.0**-900)]
    found = [fitted(column).numeric(column) for column in columns]
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])


def test_constant_and_absent_columns() -> None:
    for value in (5.0, 1e300, -1.7e308, 0.0):
        column = pa.array([value] * 3)
        assert fitted(column).sd == 1.0
        assert (check(fitted(column), column) == 0).all()
        assert fitted(column).widths == [0.0]
    column = pa.array([None, None], pa.float64())
    assert check(fitted(column), column).tolist() == [[0.0, 1.0], [0.0, 1.0]]
    assert fitted(column).widths == [0.0, 1.0]


def test_nan_counts_as_missing() -> None:
    column = pa.array([1.0, float("nan"), None, 3.0])
    z = fitted(column).numeric(column)
    assert z[:, 1].tolist() == [0, 1, 1, 0]
    assert z[1].tolist() == z[2].tolist()


def test_missing_value_that_the_scan_did_not_see() -> None:
    encoding = fitted(pa.array([1.0, 2.0]))
    with pytest.raises(BlockError, match="missing values"):
        encoding.numeric(pa.array([1.0, None]))


@pytest.mark.parametrize(
    ("values", "numbers"),
    [
        (pa.array([date(1, 1, 1), date(9999, 12, 31), None]), [-719162, 2932896]),
        (
            pa.array([datetime(1, 1, 1), datetime(9999, 12, 31)], pa.timestamp("us")),  # noqa: DTZ001
            [-719162 * 86400e6, 2932896 * 86400e6],
        ),
        (
            pa.array([datetime(1970, 1, 2, tzinfo=UTC), None], pa.timestamp("us", "UTC")),
            [86400e6],
        ),
        (pa.array([Decimal("-1.25"), None, Decimal("99999999.99")]), [-1.25, 99999999.99]),
        (pa.array([Decimal(10**38 - 1), Decimal(0)], pa.decimal128(38, 0)), [1e38, 0]),
        (pa.array([-(2**63), None, 2**63 - 1], pa.int64()), [-(2.0**63), 2.0**63]),
        (pa.array([1, None, -1], pa.int8()), [1, -1]),
        (pa.array([0.5, float("nan"), 1.0], pa.float32()), [0.5, 1.0]),
    ],
)
def test_types_that_are_numbers(values: pa.Array, numbers: list[float]) -> None:
    found = to_float(values)
    assert found[~np.isnan(found)].tolist() == numbers
    encoding = fitted(values)
    if not np.isnan(found).any() or values.null_count:
        check(encoding, values)


def test_ordinal_ranks_follow_the_declared_order() -> None:
    order = pa.array(["low", "middle", "high"])
    encoding = ranked(order, missing=True)
    z = encoding.numeric(pa.array(["high", "low", None, "middle"]))
    assert z[1, 0] < z[3, 0] < z[0, 0]
    assert z[3, 0] == z[2, 0] == 0  # the mean of the ranks is that of the middle one
    assert z[:, 1].tolist() == [0, 0, 1, 0]
    assert encoding.widths == [z[0, 0] - z[1, 0], 1.0]


def test_ordinal_numbers_are_ranked_too() -> None:
    z = ranked(pa.array([1, 2, 1000])).numeric(pa.array([1000, 1, 2]))
    assert z[0, 0] - z[2, 0] == pytest.approx(z[2, 0] - z[1, 0], abs=2 * GRID)


def test_nominal_codes() -> None:
    values = pa.array(["b", None, "a"])
    with_missing = Encoding("c0", Scale.NOMINAL, True, categories=pa.array(["a", "b"]))
    assert with_missing.codes(values).tolist() == [1, 2, 0]
    assert with_missing.codes(values).dtype == np.int32
    assert with_missing.n_categories == 3
    without = Encoding("c0", Scale.NOMINAL, False, categories=pa.array(["a", "b"]))
    assert without.codes(values.drop_null()).tolist() == [1, 0]
    assert without.n_categories == 2


def test_nominal_zero_has_one_code() -> None:
    encoding = Encoding("c0", Scale.NOMINAL, False, categories=pa.array([-0.0, 1.0]))
    assert encoding.codes(pa.array([0.0, -0.0, 1.0])).tolist() == [0, 0, 1]


@pytest.mark.parametrize("scale", [Scale.NOMINAL, Scale.ORDINAL])
def test_unseen_category_is_refused_and_not_shown(scale: Scale) -> None:
    encoding = Encoding("c0", scale, False, categories=pa.array(["a"]))
    work = encoding.codes if scale is Scale.NOMINAL else encoding.numeric
    with pytest.raises(BlockError) as caught:
        work(pa.array(["a", "MARKER"]))
    assert "MARKER" not in str(caught.value)


def codes(values: list[Any], type: pa.DataType, tokens: tuple[str, ...] = ("?", "")) -> list[int]:
    found = code_protected(pa.array(values, type), tokens)
    assert found.dtype == np.int32
    return [int(code) for code in found]


def test_protected_text_is_trimmed_and_folded() -> None:
    a, b, c, d, e = codes(["Flu", " flu\t", "ß", "SS", "cold"], pa.string())
    assert a == b
    assert c == d
    assert len({a, c, e}) == 3
    assert MISSING not in (a, c, e)
    # What the JVM's folding merges is merged here too.
    assert len(set(codes(["I", "i", "\u0131"], pa.string()))) == 1


@pytest.mark.parametrize(
    "type",
    [
        *(pa.large_string(), pa.string_view(), pa.binary(), pa.float16(), pa.list_(pa.int8())),
        pa.dictionary(pa.int32(), pa.string()),
        pa.date64(),
    ],
    ids=str,
)
def test_types_whose_equal_values_are_not_known_are_refused(type: pa.DataType) -> None:
    """Text that is not folded would count for more values than it has."""
    column = pa.array([None, None], type)
    for work in (code_protected, list_protected_values):
        with pytest.raises(InputError, match="can't be protected"):
            work(column, ("?",))
    with pytest.raises(InputError, match="can't be protected"):
        code_among(column, ("?",), pa.array(["a"]))


def test_protected_tokens_are_missing() -> None:
    assert (
        codes([None, "?", " ? ", "", "  ", "N/A", "n/a "], pa.string(), ("?", "", "n/A"))
        == [MISSING] * 7
    )
    assert codes(["?", "", "x"], pa.string(), ()) == [0, MISSING, 2]


def test_protected_numbers() -> None:
    found = codes([0.0, -0.0, float("nan"), None, 1.0], pa.float64())
    assert found[0] == found[1] != found[4]
    assert found[2] == found[3] == MISSING
    assert codes([0.0, -0.0, float("nan")], pa.float32())[:2] == [0, 0]
    assert codes([3, None, 3, 4], pa.int64()) == [0, MISSING, 0, 1]
    assert codes([True, False, None], pa.bool_()) == [0, 1, MISSING]
    assert codes([date(1, 1, 1), date(9999, 12, 31)], pa.date32()) == [0, 1]


MIDNIGHT = datetime(1900, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("type", "token", "missing", "present"),
    [
        (pa.int32(), "99", 99, 9),
        (pa.int64(), " 99.0", 99, 98),
        (pa.float64(), "99", 99.0, 98.5),
        (pa.float32(), "0.1", 0.1, 0.2),
        (pa.decimal128(5, 2), "0.1", Decimal("0.10"), Decimal("0.11")),
        (pa.date32(), "9999-12-31", date(9999, 12, 31), date(1, 1, 1)),
        (pa.date32(), "1900-01-01 00:00:00", date(1900, 1, 1), date(1900, 1, 2)),
        (pa.bool_(), "FALSE", False, True),
        (pa.int64(), "9999999999999999", 9999999999999999, 10**16),
        (pa.int64(), str(2**63 - 1), 2**63 - 1, 2**63 - 2),
        (pa.int64(), str(-(2**63)), -(2**63), -(2**63) + 1),
        (pa.uint64(), str(2**64 - 1), 2**64 - 1, 2**64 - 2),
        (pa.int32(), "1e3", 1000, 1001),
        (pa.decimal128(38, 0), "9" * 38, Decimal("9" * 38), Decimal("9" * 37 + "8")),
        (pa.decimal256(60, 2), "9" * 58 + ".99", Decimal("9" * 58 + ".99"), Decimal("9" * 58)),
        *[
            (pa.timestamp(unit, "UTC"), "1900-01-01", MIDNIGHT, MIDNIGHT + timedelta(seconds=1))
            for unit in ("s", "ms", "us", "ns")
        ],
    ],
)
def test_tokens_hold_for_every_type(
    type: pa.DataType, token: str, missing: Any, present: Any
) -> None:
    """As the audit has it (tests/spark/test_tokens.py): all but text by value."""
    tokens = ("?", "", token, "inf", "no such value")
    assert codes([missing, present, missing], type, tokens) == [MISSING, 0, MISSING]


def test_tokens_of_other_types_mean_nothing() -> None:
    assert codes([0, 1], pa.int8(), ("0.1", "300", "?")) == [0, 1]
    assert codes([Decimal(0), Decimal(1)], pa.decimal128(38, 0), ("0.1", "inf")) == [0, 1]
    assert codes([False, True], pa.bool_(), ("0", "1")) == [0, 1]
    assert codes([2**53, 2**53 + 2], pa.int64(), (f"{2**53 + 1}", "1e400")) == [0, 1]
    assert codes([math.inf, 0.0], pa.float32(), ("1e300", "1e400")) == [0, 1]


@given(
    st.lists(st.tuples(st.integers(-2, 2), st.integers(0, 2), st.integers(0, 2)), min_size=1),
    st.randoms(),
)
@QUICK
def test_mix(rows: list[tuple[int, int, int]], random: Any) -> None:
    def mixed(rows: list[tuple[int, int, int]]) -> list[int]:
        table = np.array(rows)
        return [int(m) for m in mix(table[:, :2] * GRID, table[:, 2:].astype(np.int32))]

    known = dict(zip(rows, mixed(rows), strict=True))
    assert mixed(rows) == [known[row] for row in rows]  # equal rows, equal mix
    assert len(set(known.values())) == len(known)  # different ones, different
    shuffled = rows.copy()
    random.shuffle(shuffled)
    assert mixed(shuffled) == [known[row] for row in shuffled]


def test_mix_tells_columns_apart() -> None:
    none = np.zeros((1, 0), np.int32)
    swapped = [mix(np.array([[1.0, 2.0]]), none)[0], mix(np.array([[2.0, 1.0]]), none)[0]]
    assert swapped[0] != swapped[1]
    assert mix(np.zeros((2, 0)), np.array([[0], [1]], np.int32))[1] != 0


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("n", [1, 2, 3, 16, 999, 10_000])
def test_ranks_can_be_told_from_the_encoded_column(n: int, missing: bool) -> None:
    encoding = ranked(pa.array(np.arange(n)), missing=missing)
    ranks, *others = encoding.ranks
    assert ranks is not None
    assert others == [None] * missing
    values = pa.array([*range(n), *([None] * missing)], pa.int64())
    z = encoding.numeric(values)[:, 0]
    assert np.rint((z - ranks.low) / ranks.step)[:n].tolist() == list(range(n))
    assert fitted(pa.array([1.0, 2.0])).ranks == [None]


def test_values_of_a_protected_column() -> None:
    """In order, folded, with their counts; codes are their places."""
    column = pa.array(["b", " B ", None, "?", "a", "ß", "SS", "b"])
    found = list_protected_values(column, ("?",))
    assert found.categories.to_pylist() == ["a", "b", "ss"]
    assert found.reference.count.tolist() == [1, 3, 2]
    assert found.reference.n_missing == 2
    codes = code_among(pa.array(["B", "?", "a "]), ("?",), found.categories)
    assert codes.tolist() == [1, -1, 0]
    with pytest.raises(BlockError, match="did not see"):
        code_among(pa.array(["c"]), (), found.categories)
    # By these values where they are known, else by its own.
    assert code_known(pa.array(["B", "?", "a "]), ("?",), found).tolist() == [1, -1, 0]
    assert code_known(pa.array(["B", "?", "a "]), ("?",), None).tolist() == [0, -1, 2]

    numbers = list_protected_values(pa.array([2.5, -0.0, 0.0, float("nan"), -9.0]), ("-9",))
    assert numbers.categories.to_pylist() == [0.0, 2.5]
    assert numbers.reference.count.tolist() == [2, 1]
    assert numbers.reference.n_missing == 2
    assert code_among(pa.array([-0.0, 2.5]), (), numbers.categories).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("values", "told"),
    [
        (pa.array([1, 2**53 - 1]), False),
        (pa.array([1, 2**53 + 1]), True),
        (pa.array([-(2**60), 1]), True),
        (pa.array([Decimal(10**19), Decimal(1)], pa.decimal128(20, 0)), True),
        (pa.array([1e300, 1.0]), False),  # as they are read
        (pa.array([None, None], pa.int64()), False),
    ],
    ids=["below", "above", "negative", "decimal", "float", "empty"],
)
def test_numbers_that_floats_round_are_told(values: pa.Array, *, told: bool) -> None:
    role, scale = Role.QUASI_IDENTIFIER, Scale.CONTINUOUS
    column = Column("number", "c0", role, values.type, "long", scale=scale)
    notes = [*note_rounded(Schema((column,)), [fit_whole(column, values)])]
    assert [note.startswith("column number: numbers of 2^53 or more") for note in notes] == (
        [True] * told
    )

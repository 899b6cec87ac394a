"""Tokens of missing values as literals of a type, without Spark."""

from datetime import UTC, date, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import types as T

from anonlib.auditing import tokens
from anonlib.auditing.tokens import _moment, list_missing_values


class Literal:
    """A literal of Spark's: a value, and what was done to it."""

    def __init__(self, value: Any, *steps: str):
        self.value, self.steps = value, steps

    def cast(self, dtype: Any) -> "Literal":
        name = dtype if isinstance(dtype, str) else dtype.simpleString()
        return Literal(self.value, *self.steps, name)


@pytest.fixture(autouse=True)
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    functions = SimpleNamespace(
        lit=Literal,
        date_from_unix_date=lambda days: Literal(days.value, *days.steps, "day"),
        timestamp_micros=lambda micros: Literal(micros.value, *micros.steps, "micros"),
    )
    monkeypatch.setattr(tokens, "F", functions)


def made(token: str, dtype: T.DataType) -> Any:
    """The value of a token and what it is turned into; None if it is no value of the type."""
    found = list_missing_values([token], dtype)
    assert found is not None
    literals: Any = found
    return (literals[0].value, *literals[0].steps) if literals else None


def test_types_that_are_compared_by_text() -> None:
    for dtype in (T.BooleanType(), T.BinaryType(), T.DayTimeIntervalType()):
        assert list_missing_values(["?"], dtype) is None


def test_tokens_that_are_no_values_are_left_out() -> None:
    found: Any = list_missing_values(["?", " 5 ", "", "-1"], T.IntegerType())
    assert [literal.value for literal in found] == ["5", "-1"]


@pytest.mark.parametrize(
    ("dtype", "name", "bits"),
    [
        (T.ByteType(), "tinyint", 8),
        (T.ShortType(), "smallint", 16),
        (T.IntegerType(), "int", 32),
        (T.LongType(), "bigint", 64),
    ],
)
def test_whole_numbers(dtype: T.DataType, name: str, bits: int) -> None:
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    for n in (low, 0, high):
        assert made(str(n), dtype) == (str(n), name)
    for text in (str(low - 1), str(high + 1), "1.5", "x", "nan", "inf", "-inf"):
        assert made(text, dtype) is None
    assert made("1e1", dtype) == ("10", name)
    assert made("7.0", dtype) == ("7", name)


@pytest.mark.parametrize(
    ("text", "single", "double"),
    [
        ("1.5", 1.5, 1.5),
        ("-0.0", 0.0, 0.0),
        ("inf", float("inf"), float("inf")),
        ("-Infinity", float("-inf"), float("-inf")),
        ("1e39", None, 1e39),
        ("1e400", None, None),
        ("nan", None, None),
        ("x", None, None),
    ],
)
def test_floats(text: str, single: float | None, double: float | None) -> None:
    for dtype, name, value in (
        (T.FloatType(), "float", single),
        (T.DoubleType(), "double", double),
    ):
        found = made(text, dtype)
        assert found == (None if value is None else (value, name))
        if text == "-0.0":
            assert str(found[0]) == "0.0"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("1.5", "1.50"),
        ("-99", "-99.00"),
        ("1.50", "1.50"),
        ("999.99", "999.99"),
        ("1.555", None),
        ("1000", None),
        ("nan", None),
        ("x", None),
    ],
)
def test_decimals(text: str, wanted: str | None) -> None:
    expected = None if wanted is None else (wanted, "decimal(5,2)")
    assert made(text, T.DecimalType(5, 2)) == expected


START = datetime(1970, 1, 1, tzinfo=UTC)


def micros(*parts: int) -> int:
    return (datetime(*parts, tzinfo=UTC) - START) // timedelta(microseconds=1)  # type: ignore[misc, arg-type]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("1970-01-01", micros(1970, 1, 1)),
        ("1970-1-2", micros(1970, 1, 2)),
        ("1969-12-31T23:59:59.999999", -1),
        ("2024-02-29 00:00", micros(2024, 2, 29)),
        ("2020-05-06 07:08:09", micros(2020, 5, 6, 7, 8, 9)),
        ("2020-05-06t7:8:9.12", micros(2020, 5, 6, 7, 8, 9, 120_000)),
        ("2020-05-06 07:08:09.000001z", micros(2020, 5, 6, 7, 8, 9, 1)),
        ("2020-05-06 07:08 utc", micros(2020, 5, 6, 7, 8)),
        ("2020-05-06 07:08:09+02:30", micros(2020, 5, 6, 4, 38, 9)),
        ("2020-05-06 07:08:09 -23:59", micros(2020, 5, 7, 7, 7, 9)),
        ("2020-05-06 23:59:59", micros(2020, 5, 6, 23, 59, 59)),
        ("0001-01-01", micros(1, 1, 1)),
        ("0001-01-01 00:00+00:01", None),
        ("0001-01-01 00:00-00:01", micros(1, 1, 1, 0, 1)),
        ("9999-12-31 23:59:59.999999", micros(9999, 12, 31, 23, 59, 59, 999_999)),
        ("9999-12-31 23:59-00:01", None),
        ("9999-12-31 23:59+00:01", micros(9999, 12, 31, 23, 58)),
        ("2023-02-29", None),
        ("2020-13-01", None),
        ("2020-05-06 24:00", None),
        ("2020-05-06 23:60", None),
        ("2020-05-06 23:59:60", None),
        ("2020-05-06 07:08 CET", None),
        ("2020-05-06 07:08+24:00", None),
        ("2020-05-06 soon", None),
        ("20-05-06", None),
        ("soon", None),
        ("", None),
    ],
)
def test_moments(text: str, wanted: int | None) -> None:
    assert _moment(text) == wanted
    assert made(text, T.TimestampType()) == (None if wanted is None else (wanted, "long", "micros"))
    day = wanted is not None and wanted % 86_400_000_000 == 0
    days = (date(1970, 1, 1) + timedelta(microseconds=wanted or 0)) - date(1970, 1, 1)
    assert made(text, T.DateType()) == ((days.days, "day") if day else None)
    clock = None
    if wanted is not None:
        moment = START + timedelta(microseconds=wanted)
        clock = (moment.strftime(f"{moment.year:04}-%m-%d %H:%M:%S.%f"), "timestamp_ntz")
    assert made(text, T.TimestampNTZType()) == clock

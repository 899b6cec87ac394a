"""Numbers and dates within texts."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from anonlib.content import gate
from anonlib.content.text_columns import to_text_columns

DAY = date(1984, 3, 12).toordinal()


def read(values: list[Any], type: pa.DataType | None = None) -> list[list[float]]:
    column = to_text_columns({"x": pa.array(values, type)}, gate._number_texts)["x"]
    return [each.tolist() for each in column.readings]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("7", 7),
        ("-7", -7),
        ("$5,000", 5000),
        ("-$5", -5),
        ("1.234.567", 1234567),
        ("1,234.50 Euro", 1234.5),
        ("1.234,50", 1234.5),
        ("12,5", 12.5),
        ("12.5", 12.5),
        ("Z-12", 12),
        ("34 years", 34),
    ],
)
def test_numbers(text: str, number: float) -> None:
    assert read([text])[0] == [number]


@pytest.mark.parametrize("text", ["", "a", "1.2.3", "1 and 2", "1,2,3", "12:30"])
def test_what_is_no_number(text: str) -> None:
    assert read([text, "b"]) == []


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("1984-03-12", 0),
        ("1984/3/12", 0),
        ("19840312", 1),
        ("12.03.1984", 0),
        ("12.3.84", 0),
        ("12 March 1984", 0),
        ("Mar 12, 1984", 0),
        ("12-mar-84", 0),
        ("12031984", 1),
    ],
)
def test_days(text: str, place: int) -> None:
    assert read([text])[place] == [DAY]


def test_days_of_which_the_month_comes_first() -> None:
    assert DAY in [reading[0] for reading in read(["03/12/1984"])]
    assert read(["03/25/1984"]) == [[date(1984, 3, 25).toordinal()]]
    assert DAY in [reading[0] for reading in read(["03121984"])]


def test_times() -> None:
    noon = datetime(1984, 3, 12, 12, tzinfo=UTC)
    since = date(1970, 1, 1).toordinal()
    assert read(["1984-03-12 12:00:00"]) == [[DAY + 0.5]]
    for unit in ("s", "ms", "us", "ns"):
        assert read([noon], pa.timestamp(unit, "UTC")) == [[DAY - since + 0.5]]
    assert read([noon.date()], pa.date32()) == [[DAY - since]]


def test_integers_may_be_days() -> None:
    assert read([19840312, 7]) == [[19840312, 7]]
    assert read([19840312])[:2] == [[19840312], [DAY]]


def test_some_values_that_no_reading_fits() -> None:
    many = [f"{i}.5" for i in range(97)]
    (found,) = read([*many, "none", "a", "b"])
    assert found[:2] == [0.5, 1.5]
    assert np.isnan(found[-3:]).all()
    assert read([*many[:40], *[f"{i} of 7" for i in range(40)]]) == []


@pytest.mark.parametrize(
    "text",
    [
        "1984-13-40",
        "0000-01-01",
        "\u00b2-1-1",
        "9" * 5000,
        "9" * 20 + "/1/1984",
        "1/1/1984 " + "9" * 400,
    ],
)
def test_what_is_no_day(text: str) -> None:
    """Among them numbers beyond all days."""
    assert [each for each in read([text]) if np.isfinite(each).all()] == []


@pytest.mark.parametrize(
    "values", [[2**63 - 1, -(2**63)], [Decimal("9" * 38), Decimal(1)]], ids=["long", "decimal"]
)
def test_numbers_that_floats_do_not_have(values: list[Any]) -> None:
    """They are read as the nearest ones."""
    assert read(values) == [[float(value) for value in values]]

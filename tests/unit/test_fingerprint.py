"""Numbers that may mean a missing value, by the codes of a sketch; those are Spark's."""

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import DoubleType

from anonlib.guesses import token_codes
from anonlib.source import fingerprint
from anonlib.text import FAR_NUMBERS, NUMBER_TOKENS, NUMBERS_MISSING


def code_of(number: float) -> int:
    """As `_fingerprints` gives it, in Python."""
    if number in NUMBERS_MISSING:
        return token_codes.FIRST_NUMBER + NUMBERS_MISSING.index(int(number))
    if number in FAR_NUMBERS:
        return token_codes.FIRST_FAR + FAR_NUMBERS.index(int(number))
    if number < 1:
        return token_codes.NEGATIVE if number < 0 else token_codes.NEAR
    return next(
        (code for third, code in token_codes.THIRDS.items() if number <= third),
        token_codes.ABOVE,
    )


def look(*numbers: float) -> Any:
    codes = [code_of(number) for number in numbers]
    hashes = [hash(number) for number in numbers]
    sketch = {"hc0": pa.array(hashes, pa.int64()), "tc0": pa.array(codes, pa.int32())}
    return fingerprint._look(pa.table(sketch), "c0", DoubleType())


@pytest.mark.parametrize(
    ("numbers", "far"),
    [
        ((*range(18, 90), 999), ("999",)),
        ((*range(333), 999, 9999), ("999", "9999")),
        ((*range(0, 900, 10), 999), ()),  # 890 is near
        ((*range(0, 90_000, 500), 999, 9999), ()),
        ((*range(1900, 2020), 9999), ("9999",)),
        ((*range(20_000, 30_000, 10), 99999), ("99999",)),
        ((*range(-20, -10), *range(40), 999), ()),  # nobody knows how far negative ones go
        ((999, 999), ()),
        ((*range(1, 800, 7), -1), ("-1",)),
        ((*range(40), -1), ()),  # 0 is near
        ((*range(-5, 40),), ()),
        ((-1, 1, 2, 3, 4), ()),  # codes
        ((*range(18, 90), -1, 999), ("-1", "999")),
    ],
)
def test_far_numbers(numbers: tuple[float, ...], far: tuple[str, ...]) -> None:
    seen = look(*numbers)
    assert seen.far == far
    assert seen.tokens == {}
    assert seen.present.all()  # they are asked about, and stay values


def test_negative_numbers_that_mean_missing() -> None:
    assert look(*range(18, 90), -999, -999).tokens == {"-999": 2}
    assert look(*range(18, 90), -9, -1).tokens == {"-9": 1}
    assert look(*range(40), -9, -1).tokens == {}
    assert look(*range(18, 90), -999, -3).tokens == {}


def test_spellings() -> None:
    assert {"-999", "-999.0", "-999.00"} <= {*NUMBER_TOKENS}
    assert NUMBER_TOKENS[: len(NUMBERS_MISSING)] == tuple(map(str, NUMBERS_MISSING))

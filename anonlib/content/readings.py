"""What the values of a column say as numbers: numbers within texts, and dates in usual layouts."""

import re
from collections.abc import Callable, Sequence
from datetime import date

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonlib.arrays import Floats
from anonlib.content.content_rules import WHOLE_NUMBER
from anonlib.table.schema import PER_SECOND, is_number

#: The share of the values that a reading must understand.
MOST = 0.95
#: Values by which a reading is tried first.
N_TRIED = 50
_NUMBER = re.compile(r"(\D*?)([-+]?\d+(?:[.,]\d+)*)(\D*)")
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+|\d{1,3}(?:\.\d{3}){2,}")
_TOKEN = re.compile(r"\d+|[^\W\d_]+")
_MONTHS = {
    name: i
    for i, name in enumerate(
        ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), 1
    )
}
#: Years of two digits from this one on are of the last century.
_PIVOT = 30
_SECONDS_PER_DAY = 86_400


def list_readings(values: pa.Array, texts: pa.Array) -> list[Floats]:
    """The ways to read values as numbers, or as days since some day.

    Cost: O(v) where a reading fits; most do not, which some values tell.

    Args:
        values: v distinct values.
        texts: Them as people see them; null for blank text.

    Returns:
        float64[v] for each reading that fits nearly all values; NaN where it does not.
    """
    kind, types = values.type, pa.types
    if types.is_date(kind):
        return [_to_floats(values.cast(pa.date32()).cast(pa.int32()))]
    if types.is_timestamp(kind):
        per_day = PER_SECOND[kind.unit] * _SECONDS_PER_DAY
        return [_to_floats(values.cast(pa.int64())) / per_day]
    plain = [text or "" for text in texts.to_pylist()]
    if is_number(kind):
        own = [_to_floats(values.cast(pa.float64(), safe=False))]
    else:
        own = _read(plain, [_read_number])
    return own + _read(plain, [_read_year_first, _read_day_first, _read_month_first])


def read_whole(values: pa.Array, texts: pa.Array) -> Floats:
    """float64[v]. Whole numbers, dates and times as numbers; NaN for other values. Only numbers and
    times may agree by chance."""
    numbers: Floats
    if pa.types.is_date(values.type):
        numbers = (
            values.cast(pa.date32())
            .cast(pa.int32())
            .to_numpy(zero_copy_only=False)
            .astype(np.float64)
        )
    elif pa.types.is_timestamp(values.type):
        ticks = values.cast(pa.int64()).to_numpy(zero_copy_only=False)
        numbers = np.floor_divide(ticks, PER_SECOND[values.type.unit]).astype(np.float64)
    else:
        whole = pc.match_substring_regex(texts, WHOLE_NUMBER)
        numbers = pc.if_else(whole, texts, None).cast(pa.float64()).to_numpy(zero_copy_only=False)
    return numbers


def _to_floats(values: pa.Array) -> Floats:
    return np.asarray(values.to_numpy(zero_copy_only=False), np.float64)


def _read(texts: Sequence[str], ways: Sequence[Callable[[str], float]]) -> list[Floats]:
    """The texts by each of the ways that fits them."""
    some = texts[:: max(1, len(texts) // N_TRIED)]
    found = []
    for way in ways:
        # A few texts may be understood by chance, and a few not.
        if sum(way(text) == way(text) for text in some) < 0.8 * len(some):
            continue
        numbers = np.array([*map(way, texts)], np.float64)
        if len(numbers) and np.isfinite(numbers).mean() >= MOST:
            found.append(numbers)
    return found


def _read_number(text: str) -> float:
    """The only number in a text; NaN if there is none, or several."""
    found = _NUMBER.fullmatch(text)
    if found is None:
        return np.nan
    before, number, _ = found.groups()
    sign = -1.0 if before[:1] == "-" or (number[0] == "-" and not before) else 1.0
    digits = number.lstrip("+-")
    if _THOUSANDS.fullmatch(digits):
        digits = digits.replace(",", "").replace(".", "")
    elif digits.rfind(",") > digits.rfind("."):
        digits = digits.replace(".", "").replace(",", ".")
    else:
        digits = digits.replace(",", "")
    return sign * float(digits) if digits.count(".") < 2 else np.nan


def _read_year_first(text: str) -> float:
    return _read_day(text, (4, 2, 2), "ymd")


def _read_day_first(text: str) -> float:
    return _read_day(text, (2, 2, 4), "dmy")


def _read_month_first(text: str) -> float:
    return _read_day(text, (2, 2, 4), "mdy")


def _read_day(text: str, widths: tuple[int, int, int], order: str) -> float:
    """The day, with the part of it that a time is; NaN for other texts.

    Args:
        text: In lower case.
        widths: The digits of the three parts, where nothing stands between them.
        order: What the parts are: `ymd`. A month by its name may stand first or second.
    """
    tokens = _TOKEN.findall(text)
    # A day of one digit may have lost its zero: texts of numbers are compared without.
    if len(tokens) == 1 and len(text) in (7, 8):
        first, second, _ = widths
        text = text.zfill(8)
        tokens = [text[:first], text[first : first + second], text[first + second :]]
    if len(tokens) < len(order):
        return np.nan
    parts = dict(zip(order, tokens, strict=False))
    if order == "dmy" and tokens[0][:3] in _MONTHS:
        parts = dict(zip("mdy", tokens, strict=False))
    month = parts["m"]
    if not month.isdigit() and month[:3] in _MONTHS:
        parts["m"] = str(_MONTHS[month[:3]])
    try:
        year, number, day = (int(parts[each]) for each in "ymd")
        if len(parts["y"]) == 2:
            year += 1900 if year >= _PIVOT else 2000
        elif len(parts["y"]) != 4:
            return np.nan
        return date(year, number, day).toordinal() + _read_time(tokens[3:])
    except (ValueError, OverflowError):
        return np.nan


def _read_time(tokens: Sequence[str]) -> float:
    """The part of a day that hours, minutes and seconds are."""
    numbers = [int(token) for token in tokens if token.isdigit()][:3]
    return sum(n / unit for n, unit in zip(numbers, (24, 1440, _SECONDS_PER_DAY), strict=False))

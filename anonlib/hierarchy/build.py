"""Builders of hierarchies: intervals, masks, dates, groups of an order.

All take values of a column as an Arrow array of any type. Leaves are their texts, as
`Hierarchy.places` compares them; equal texts are one. Missing values are left out: they are never a
leaf, but stand under the root. InputError tells how many values a builder can't place. A level that
holds all values in one group is left out, since the root says the same.

What the names of the nodes give away once they are released: widths, masks and date levels follow
from what the user says and which values there are; bounds of equal frequency, as the trees of
`hierarchy_learn`, follow from how often they are there.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Any

import pyarrow as pa

from anonlib.arrays import Ints
from anonlib.errors import InputError
from anonlib.hierarchy import Hierarchy
from anonlib.hierarchy.files import Row, grow_tree

ROOT = "*"
MOST_OF_RANGE = 1_000_000
#: Digits are limited, so that no text becomes a number of gigabytes.
_NUMBER = re.compile(r"[+-]?(\d{1,40}(\.\d{0,40})?|\.\d{1,40})([eE][+-]?\d{1,3})?", re.ASCII)
_DATE = re.compile(r"(\d{4}-\d{2}-\d{2})([T ]\d{2}:\d{2}.*)?")
#: What a date is generalized to, from low to high.
DATE_LEVELS: dict[str, Callable[[date], str]] = {
    "day": date.isoformat,
    "month": lambda day: f"{day.year:04}-{day.month:02}",
    "quarter": lambda day: f"{day.year:04}-Q{(day.month + 2) // 3}",
    "year": lambda day: f"{day.year:04}",
    "decade": lambda day: f"{day.year // 10:03}0s",
}


def intervals(
    values: pa.Array, widths: Sequence[Any], origin: Any = 0, *, root: str = ROOT
) -> Hierarchy:
    """Intervals of given widths, a level for each, whose bounds are at `origin` plus multiples of
    the width. Each width is a multiple of the one before; numbers may be given as texts.

    Names are such as 20-29 where values and bounds are whole and not negative and every width is
    at least 2; else [20, 30[, which holds 20 but not 30.
    """
    steps, zero = [_given(width, "widths") for width in widths], _given(origin, "origin")
    if not steps or min(steps) <= 0:
        raise InputError("widths: at least one is needed, and all are above 0")
    if any(wide <= narrow or (wide / narrow).denominator > 1 for narrow, wide in pairwise(steps)):
        raise InputError("widths: each is a multiple of the one before, such as 5, 10, 20")
    texts, numbers = _numbers(distinct_texts(values))
    levels = []
    for step in steps:
        low = [zero + (number - zero) // step * step for number in numbers]
        levels.append([(bound, bound + step) for bound in low])
    bounds = [bound for level in levels for low_high in level for bound in low_high]
    whole = min(steps) >= 2 and _all_whole([*numbers, *bounds])
    names = [[_interval(low, high, whole) for low, high in level] for level in levels]
    return _levelled(texts, names, root)


def equal_frequency(
    values: pa.Array, counts: Ints, parts: Sequence[int], *, root: str = ROOT
) -> Hierarchy:
    """Intervals of about as many rows each: their number by level, from many to few, such as 16, 4;
    each number divides the one before. counts: how often each of the values is there.

    The bounds are values: each the one with the number of rows below it that is nearest to its due
    share, the lower one of two. Fewer intervals are left where one value has the rows of several.
    An interval of one value is that value; names are else as those of `intervals`, from the least
    value of an interval to that of the next. The last holds its upper bound, too: [76.5, 90].
    """
    uneven = any(many % few or many == few for many, few in pairwise(parts) if few > 0)
    if not parts or min(parts) < 2 or uneven:
        raise InputError("parts: all at least 2, each dividing the one before, such as 16, 4")
    rows = count_texts(values, counts)
    texts, numbers = _numbers(list(rows))
    ordered = sorted(set(numbers))
    place = [bisect_left(ordered, number) for number in numbers]
    here = [0] * len(ordered)
    for text, at in zip(texts, place, strict=True):
        here[at] += rows[text]
    below = [0, *accumulate(here)][:-1]
    whole = _all_whole(numbers)
    levels = []
    for n_parts in parts:
        starts = {_nearest(below, Fraction(sum(here) * j, n_parts)) for j in range(1, n_parts)}
        names = _between(ordered, sorted({0, *starts}), whole)
        levels.append([names[at] for at in place])
    for level in levels:
        size = Counter(level)
        level[:] = [
            text if size[name] == 1 else name for text, name in zip(texts, level, strict=True)
        ]
    return _levelled(texts, levels, root)


def mask(
    values: pa.Array, masked: Sequence[int] | None = None, pad: str = "", *, root: str = ROOT
) -> Hierarchy:
    """Characters masked from the right: 12345, 1234*, 123**, up to the root.

    masked: how many characters of the longest value each level masks; all numbers from 1 if left
    out. A group is a prefix: 123** has all values that begin with 123. So a value that is shorter
    than a prefix is in none of that length, and a level masks less of it. `pad`, one character,
    fills short values up on the left before: 1234 is masked as 01234 is.
    """
    if len(pad) > 1:
        raise InputError("pad: one character")
    texts = sorted(distinct_texts(values))
    length = max(map(len, texts))
    if masked is None:
        masked = range(1, length)
    elif not masked or min(masked) < 1 or any(a >= b for a, b in pairwise(masked)):
        raise InputError("masked: numbers of characters, ascending from 1, such as 1, 2, 4")
    padded = [text.rjust(length, pad) if pad else text for text in texts]
    levels = []
    for stars in masked:
        kept = max(length - stars, 0)
        cut = [full[:kept] + "*" * (length - kept) for full in padded]
        same = zip(texts, padded, cut, strict=True)
        levels.append([text if len(full) < kept else name for text, full, name in same])
    return _levelled(texts, levels, root)


def dates(values: pa.Array, levels: Iterable[str] = DATE_LEVELS, *, root: str = ROOT) -> Hierarchy:
    """Date levels: 2020-01-31, 2020-01, 2020-Q1, 2020, 2020s.

    Values are dates, or times (which have a day above them), or their ISO texts. levels: some of
    DATE_LEVELS.
    """
    wanted = set(levels)
    if not wanted or wanted - DATE_LEVELS.keys():
        raise InputError(f"levels: some of {', '.join(DATE_LEVELS)}")
    texts = sorted(distinct_texts(values))
    days = [_day(text) for text in texts]
    found = [day for day in days if day is not None]
    _require_all(len(found), len(texts), "dates such as 2020-01-31")
    names = [[name(day) for day in found] for key, name in DATE_LEVELS.items() if key in wanted]
    return _levelled(texts, names, root)


def ordered_groups(values: pa.Array, fan_outs: Sequence[int], *, root: str = ROOT) -> Hierarchy:
    """Neighbours of an ordered list: of as many values as the first number says, of as many such
    groups as the second says, and so on. Names: such as low to medium."""
    if not fan_outs or min(fan_outs) < 2:
        raise InputError("fan_outs: numbers from 2, one for each level")
    texts = distinct_texts(values)
    levels = []
    for size in accumulate(fan_outs, lambda a, b: a * b):
        runs = [texts[i : i + size] for i in range(0, len(texts), size)]
        names = [run[0] if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs]
        levels.append([names[i // size] for i in range(len(texts))])
    return _levelled(texts, levels, root)


def numbers_between(low: Any, high: Any, step: Any = 1) -> pa.Array:
    """The texts of all numbers from `low` to `high`, both included where `step` meets them."""
    first, last, by = (_given(number, "a range") for number in (low, high, step))
    if by <= 0 or last < first or (last - first) / by >= MOST_OF_RANGE:
        raise InputError(f"a range ascends, by a step above 0, to at most {MOST_OF_RANGE:,} values")
    n = (last - first) // by + 1
    return pa.array([_decimal(first + i * by) for i in range(n)], pa.string())


def days_between(low: str, high: str, step: Any = 1) -> pa.Array:
    """The texts of all days from `low` to `high`, by a step of days."""
    first, last = _day(low), _day(high)
    by = _given(step, "a range")
    if first is None or last is None or last < first or by < 1 or by.denominator > 1:
        raise InputError("a range of days ascends, by whole days: 2020-01-01 2020-12-31")
    days = range(first.toordinal(), last.toordinal() + 1, int(by))
    return pa.array([date.fromordinal(day).isoformat() for day in days], pa.string())


def distinct_texts(values: pa.Array) -> list[str]:
    """The distinct texts of the values that are there, in their order. Raises InputError where
    there are none."""
    texts = list(dict.fromkeys(values.cast(pa.string()).drop_null().to_pylist()))
    if not texts:
        raise InputError("there are no values to build a hierarchy of")
    return texts


def count_texts(values: pa.Array, counts: Ints) -> dict[str, int]:
    """How often each distinct text is there."""
    rows = dict.fromkeys(distinct_texts(values), 0)
    for text, count in zip(values.cast(pa.string()).to_pylist(), counts.tolist(), strict=True):
        if text is not None:
            rows[text] += count
    return rows


def require_apart(root: str, texts: Iterable[str]) -> None:
    """Raises InputError where a value has the root's name."""
    if root in texts:
        raise InputError("root: a value has this name; choose another")


def _levelled(texts: Sequence[str], levels: Sequence[Sequence[str]], root: str) -> Hierarchy:
    """The tree over texts, with the name of each one's group on every level."""
    require_apart(root, texts)
    levels = [level for level in levels if len(set(level)) > 1]
    ways = zip(texts, *levels, [root] * len(texts), strict=True)
    nodes, values = grow_tree(
        [Row([name for i, name in enumerate(way) if i == 0 or name != way[i - 1]]) for way in ways]
    )
    groups = set(nodes.parent[1:])
    if count := sum(value in groups for value in values) + len(nodes.repeated()):
        raise InputError(f"{count} values or groups would have the name of another group")
    return Hierarchy.of(nodes)


def _require_all(found: int, given: int, what: str) -> None:
    if found < given:
        text = f"{given - found} of {given} distinct values are no {what}; leave them out, or have "
        raise InputError(f"{text}the source's options read them as null")


def _numbers(texts: Iterable[str]) -> tuple[list[str], list[Fraction]]:
    """The texts in the order of their numbers, and these. Raises InputError for others."""
    texts = list(texts)
    found = sorted((Fraction(text), text) for text in texts if _NUMBER.fullmatch(text))
    _require_all(len(found), len(texts), "numbers")
    return [text for _, text in found], [number for number, _ in found]


def _given(value: Any, what: str) -> Fraction:
    if not _NUMBER.fullmatch(str(value)):
        raise InputError(f"{what}: numbers, such as 10 or 0.5")
    return Fraction(str(value))


def _all_whole(numbers: Iterable[Fraction]) -> bool:
    """Whether all are whole and none is negative."""
    return all(number.denominator == 1 and number >= 0 for number in numbers)


def _interval(low: Fraction, high: Fraction, whole: bool) -> str:
    return f"{low}-{high - 1}" if whole else f"[{_decimal(low)}, {_decimal(high)}["


def _decimal(number: Fraction) -> str:
    """The digits of a number that has an end."""
    if number.denominator == 1:
        return str(number)
    with localcontext(prec=1200):
        return f"{(Decimal(number.numerator) / Decimal(number.denominator)).normalize():f}"


def _nearest(below: Sequence[int], due: Fraction) -> int:
    """The place of the number nearest to `due` in an ascending list; the first of several."""
    after = min(bisect_left(below, due), len(below) - 1)
    if after == 0 or below[after] - due < due - below[after - 1]:
        return after
    return bisect_left(below, below[after - 1])


def _between(ordered: Sequence[Fraction], starts: Sequence[int], whole: bool) -> list[str]:
    """The name of the interval of each value; one begins at each of `starts`, the first at 0."""
    names = []
    for low, high in pairwise([*starts, len(ordered)]):
        if high < len(ordered):
            name = _interval(ordered[low], ordered[high], whole)
        elif whole:
            name = f"{ordered[low]}-{ordered[-1]}"
        else:
            name = f"[{_decimal(ordered[low])}, {_decimal(ordered[-1])}]"
        names += [name] * (high - low)
    return names


def _day(text: str) -> date | None:
    match = _DATE.fullmatch(text)
    try:
        return date.fromisoformat(match[1]) if match else None
    except ValueError:
        return None

"""Builders of hierarchies: intervals, masks, dates, groups of an ordered list.

All builders take the values of a column as an Arrow array of any type. Leaves are the distinct
texts of the values, as `Hierarchy.places` compares them. Missing values are ignored: they become no
leaf here, since every hierarchy has them under its root. If a builder can't place values, the text
of its InputError has their number. A level with all values in one group is left out, since it
repeats the root.

Released names of nodes reveal something. Intervals of fixed widths, masks and date levels depend on
the user's arguments and on the distinct values. Intervals of equal frequency, like the trees of
`anonlib.hierarchy.learn`, also depend on how often the values occur.
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

#: The default name of the root.
ROOT = "*"
#: Most values of a range.
MOST_OF_RANGE = 1_000_000
#: A number. Its digits are limited, so that no text becomes a number of gigabytes.
_NUMBER = re.compile(r"[+-]?(\d{1,40}(\.\d{0,40})?|\.\d{1,40})([eE][+-]?\d{1,3})?", re.ASCII)
_DATE = re.compile(r"(\d{4}-\d{2}-\d{2})([T ]\d{2}:\d{2}.*)?")
#: By level, from low to high: the name of a date.
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
    """Intervals of fixed widths.

    Nodes are named like 20-29 if all values and bounds are whole and not negative and every width
    is at least 2. Else they are named like [20, 30[, which contains 20 but not 30.

    Args:
        values: Numbers, or texts of numbers.
        widths: A width for each level, ascending, as numbers or texts. Each is a multiple of the
            one before.
        origin: Bounds are at `origin` plus multiples of the width.
        root: The name of the root.
    """
    steps, zero = [_parse_number(w, "widths") for w in widths], _parse_number(origin, "origin")
    if not steps or min(steps) <= 0:
        raise InputError("widths: give at least one; all must be above 0")
    if any(wide <= narrow or (wide / narrow).denominator > 1 for narrow, wide in pairwise(steps)):
        raise InputError("widths: each must be a multiple of the one before, such as 5, 10, 20")
    texts, numbers = _sort_numbers(distinct_texts(values))
    levels = []
    for step in steps:
        low = [zero + (number - zero) // step * step for number in numbers]
        levels.append([(bound, bound + step) for bound in low])
    bounds = [bound for level in levels for low_high in level for bound in low_high]
    are_whole = min(steps) >= 2 and _all_whole([*numbers, *bounds])
    names = [[_interval(low, high, are_whole) for low, high in level] for level in levels]
    return _from_levels(texts, names, root)


def equal_frequency(
    values: pa.Array, counts: Ints, parts: Sequence[int], *, root: str = ROOT
) -> Hierarchy:
    """Intervals with about equally many rows.

    Each bound is a value: the number of rows below it is nearest to the due share. Of two equally
    near values it is the lower one. If one value has the rows of several intervals, there are fewer
    intervals.

    An interval with one value has the name of the value. Other intervals are named as in
    `intervals`, from their least value to the least value of the next interval. The last interval
    includes its upper bound: [76.5, 90].

    Args:
        values: Numbers, or texts of numbers.
        counts: int64[n]. The rows of each value.
        parts: The number of intervals on each level, from many to few, such as 16, 4. Each number
            divides the one before.
        root: The name of the root.
    """
    uneven = any(many % few or many == few for many, few in pairwise(parts) if few > 0)
    if not parts or min(parts) < 2 or uneven:
        raise InputError("parts: each must be at least 2 and divide the one before, such as 16, 4")
    rows = count_texts(values, counts)
    texts, numbers = _sort_numbers(list(rows))
    ordered = sorted(set(numbers))
    place = [bisect_left(ordered, number) for number in numbers]
    here = [0] * len(ordered)
    for text, at in zip(texts, place, strict=True):
        here[at] += rows[text]
    below = [0, *accumulate(here)][:-1]
    are_whole = _all_whole(numbers)
    levels = []
    for n_parts in parts:
        starts = {_nearest(below, Fraction(sum(here) * j, n_parts)) for j in range(1, n_parts)}
        names = _interval_names(ordered, sorted({0, *starts}), are_whole)
        levels.append([names[at] for at in place])
    for level in levels:
        size = Counter(level)
        level[:] = [
            text if size[name] == 1 else name for text, name in zip(texts, level, strict=True)
        ]
    return _from_levels(texts, levels, root)


def mask(
    values: pa.Array, counts: Sequence[int] | None = None, pad: str = "", *, root: str = ROOT
) -> Hierarchy:
    """Characters masked from the right: 12345, 1234*, 123**, up to the root.

    A group is a prefix: 123** contains all values that begin with 123. A value that is shorter than
    the prefix is in no group of that level, and stays as it is.

    Args:
        values: Texts.
        counts: For each level, how many characters of the longest value are masked, ascending. By
            default 1, 2, 3, ...
        pad: A character that first fills up short values on the left, so that 1234 is masked like
            01234. Empty for none.
        root: The name of the root.
    """
    if len(pad) > 1:
        raise InputError("pad: must be one character")
    texts = sorted(distinct_texts(values))
    length = max(map(len, texts))
    if counts is None:
        counts = range(1, length)
    elif not counts or min(counts) < 1 or any(a >= b for a, b in pairwise(counts)):
        raise InputError("masked: must be numbers of characters, ascending from 1, such as 1, 2, 4")
    padded = [text.rjust(length, pad) if pad else text for text in texts]
    levels = []
    for stars in counts:
        n_clear = max(length - stars, 0)
        cut = [full[:n_clear] + "*" * (length - n_clear) for full in padded]
        same = zip(texts, padded, cut, strict=True)
        levels.append([text if len(full) < n_clear else name for text, full, name in same])
    return _from_levels(texts, levels, root)


def dates(values: pa.Array, levels: Iterable[str] = DATE_LEVELS, *, root: str = ROOT) -> Hierarchy:
    """Levels of dates: 2020-01-31, 2020-01, 2020-Q1, 2020, 2020s.

    Args:
        values: Dates, times (their lowest level is the day), or ISO texts of these.
        levels: Some of DATE_LEVELS.
        root: The name of the root.
    """
    wanted = set(levels)
    if not wanted or wanted - DATE_LEVELS.keys():
        raise InputError(f"levels: must be some of {', '.join(DATE_LEVELS)}")
    texts = sorted(distinct_texts(values))
    days = [day for day in map(_day, texts) if day is not None]
    _require_all(len(days), len(texts), "dates such as 2020-01-31")
    names = [[name(day) for day in days] for key, name in DATE_LEVELS.items() if key in wanted]
    return _from_levels(texts, names, root)


def ordered_groups(values: pa.Array, fan_outs: Sequence[int], *, root: str = ROOT) -> Hierarchy:
    """Groups of neighbours in an ordered list, with names like "low to medium".

    Args:
        values: All values, in their order.
        fan_outs: The first is the number of values in a group of the first level, the second the
            number of these groups in a group of the next level, and so on.
        root: The name of the root.
    """
    if not fan_outs or min(fan_outs) < 2:
        raise InputError("fan_outs: give a number of at least 2 for each level")
    texts = distinct_texts(values)
    levels = []
    for size in accumulate(fan_outs, lambda a, b: a * b):
        runs = [texts[i : i + size] for i in range(0, len(texts), size)]
        names = [run[0] if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs]
        levels.append([names[i // size] for i in range(len(texts))])
    return _from_levels(texts, levels, root)


def numbers_between(low: Any, high: Any, step: Any = 1) -> pa.Array:
    """The texts of the numbers from `low` up to `high`, in steps of `step`."""
    first, last, by = (_parse_number(number, "a range") for number in (low, high, step))
    if by <= 0 or last < first or (last - first) / by >= MOST_OF_RANGE:
        raise InputError(
            f"a range must ascend, by a step above 0, and have at most {MOST_OF_RANGE:,} values"
        )
    n = (last - first) // by + 1
    return pa.array([_decimal(first + i * by) for i in range(n)], pa.string())


def days_between(low: str, high: str, step: Any = 1) -> pa.Array:
    """The texts of the days from `low` up to `high`, in steps of `step` days."""
    first, last = _day(low), _day(high)
    by = _parse_number(step, "a range")
    if first is None or last is None or last < first or by < 1 or by.denominator > 1:
        raise InputError("a range of days must ascend, by whole days: 2020-01-01 2020-12-31")
    days = range(first.toordinal(), last.toordinal() + 1, int(by))
    return pa.array([date.fromordinal(day).isoformat() for day in days], pa.string())


def distinct_texts(values: pa.Array) -> list[str]:
    """The distinct texts of the present values, in order of appearance.

    Raises:
        InputError: There are none.
    """
    texts = list(dict.fromkeys(values.cast(pa.string()).drop_null().to_pylist()))
    if not texts:
        raise InputError("there are no values to build a hierarchy from")
    return texts


def count_texts(values: pa.Array, counts: Ints) -> dict[str, int]:
    """By text: its rows. `counts` has the rows of each value."""
    rows = dict.fromkeys(distinct_texts(values), 0)
    for text, count in zip(values.cast(pa.string()).to_pylist(), counts.tolist(), strict=True):
        if text is not None:
            rows[text] += count
    return rows


def require_apart(root: str, texts: Iterable[str]) -> None:
    """Raises InputError if a value has the root's name."""
    if root in texts:
        raise InputError("root: a value has this name; choose another name")


def _from_levels(texts: Sequence[str], levels: Sequence[Sequence[str]], root: str) -> Hierarchy:
    """The tree over texts. levels[i][j] is the name of the group of texts[j] on level i."""
    require_apart(root, texts)
    levels = [level for level in levels if len(set(level)) > 1]
    ways = zip(texts, *levels, [root] * len(texts), strict=True)
    nodes, values = grow_tree(
        [Row([name for i, name in enumerate(way) if i == 0 or name != way[i - 1]]) for way in ways]
    )
    groups = set(nodes.parent[1:])
    if count := sum(value in groups for value in values) + len(nodes.repeated()):
        raise InputError(
            f"{count} values or groups would have the name of another group; change the levels"
        )
    return Hierarchy.of(nodes)


def _require_all(n_placed: int, n: int, what: str) -> None:
    if n_placed < n:
        raise InputError(
            f"{n - n_placed} of {n} distinct values are no {what}; leave them out, or set the "
            "options of the source so that it reads them as null"
        )


def _sort_numbers(texts: Iterable[str]) -> tuple[list[str], list[Fraction]]:
    """Sorts texts by their numbers. Returns both. Raises InputError if a text is not a number."""
    texts = list(texts)
    pairs = sorted((Fraction(text), text) for text in texts if _NUMBER.fullmatch(text))
    _require_all(len(pairs), len(texts), "numbers")
    return [text for _, text in pairs], [number for number, _ in pairs]


def _parse_number(value: Any, what: str) -> Fraction:
    if not _NUMBER.fullmatch(str(value)):
        raise InputError(f"{what}: must be numbers, such as 10 or 0.5")
    return Fraction(str(value))


def _all_whole(numbers: Iterable[Fraction]) -> bool:
    """Whether all numbers are whole and not negative."""
    return all(number.denominator == 1 and number >= 0 for number in numbers)


def _interval(low: Fraction, high: Fraction, are_whole: bool) -> str:
    return f"{low}-{high - 1}" if are_whole else f"[{_decimal(low)}, {_decimal(high)}["


def _decimal(number: Fraction) -> str:
    """The decimal digits of a number. It must have finitely many."""
    if number.denominator == 1:
        return str(number)
    with localcontext(prec=1200):
        return f"{(Decimal(number.numerator) / Decimal(number.denominator)).normalize():f}"


def _nearest(below: Sequence[int], due: Fraction) -> int:
    """The index of the number nearest to `due` in an ascending list, the first of equal ones."""
    after = min(bisect_left(below, due), len(below) - 1)
    if after == 0 or below[after] - due < due - below[after - 1]:
        return after
    return bisect_left(below, below[after - 1])


def _interval_names(
    bounds: Sequence[Fraction], starts: Sequence[int], are_whole: bool
) -> list[str]:
    """The name of each value's interval. `starts` has the index of each interval's first value."""
    names = []
    for low, high in pairwise([*starts, len(bounds)]):
        if high < len(bounds):
            name = _interval(bounds[low], bounds[high], are_whole)
        elif are_whole:
            name = f"{bounds[low]}-{bounds[-1]}"
        else:
            name = f"[{_decimal(bounds[low])}, {_decimal(bounds[-1])}]"
        names += [name] * (high - low)
    return names


def _day(text: str) -> date | None:
    match = _DATE.fullmatch(text)
    try:
        return date.fromisoformat(match[1]) if match else None
    except ValueError:
        return None

"""What columns say about each other, and about rows, by the hashes of their values."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import combinations
from math import comb

import numpy as np
import numpy.typing as npt

from anonlib.arrays import Ints

Hashes = npt.NDArray[np.uint64]

#: The most rows on which columns are compared.
MOST_ROWS = 20_000
#: A rule is believed if chance alone would break it in at least this many rows.
MIN_CHANCES = 10.0
#: The most rows, of all sets of columns together, on which sets are compared.
MOST_TRIED = 30_000_000


def find_copies(columns: Mapping[str, Ints]) -> list[list[str]]:
    """Groups of columns of which each tells the values of all others.

    columns: By name: int64[n], a hash of each value. Cost: O(n) for each pair of columns.
    """
    coded = _code(columns)
    groups: list[list[str]] = []
    for name, column in coded.items():
        for group in groups:
            other = coded[group[0]]
            if len(other.first) == len(column.first) and _follows(column, other):
                group.append(name)
                break
        else:
            groups.append([name])
    return [group for group in groups if len(group) > 1]


def find_equal(columns: Mapping[str, Ints]) -> list[list[str]]:
    """Groups of columns that have the same values in all rows, though no value may repeat.

    columns: As in `find_copies`. Cost: O(n) for each column.
    """
    groups: dict[bytes, list[str]] = {}
    for name, hashes in columns.items():
        groups.setdefault(sha256(hashes.tobytes()).digest(), []).append(name)
    several = [group for group in groups.values() if len(group) > 1]
    return [g for g in several if _count_chances(columns[g[0]]) >= MIN_CHANCES]


def _count_chances(hashes: Ints) -> float:
    """How many rows of a column would differ from those of another one by chance."""
    return len(hashes[:MOST_ROWS]) * _Column(hashes).chance


def find_sources(columns: Mapping[str, Ints]) -> dict[str, str]:
    """By column whose values follow from those of another one, which has more: that one, of
    several the one with the fewest values. Arguments and cost as in `find_copies`."""
    coded = _code(columns)
    finest = sorted(coded, key=lambda name: len(coded[name].first))
    sources = {}
    for name, column in coded.items():
        finer = (n for n in finest if len(coded[n].first) > len(column.first))
        if (source := next((n for n in finer if _follows(column, coded[n])), None)) is not None:
            sources[name] = source
    return sources


def list_followers(columns: Mapping[str, Ints], sources: Iterable[str]) -> dict[str, list[str]]:
    """By source: the columns whose values follow from its own, of which it has more, if two of them
    have nothing to do with each other; else none.

    Args:
        columns: As in `find_copies`.
        sources: Names of columns.

    Cost: O(d n) to read the columns, then O(d n) for each source, and O(d^2 n) where others follow.
    """
    coded = _code(columns)
    followers = {}
    for source in sources:
        key = coded.get(source)
        if key is None:
            continue
        fewer = {name: c for name, c in coded.items() if len(c.first) < len(key.first)}
        told = {name: column for name, column in fewer.items() if _follows(column, key)}
        pairs = combinations(told.values(), 2)
        apart = any(not _follows(a, b) and not _follows(b, a) for a, b in pairs)
        followers[source] = [*told] if apart else []
    return followers


def rank_singling(columns: Mapping[str, Ints], most: int) -> Iterator[tuple[str, float]]:
    """The few columns that together single out most rows, the finest first: the name, and the share
    of rows that no other row equals in the columns so far.

    All sets are tried, but in a large table: there each next column is the one that tells most rows
    apart together with those before.

    most: How many columns. Cost: O(d^most n log n) for d columns, at most MOST_TRIED rows; above
    that O(most d n log n).
    """
    n, size = max(map(len, columns.values()), default=0), min(most, len(columns))
    rows, left = np.zeros(n, np.uint64), [*columns]
    if comb(len(left), size) * n <= MOST_TRIED:
        sets = combinations(columns, size)  # max takes the first of equal ones
        left = [*max(sets, key=lambda names: rate_unique([columns[name] for name in names]))]
    for _ in range(size if n else 0):
        joined = {name: _join(rows, columns[name]) for name in left}
        best = max(left, key=lambda name: len(np.unique(joined[name])))
        rows = joined[best]
        yield best, _unique_share(rows)
        left.remove(best)


def rate_unique(columns: Sequence[Ints]) -> float:
    """The share of rows that no other row equals in all columns."""
    rows = np.zeros(len(columns[0]) if columns else 0, np.uint64)
    for column in columns:
        rows = _join(rows, column)
    return _unique_share(rows) if len(rows) else 0.0


class _Column:
    """The codes of a column, the first row of each, and the chance that two rows differ."""

    def __init__(self, hashes: Ints):
        _, first, codes, counts = np.unique(
            hashes[:MOST_ROWS], return_index=True, return_inverse=True, return_counts=True
        )
        self.first: Ints = first
        self.codes: Ints = codes
        self.chance = 1.0 - float(((counts / max(1, len(codes))) ** 2).sum())


def _code(columns: Mapping[str, Ints]) -> dict[str, _Column]:
    """The columns that have several values."""
    coded = {name: _Column(hashes) for name, hashes in columns.items()}
    return {name: column for name, column in coded.items() if len(column.first) > 1}


def _follows(column: _Column, source: _Column) -> bool:
    """Whether the source's value tells the column's, and that is no chance: enough rows repeat a
    value of the source, and could differ in the column."""
    n_repeats = len(source.codes) - len(source.first)
    if n_repeats * column.chance < MIN_CHANCES:
        return False
    told = column.codes[source.first]
    some = slice(0, 1_000)  # most pairs end here
    return bool(
        (told[source.codes[some]] == column.codes[some]).all()
        and (told[source.codes] == column.codes).all()
    )


def _join(rows: Hashes, column: Ints) -> Hashes:
    """One hash for each pair (splitmix64's finalizer, which mixes all bits)."""
    mixed = rows * np.uint64(0x9E3779B97F4A7C15) + column.view(np.uint64)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _unique_share(rows: Hashes) -> float:
    _, counts = np.unique(rows, return_counts=True)
    return float((counts == 1).sum() / len(rows))

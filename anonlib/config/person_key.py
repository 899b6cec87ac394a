"""Finds the column that stands for persons who have several rows, by what other columns say of it:
its name may be in any language, or say nothing."""

from collections.abc import Iterable, Mapping

from anonlib.arrays import Ints
from anonlib.config.guess import ColumnProfile
from anonlib.config.sketch import list_followers

#: The least share of distinct values: with more rows each, they are rather those of places.
MIN_SHARE = 0.1


def find_person_key(profiles: Iterable[ColumnProfile], columns: Mapping[str, Ints]) -> list[str]:
    """The column that repeats and from which most others follow, and these others; empty if from
    none at least two follow that have nothing to do with each other, as sex and town of a person
    have. What follows from a town, such as its county and state, is coarser from one to the next.

    Args:
        profiles: The columns that may be it.
        columns: By name, of all columns: as in `anonlib.config.sketch.find_copies`.

    Cost: O(d n) for each column that may be it, and O(d^2 n) where others follow.
    """
    found: list[str] = []
    for column in profiles:
        fits = (column.is_text or column.is_whole) and not column.is_postal and column.repeats
        if fits and column.distinct_share >= MIN_SHARE and column.name in columns:
            followers = list_followers(columns, column.name)
            if len(followers) > len(found[1:]):
                found = [column.name, *followers]
    return found

"""Finds the column that stands for persons who have several rows, by what other columns say of it:
its name may be in any language, or say nothing."""

from collections.abc import Iterable, Mapping

from anonlib.arrays import Ints
from anonlib.guesses.guess import ColumnProfile
from anonlib.guesses.sketch import list_followers

#: The least share of distinct values: with more rows each, they are rather those of places.
MIN_SHARE = 0.1


def find_person_key(profiles: Iterable[ColumnProfile], columns: Mapping[str, Ints]) -> list[str]:
    """The column that repeats and from which most others follow, and these others; empty if from
    none at least two follow that have nothing to do with each other, as sex and town of a person
    have. What follows from a town, such as its county and state, is coarser from one to the next.

    Args:
        profiles: The columns that may be it.
        columns: By name, of all columns: as in `anonlib.guesses.sketch.find_copies`.

    Cost: that of `list_followers`.
    """
    fitting = [
        column.name
        for column in profiles
        if (column.is_text or column.is_whole) and not column.is_postal and column.repeats
        if column.distinct_share >= MIN_SHARE
    ]
    followers = list_followers(columns, fitting) if fitting else {}
    told = [[name, *others] for name, others in followers.items() if others]
    return max(told, key=len, default=[])  # the first of equal ones

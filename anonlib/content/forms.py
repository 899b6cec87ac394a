"""Whether a released column is a quasi-identifier in another form, by a sample of rows.

Both gates judge by it, that of a source (`anonlib/run/content.py`) and that of tables in memory: it
takes no pass over the rows.
"""

from dataclasses import replace

import numpy as np

from anonlib.arrays import MISSING, Floats, Ints
from anonlib.content.content_rules import MAX_HARMLESS_VALUES, MIN_USUAL_PART, NEARLY_ALL
from anonlib.content.relations import correct_chance, measure_codes, measure_order
from anonlib.content.text_columns import TextColumn
from anonlib.content.value_parts import count_parts

#: Rows that are looked at, at most; and at least, since a few rows go together by chance.
MOST_ROWS, LEAST_ROWS = 2_000, 100


def choose_rows(n_rows: int) -> Ints:
    """Rows that stand for all n_rows, whatever the order of these."""
    if n_rows <= MOST_ROWS:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(n_rows).choice(n_rows, MOST_ROWS, replace=False))


def is_form_of(own: TextColumn, quasi: TextColumn) -> bool:
    """Whether a column says in nearly all rows what a quasi-identifier says, in other words.

    It has one value for each of its values, rises or falls with it as a number or a date, or is
    made of it: a part, a hash, a text that holds it. What columns have in common because one value
    has most rows does not count. A column with a few values is not looked at for parts of the
    other, nor for its order: it may be a group of its values.

    Cost: O(m log m) for the m rows.

    Args:
        own, quasi: The columns, of the same rows of a sample.
    """
    both = np.flatnonzero((own.code != MISSING) & (quasi.code != MISSING))
    if len(both) < LEAST_ROWS:
        return False
    own, quasi = own.take(both), quasi.take(both)
    if measure_codes(own.code, quasi.code) >= NEARLY_ALL:
        return True
    if len(own.values) <= MAX_HARMLESS_VALUES:
        return False
    return _is_in_order(own, quasi) or _is_made_of(own, quasi)


def _is_in_order(own: TextColumn, quasi: TextColumn) -> bool:
    """Whether one of them rises or falls with the other, and has more than a few values."""
    for x in quasi.readings:
        for y in own.readings:
            pair = x[quasi.place], y[own.place]
            there = np.isfinite(pair[0]) & np.isfinite(pair[1])
            if there.mean() < NEARLY_ALL:
                continue
            a, b = (each[there] for each in pair)
            if any(_rises_with(*columns) for columns in ((a, b), (b, a))):
                return True
    return False


def _rises_with(x: Floats, y: Floats) -> bool:
    """Whether y is a rising or falling function of x with more than a few values."""
    several = len(np.unique(y)) > MAX_HARMLESS_VALUES
    return several and measure_order(x, y) >= NEARLY_ALL


def _is_made_of(own: TextColumn, quasi: TextColumn) -> bool:
    """Whether nearly all rows show the quasi-identifier of their row, and not of others."""
    mixed = np.random.default_rng(0).permutation(len(quasi.place))
    others = replace(quasi, place=quasi.place[mixed])
    n = len(own.place)
    found, by_chance = (
        count_parts(own, each, (MIN_USUAL_PART,))[0] / n for each in (quasi, others)
    )
    return correct_chance(found, by_chance) >= NEARLY_ALL

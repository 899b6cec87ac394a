"""Compares the leaves of a hierarchy with the values of a column."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from anonlib.arrays import Ints
from anonlib.hierarchy import Hierarchy
from anonlib.table.missing import find_missing_values
from anonlib.text import fold_text


@dataclass(frozen=True)
class Coverage:
    """The values of a column that a hierarchy has, and those that it lacks.

    Attributes:
        n_values: Distinct values of the column.
        n_rows: Rows with a value.
        n_lacking_values: Distinct values without a leaf.
        n_lacking_rows: Rows with such a value.
        n_missing_rows: Rows without a value. They stand under the root.
        n_unused_leaves: Leaves that no row has.
        lacking: The values without a leaf, as text. They are raw values.
    """

    n_values: int
    n_rows: int
    n_lacking_values: int
    n_lacking_rows: int
    n_missing_rows: int
    n_unused_leaves: int
    lacking: tuple[str, ...]


def find_coverage(
    hierarchy: Hierarchy,
    values: pa.Array,
    counts: Ints,
    missing_tokens: Sequence[str] | None = None,
) -> Coverage:
    """Compares the leaves of a hierarchy with the values of a column.

    Args:
        hierarchy: The hierarchy.
        values: The distinct values.
        counts: int64[values]. The rows of each value.
        missing_tokens: Of a protected column: the texts that mean a missing value. Its text is
            compared as people see it. None for other columns.

    Raises InputError if values of the hierarchy are equal when compared like that.
    """
    protected = missing_tokens is not None
    hierarchy = hierarchy.folded() if protected else hierarchy
    missing = tuple(missing_tokens or ())
    if not pa.types.is_string(values.type):
        missing = tuple(find_missing_values(missing, values.type).cast(pa.string()).to_pylist())
    tokens = {"", *map(fold_text, missing)}
    rows: dict[str, int] = {}
    n_missing = 0
    for value, count in zip(values.cast(pa.string()).to_pylist(), counts.tolist(), strict=True):
        text = fold_text(value) if protected and value is not None else value
        if text is None or text in tokens:
            n_missing += count
        else:
            rows[text] = rows.get(text, 0) + count
    places = hierarchy.places(pa.array(list(rows), pa.string()))
    lacking = [text for text, place in zip(rows, places, strict=True) if place < 0]
    return Coverage(
        n_values=len(rows),
        n_rows=sum(rows.values()),
        n_lacking_values=len(lacking),
        n_lacking_rows=sum(rows[text] for text in lacking),
        n_missing_rows=n_missing,
        n_unused_leaves=int(hierarchy.tree.high[-1]) - len(np.unique(places[places >= 0])),
        lacking=tuple(sorted(lacking)),
    )

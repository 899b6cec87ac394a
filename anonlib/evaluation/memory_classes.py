"""Counts the classes of a release and of its source, in memory."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from anonlib.arrays import Ints
from anonlib.auditing import AuditSpec
from anonlib.auditing.arrow_values import RowNumbers, combine, distinct, number_keys
from anonlib.measure.case import CertaintyBin, Sizes
from anonlib.table.columns import TOKEN
from anonlib.table.schema import Schema


def number_released_classes(released: pa.Table, schema: Schema, spec: AuditSpec) -> RowNumbers:
    """The class of each released row, as the audit compares values.

    Args:
        released: The released rows, with columns named by id.
        schema: The columns.
        spec: The spec of the released table.
    """
    keys = [
        number_keys(released.column(c.id), is_set=c.name in spec.sets)
        for c in schema.quasi_identifiers
    ]
    return combine(keys, released.num_rows)


def count_released_sizes(
    released: pa.Table, classes: RowNumbers, schema: Schema, spec: AuditSpec
) -> Sizes:
    """The sizes of the classes of a release. With a unit they count persons if rows have tokens, or
    the spec names a column that stands for them; else rows."""
    named = schema[spec.token].id if spec.token is not None else None
    token = TOKEN if TOKEN in released.column_names else named
    person = None if token is None else number_keys(released.column(token))
    return _count_sizes(classes, person, persons=token is not None or spec.persons == "rows")


def count_source_sizes(source: pa.Table, schema: Schema) -> Sizes:
    """The sizes of the classes of a source, in persons."""
    keys = [number_keys(source.column(c.id)) for c in schema.quasi_identifiers]
    unit = [number_keys(source.column(id)) for id in schema.unit]
    classes = combine(keys, source.num_rows)
    if not unit:
        return _count_sizes(classes, None, persons=True)
    known = np.all([each.of_row > 0 for each in unit], axis=0)
    person = combine(unit, source.num_rows)
    numbers = RowNumbers(np.where(known, person.of_row + 1, 0), person.size + 1)
    return _count_sizes(classes, numbers, persons=True)


def _count_sizes(classes: RowNumbers, person: RowNumbers | None, *, persons: bool) -> Sizes:
    """The sizes of classes. Persons with the number 0 are nobody, and do not count.

    Args:
        classes: The class of each row.
        person: The person of each row; None to count rows.
        persons: As in `Sizes`.
    """
    if person is None:
        return Sizes.of_rows(*_count_each(np.bincount(classes.of_row)), persons=persons)
    there = person.of_row > 0
    pairs = np.unique(classes.of_row[there] * person.size + person.of_row[there])
    place, who = np.divmod(pairs, person.size)
    n = np.bincount(place, minlength=classes.size)
    size, n_classes = _count_each(n)
    smallest = np.full(person.size, len(size))  # the place of the size of the person's class
    np.minimum.at(smallest, who, np.searchsorted(size, n[place]))
    n_persons = np.bincount(smallest, minlength=len(size) + 1)[: len(size)]
    return Sizes(size, n_classes, n_persons, persons)


def _count_each(n: Ints) -> tuple[Ints, Ints]:
    """The sizes that occur among those of classes, and the classes of each."""
    size, n_classes = np.unique(n[n > 0], return_counts=True)
    return size.astype(np.int64), n_classes.astype(np.int64)


def count_certainty(
    classes: RowNumbers, values: RowNumbers, threshold: float, n_bins: int
) -> tuple[list[CertaintyBin], int, int]:
    """How certain classes make a guess of a column; see `Case.certainty`.

    Args:
        classes: The class of each row.
        values: The value of each row; 0 for a missing one.
        threshold: A class is certain if one value has at least this share.
        n_bins: The number of bins of certainty.
    """
    there = values.of_row > 0
    pairs, place = distinct(
        classes.of_row[there] * values.size + values.of_row[there], classes.size * values.size
    )
    n = np.bincount(place, minlength=len(pairs))
    most = np.zeros(classes.size, np.int64)
    np.maximum.at(most, pairs // values.size, n)
    rows = np.bincount(classes.of_row, minlength=classes.size)
    present = np.bincount(classes.of_row[there], minlength=classes.size)
    some = present > 0
    rows, present, most = rows[some], present[some], most[some]
    bins = np.minimum(n_bins * most // np.maximum(present, 1), n_bins - 1)
    found = [
        _describe(b, rows[bins == b], present[bins == b], most[bins == b], threshold)
        for b in np.unique(bins).tolist()
    ]
    whole = np.bincount(values.of_row[there])
    return found, int(there.sum()), int(whole.max(initial=0))


def _describe(place: int, rows: Ints, present: Ints, most: Ints, threshold: float) -> CertaintyBin:
    share = most / present
    return CertaintyBin(
        place,
        classes=len(rows),
        rows=int(rows.sum()),
        present=int(present.sum()),
        most=int(most.sum()),
        certainty=float(share.max()),
        certain=int(present[share >= threshold].sum()),
        smallest=int(rows.min()),
    )


def hash_keys(numbers: Sequence[RowNumbers]) -> pa.Table:
    """Hashes of the values in each column, another function for each column."""
    from anonlib.table.hashes import hash_seeded

    columns = [hash_seeded(i, each.of_row) for i, each in enumerate(numbers)]
    return pa.table({f"h{i}": pa.array(column) for i, column in enumerate(columns)})

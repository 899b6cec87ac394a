"""The least and the greatest released number of columns, and whether one row alone has it."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from anonlib.arrays import Floats
from anonlib.measure.attack_tables import ROW
from anonlib.measure.risk._predicates import Conjunction
from anonlib.measure.risk._regions import LineRegions, Range, read_regions
from anonlib.table.schema import Column


class Ends(NamedTuple):
    """Finds the ends of columns in one pass.

    Attributes:
        columns: Columns on a line that are released as values.
    """

    columns: tuple[Column, ...]

    def watch(self, tables: Iterable[pa.Table], ends: dict[str, Floats]) -> Iterator[pa.Table]:
        """Passes tables on. Until the last one, `ends` grows to the states of the columns.

        Args:
            tables: Released rows.
            ends: By id of a column on a line: float64[6]. The least number, and the least and the
                greatest number (ROW) of the rows that have it; then the same of the greatest
                number, negated.
        """
        for table in tables:
            rows = table.column(ROW).to_numpy().astype(np.float64)
            for column in self.columns:
                its = read_regions(column, table.column(column.id), released=True)
                assert isinstance(its, LineRegions)
                if not np.isnan(its.low).all():
                    both = np.concatenate([_find_least(its.low, rows), _find_least(-its.low, rows)])
                    ends[column.id] = merge_ends(ends.get(column.id, both), both)
            yield table

    def list_single(
        self, states: Mapping[str, Floats], columns: tuple[Column, ...]
    ) -> tuple[list[Conjunction], int]:
        """Predicates that a column has its least number, or its greatest: all that hold for one
        released row. Then how many were tried. columns: what predicates name by place."""
        place = {column.id: i for i, column in enumerate(columns)}
        found: list[Conjunction] = []
        for id, (low, *low_rows, high, least, greatest) in states.items():
            if low_rows[0] == low_rows[1]:
                found.append(((place[id], Range(-np.inf, float(low))),))
            if least == greatest:
                found.append(((place[id], Range(-float(high), np.inf)),))
        return found, 2 * len(states)


def _find_least(numbers: Floats, rows: Floats) -> Floats:
    """float64[3]. The least number, and the least and the greatest row that has it."""
    least = np.nanmin(numbers)
    its = rows[numbers == least]
    return np.array([least, its.min(), its.max()])


def merge_ends(left: Floats, right: Floats) -> Floats:
    """Merges two states of `Ends.watch`."""
    parts = []
    for a, b in zip(left.reshape(2, 3), right.reshape(2, 3), strict=True):
        if a[0] == b[0]:
            parts.append(np.array([a[0], min(a[1], b[1]), max(a[2], b[2])]))
        else:
            parts.append(a if a[0] < b[0] else b)
    return np.concatenate(parts)

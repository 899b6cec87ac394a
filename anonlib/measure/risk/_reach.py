"""The released rows that are nearest to persons, in a release of any size."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from anonlib.arrays import Codes, Floats, Ints, Sparse
from anonlib.measure.features import as_one_array, encode_distinct
from anonlib.measure.nearest import CHUNK, MatchedColumn
from anonlib.measure.risk._compared import match_column, match_plain
from anonlib.measure.risk._passes import TableSearch
from anonlib.table.encoding import Encoding
from anonlib.table.row_numbers import find_examples, number_tuples
from anonlib.table.schema import Column, Role

#: Squared distances are rounded to multiples of this: equal ones stay equal, however they are
#: summed.
STEP = 2.0**-30
#: The fewest persons to look at together, however many tuples there are.
LEAST_CHUNK = 16
#: What released rows add up to: csr_matrix[n, v] for the n rows of a table, small whole numbers.
Payload: TypeAlias = Callable[[pa.Table], Sparse]
#: What released rows say of single persons: from the persons and the rows of a table to a number
#: from 0 to 1 for each pair, as if it were a distance.
PairPayload: TypeAlias = Callable[[pa.Table, pa.Table], MatchedColumn]


class NearRows(NamedTuple):
    """The released rows that are nearest to p persons, by each of g groups of columns.

    Attributes:
        distance: float64[p, g]. The squared distance.
        n_rows: float64[p, g]. The rows at this distance.
        total: float64[p, v]. What the rows that are nearest by all groups add up to.
    """

    distance: Floats
    n_rows: Floats
    total: Floats


@dataclass(frozen=True, eq=False)
class Search(TableSearch[NearRows]):
    """A search for the released rows that are nearest to persons.

    Distances are those of the measure `linkage`. Other columns than quasi-identifiers count 1 if
    values differ; numbers by their difference in standard deviations of the persons' values.
    Cost: for each column O(persons classes), where classes are counted anew in each task.

    Attributes:
        persons: p original rows.
        groups: The columns of each group. A column is in one group at most.
        encodings: The encodings of the quasi-identifiers, by id.
        payload: What to add up. Without one, rows are counted.
        payload_ids: The columns that `payload` reads.
        n_payload: The numbers that `payload` gives of each row.
        pair_payload: What to add up instead, if it depends on the person, too.
    """

    persons: pa.Table
    groups: tuple[tuple[Column, ...], ...]
    encodings: Mapping[str, Encoding]
    payload: Payload | None = None
    payload_ids: tuple[str, ...] = ()
    n_payload: int = 1
    pair_payload: PairPayload | None = None

    @property
    def ids(self) -> Sequence[str]:
        return [*(c.id for group in self.groups for c in group), *self.payload_ids]

    @property
    def most_numbers(self) -> int:
        return len(self.persons) * self._width

    def start(self) -> Floats:
        return self._empty().ravel()

    def read(self, state: Floats) -> NearRows:
        g = len(self.groups)
        rows = state.reshape(-1, self._width)
        return NearRows(rows[:, :g], rows[:, g : 2 * g], rows[:, 2 * g :])

    def merge(self, left: Floats, right: Floats) -> Floats:
        """The nearer rows count, of equally near ones all."""
        g = len(self.groups)
        a, b = left.reshape(-1, self._width), right.reshape(-1, self._width)
        least = np.minimum(a[:, :g], b[:, :g])
        found = np.zeros_like(a)
        found[:, :g] = least
        for each in (a, b):
            reaches = each[:, :g] == least
            found[:, g : 2 * g] += np.where(reaches, each[:, g : 2 * g], 0)
            found[:, 2 * g :] += np.where(reaches.all(axis=1)[:, None], each[:, 2 * g :], 0)
        return found.ravel()

    def look(self, table: pa.Table, state: Floats) -> Floats:
        bound = self.read(state).distance
        columns = [match_rows(g, self.persons, table, self.encodings) for g in self.groups]
        pairs = self.pair_payload(self.persons, table) if self.pair_payload else None
        every = [*(each for group in columns for each in group), *([pairs] if pairs else [])]
        first, tuple_of = find_tuples(every, table.num_rows)
        trees = [sort_tuples(group, first) for group in columns]
        rows = np.bincount(tuple_of).astype(np.float64)
        totals = self._totals(table, tuple_of)
        found, p, g = self._empty(), self.persons.num_rows, len(self.groups)
        size = max(LEAST_CHUNK, CHUNK // len(first))
        for start in range(0, p, size):
            chunk = slice(start, min(p, start + size))
            near = [find_near(tree, chunk, bound[chunk, i]) for i, tree in enumerate(trees)]
            for i, (distance, nearest) in enumerate(near):
                found[chunk, i], found[chunk, g + i] = distance, nearest @ rows
            both = reduce(lambda one, other: one.multiply(other), [nearest for _, nearest in near])
            if pairs is None:
                found[chunk, 2 * g :] = (both @ totals).toarray()
            else:
                its = np.rint(pairs.distances.squared(chunk) / STEP)[:, pairs.place[first]]
                found[chunk, 2 * g] = both.multiply(its).tocsr() @ rows * STEP
        return found.ravel()

    @property
    def _width(self) -> int:
        return 2 * len(self.groups) + self.n_payload

    def _empty(self) -> Floats:
        """float64[p, 2 g + v]. The state of no rows."""
        state = np.zeros((self.persons.num_rows, self._width))
        state[:, : len(self.groups)] = np.inf
        return state

    def _totals(self, table: pa.Table, tuple_of: Ints) -> Sparse:
        """csr_matrix[tuples, v]. The sums of the payload by tuple."""
        from scipy.sparse import csr_matrix

        n = table.num_rows
        of_tuples = csr_matrix((np.ones(n), (tuple_of, np.arange(n))))
        every = csr_matrix(np.ones((n, 1)))
        return of_tuples @ (every if self.payload is None else self.payload(table))


def match_rows(
    columns: Sequence[Column],
    persons: pa.Table,
    table: pa.Table,
    encodings: Mapping[str, Encoding],
) -> list[MatchedColumn]:
    """The columns in which persons and released rows are compared, without those that are not."""
    matched = (_match(column, persons, table, encodings) for column in columns)
    return [each for each in matched if each is not None]


def _match(
    column: Column, persons: pa.Table, table: pa.Table, encodings: Mapping[str, Encoding]
) -> MatchedColumn | None:
    original = as_one_array(persons.column(column.id))
    released, index = encode_distinct(as_one_array(table.column(column.id)))
    if column.role is Role.QUASI_IDENTIFIER:
        found = match_column(column, encodings[column.id], original, released)
    else:
        found = match_plain(column, original, released)
    return found and MatchedColumn(found.distances, found.place[index])


class TupleTree(NamedTuple):
    """The t tuples of a table in the order of their values. A search leaves out many at once, as if
    they were leaves below a node.

    Attributes:
        columns: The c columns, those with few values first.
        tuples: int64[t]. The number of each tuple.
        place: int32[t, c]. Its place among the distinct values of each column.
        after: int32[c, t]. By column and tuple: the next tuple that differs from it in this column
            or in one before; t if there is none.
    """

    columns: tuple[MatchedColumn, ...]
    tuples: Ints
    place: Codes
    after: Codes


def sort_tuples(group: Sequence[MatchedColumn], first: Ints) -> TupleTree:
    """Sorts the tuples by the columns of a group. first: int64[t]. A row of each tuple."""
    columns = tuple(sorted(group, key=lambda column: int(column.place.max(initial=0))))
    t, c = len(first), len(columns)
    place = np.empty((t, c), np.int32)
    for k, column in enumerate(columns):
        place[:, k] = column.place[first]
    tuples = np.lexsort(place.T[::-1]) if c else np.arange(t)
    place = np.ascontiguousarray(place[tuples])
    after = np.empty((c, t), np.int32)
    differs = np.zeros(max(t - 1, 0), np.bool_)
    for k in range(c):
        differs |= place[1:, k] != place[:-1, k]
        ends = np.append(np.flatnonzero(differs) + 1, t)
        after[k] = np.repeat(ends, np.diff(ends, prepend=0))
    return TupleTree(columns, tuples, place, after)


def find_near(tree: TupleTree, chunk: slice, bound: Floats) -> tuple[Floats, Sparse]:
    """The least squared distance of each person of a chunk, and which tuples have it.

    Args:
        tree: The tuples.
        chunk: The persons.
        bound: float64[persons]. Tuples at a larger squared distance don't count.

    Returns:
        float64[persons]. The least squared distance; inf if no tuple counts.
        csr_matrix[persons, t]. 1 for the tuples that have it.
    """
    from scipy.sparse import csr_matrix

    from anonlib.measure.risk._reach_core import nearest

    shape = chunk.stop - chunk.start, len(tree.tuples)
    if not tree.columns:  # nothing is known: all are equally near
        return np.zeros(shape[0]), csr_matrix(np.ones(shape))
    parts = [np.rint(column.distances.squared(chunk) / STEP) for column in tree.columns]
    start = np.cumsum([0, *(part.shape[1] for part in parts[:-1])])
    distance, most = np.hstack(parts), np.rint(bound / STEP)
    least, end, found = nearest(distance, start, tree.place, tree.after, most)
    return least * STEP, csr_matrix((np.ones(len(found)), tree.tuples[found], end), shape)


def find_tuples(columns: Sequence[MatchedColumn], n: int) -> tuple[Ints, Ints]:
    """The distinct tuples of n rows: int64[t], a row of each; and int64[n], the tuple of each row.
    Rows with equal places in all columns are one."""
    number = number_tuples([column.place for column in columns], n)
    return find_examples(number), number

"""The values that a release leaves possible for persons: those of the rows nearest to them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from anonlib.arrays import Bools, Floats, Ints
from anonlib.encode import about
from anonlib.encode.texts import texts
from anonlib.measure.features import as_one_array
from anonlib.measure.nearest import CHUNK
from anonlib.measure.risk._reach import (
    LEAST_CHUNK,
    find_near,
    find_tuples,
    match_rows,
    sort_tuples,
)
from anonlib.measure.risk._tables import join_tables
from anonlib.measure.states import Count, Merge, States
from anonlib.table.encoding import Encoding
from anonlib.table.schema import Column

#: A pass over a release: `Case.fold` of it.
Fold: TypeAlias = Callable[[Sequence[str], Count, Merge], States]
#: The forms of which a released value stands for a region.
REGIONS = ("interval", "set", "node")
#: The most values that are told apart for one person.
MOST_CANDIDATES = 100
#: The number of a missing value. Others are hashes of HASH_BYTES bytes, which float64 holds.
NO_VALUE = -1
HASH_BYTES = 6
#: The name of the only state: [person, squared distance, value] of each candidate, sorted.
_STATE = "candidates"


@dataclass(frozen=True, eq=False)
class Candidates:
    """A search for the values of a column that are possible for persons.

    Distances are those of the measure `linkage`. If all columns are released as regions, only rows
    whose regions hold the person's values are near, at the distance 0. Otherwise the nearest are.

    Attributes:
        persons: p original rows.
        known: The quasi-identifiers that an attacker compares.
        secret: The column.
        encodings: The encodings of the quasi-identifiers, by id.
    """

    persons: pa.Table
    known: tuple[Column, ...]
    secret: Column
    encodings: Mapping[str, Encoding]

    def find(self, fold: Fold) -> list[Ints]:
        """For each person int64[v], the numbers of the different values of the near rows,
        ascending: all, or the MOST_CANDIDATES + 1 least.

        Cost: one pass; O(persons classes) for each column, where classes are counted anew in each
        task.
        """
        ids = [*(column.id for column in self.known), self.secret.id]
        found = fold(ids, self._count, _merge)[_STATE].reshape(-1, 3)
        if all(column.recoder.releases in REGIONS for column in self.known):
            found = found[found[:, 1] == 0]
        starts = np.searchsorted(found[:, 0], np.arange(1, self.persons.num_rows))
        return np.split(found[:, 2].astype(np.int64), starts)

    def _count(self, tables: Iterable[pa.Table]) -> States:
        state = np.zeros(0)
        for table in join_tables(tables):
            state = _merge("", state, self._of_table(table))
        return {_STATE: state}

    def _of_table(self, table: pa.Table) -> Floats:
        """float64[c * 3]. The candidates in one table; one may come several times."""
        from scipy.sparse import csr_matrix

        columns = match_rows(self.known, self.persons, table, self.encodings)
        first, tuple_of = find_tuples(columns, table.num_rows)
        distinct, value = np.unique(number_values(self.secret, table), return_inverse=True)
        pair = np.unique(tuple_of * len(distinct) + value)
        pair = pair[_are_first(pair // len(distinct))]
        place = pair // len(distinct), pair % len(distinct)
        values = csr_matrix((np.ones(len(pair)), place), (len(first), len(distinct)))
        found, p = [], self.persons.num_rows
        tree = sort_tuples(columns, first)
        size, anywhere = max(LEAST_CHUNK, CHUNK // len(first)), np.full(p, np.inf)
        for start in range(0, p, size):
            chunk = slice(start, min(p, start + size))
            distance, near = find_near(tree, chunk, anywhere[chunk])
            person, value = (near @ values).nonzero()
            found.append(np.column_stack([person + start, distance[person], distinct[value]]))
        return np.concatenate(found).ravel()


def number_values(column: Column, table: pa.Table) -> Ints:
    """int64[n]. A number of the value of each row, in every table the same; NO_VALUE for missing
    ones. Cost: a step in Python for each distinct value."""
    with about(column.name):
        values = texts(as_one_array(table.column(column.id))).dictionary_encode("encode")
    numbers = [NO_VALUE if text is None else _hash(text) for text in values.dictionary.to_pylist()]
    found: Ints = np.array(numbers, np.int64)[values.indices.to_numpy(zero_copy_only=False)]
    return found


def _hash(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=HASH_BYTES).digest(), "big")


def _merge(_: str, left: Floats, right: Floats) -> Floats:
    """Merges two states: of each person the values of the nearest rows, each once."""
    found = np.concatenate([left, right]).reshape(-1, 3)
    found = found[np.lexsort(found.T[::-1])]
    other = (found[1:] != found[:-1]).any(axis=1)
    found = found[np.append(np.ones(min(len(found), 1), np.bool_), other)]
    person, distance = found[:, 0], found[:, 1]
    near = distance == distance[np.searchsorted(person, person)]
    state: Floats = found[near & _are_first(person)].ravel()
    return state


def _are_first(group: Floats | Ints) -> Bools:
    """bool[n]. Which are among the first MOST_CANDIDATES + 1 of their group. group: [n], sorted."""
    first: Bools = np.arange(len(group)) - np.searchsorted(group, group) <= MOST_CANDIDATES
    return first

"""The values that a release leaves possible for persons: those of the rows nearest to them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import pyarrow as pa

from anonlib.arrays import Bools, Floats, Ints
from anonlib.encode import about
from anonlib.encode.texts import texts
from anonlib.measure.features import as_one_array
from anonlib.measure.nearest import CHUNK
from anonlib.measure.risk._passes import TableSearch
from anonlib.measure.risk._reach import (
    LEAST_CHUNK,
    find_near,
    find_tuples,
    match_rows,
    sort_tuples,
)
from anonlib.table.encoding import Encoding
from anonlib.table.schema import Column

#: The forms of which a released value stands for a region.
REGIONS = ("interval", "set", "node")
#: The most values that are told apart for one person.
MOST_CANDIDATES = 100
#: The number of a missing value. Others are hashes of HASH_BYTES bytes, which float64 holds.
NO_VALUE = -1
HASH_BYTES = 6


@dataclass(frozen=True, eq=False)
class Candidates(TableSearch[list[Ints]]):
    """A search for the values of a column that are possible for persons.

    It finds for each person int64[v], the numbers of the different values of the near rows,
    ascending: all, or the MOST_CANDIDATES + 1 least. Its state is [person, squared distance, value]
    of each candidate, sorted.

    Distances are those of the measure `linkage`. If all columns are released as regions, only rows
    whose regions hold the person's values are near, at the distance 0. Otherwise the nearest are.
    Cost: for each column O(persons classes), where classes are counted anew in each task.

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

    @property
    def ids(self) -> Sequence[str]:
        return [*(column.id for column in self.known), self.secret.id]

    @property
    def most_numbers(self) -> int:
        return len(self.persons) * 3 * (MOST_CANDIDATES + 1)

    def start(self) -> Floats:
        return np.zeros(0)

    def read(self, state: Floats) -> list[Ints]:
        found = state.reshape(-1, 3)
        if all(column.recoder.releases in REGIONS for column in self.known):
            found = found[found[:, 1] == 0]
        starts = np.searchsorted(found[:, 0], np.arange(1, self.persons.num_rows))
        return np.split(found[:, 2].astype(np.int64), starts)[: self.persons.num_rows]

    def merge(self, left: Floats, right: Floats) -> Floats:
        """Of each person the values of the nearest rows, each once."""
        found = np.concatenate([left, right]).reshape(-1, 3)
        found = found[np.lexsort(found.T[::-1])]
        other = (found[1:] != found[:-1]).any(axis=1)
        found = found[np.append(np.ones(min(len(found), 1), np.bool_), other)]
        person, distance = found[:, 0], found[:, 1]
        near = distance == distance[np.searchsorted(person, person)]
        state: Floats = found[near & _are_first(person)].ravel()
        return state

    def look(self, table: pa.Table, state: Floats) -> Floats:
        from scipy.sparse import csr_matrix

        columns = match_rows(self.known, self.persons, table, self.encodings)
        first, tuple_of = find_tuples(columns, table.num_rows)
        distinct, value = list_numbers(self.secret, table)
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
    numbers, place = list_numbers(column, table)
    return numbers[place]


def list_numbers(column: Column, table: pa.Table) -> tuple[Ints, Ints]:
    """The different numbers of the values, ascending, and int64[n]: the place of each row's."""
    with about(column.name):
        values = texts(as_one_array(table.column(column.id))).dictionary_encode("encode")
    numbers = [NO_VALUE if text is None else _hash(text) for text in values.dictionary.to_pylist()]
    distinct, place = np.unique(np.array(numbers, np.int64), return_inverse=True)
    return distinct, place[values.indices.to_numpy(zero_copy_only=False)]


def _hash(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=HASH_BYTES).digest(), "big")


def _are_first(group: Floats | Ints) -> Bools:
    """bool[n]. Which are among the first MOST_CANDIDATES + 1 of their group. group: [n], sorted."""
    first: Bools = np.arange(len(group)) - np.searchsorted(group, group) <= MOST_CANDIDATES
    return first

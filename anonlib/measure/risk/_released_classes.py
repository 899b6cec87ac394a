"""The narrowest released classes that hold persons, found in one pass over a release."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from anonlib.arrays import Bools, Floats, Ints, Sparse
from anonlib.measure.nearest import CHUNK, Distances, MatchedColumn
from anonlib.measure.risk._candidates import NO_VALUE, number_values
from anonlib.measure.risk._passes import join_tables
from anonlib.measure.risk._reach import LEAST_CHUNK, find_near, find_tuples, sort_tuples
from anonlib.measure.risk._regions import (
    EVERYTHING,
    LineRegions,
    Range,
    Region,
    Sets,
    read_regions,
)
from anonlib.measure.states import States
from anonlib.table.schema import Column

if TYPE_CHECKING:
    from anonlib.measure.attack_tables import AttackTables

#: The width of what does not hold a person: more than any sum of widths.
FAR = 2.0**32
#: The first number of an entry of a state: it is a person, or else a value of this secret column.
_PERSON = -1


class ReleasedClass(NamedTuple):
    """A class of a release.

    Attributes:
        regions: What its quasi-identifiers stand for.
        n_rows: Its rows.
        values: By secret column: the counts of its present values, by their numbers.
    """

    regions: tuple[Region, ...]
    n_rows: int
    values: tuple[dict[int, int], ...]


@dataclass(frozen=True, eq=False)
class ClassSearch:
    """A search for the narrowest class that holds each person.

    The width of a region is the number of the persons whose values are in it, that of a class the
    sum over its columns. Of equally narrow classes, the first in the order of their names is taken.

    Attributes:
        persons: p original rows.
        known: The quasi-identifiers. All of them are released as regions.
        secrets: The columns whose values are counted.
    """

    persons: pa.Table
    known: tuple[Column, ...]
    secrets: tuple[Column, ...]

    def find(self, tables: "AttackTables") -> tuple[list[ReleasedClass], Ints]:
        """The classes that were found, and int64[p], the class of each person; -1 for none.

        Cost: one pass over the release; O(persons classes) for each column, where classes are
        counted anew in each task.
        """
        ids = [column.id for column in (*self.known, *self.secrets)]
        # Each task names the classes that are the narrowest ones for a person among its own rows.
        # So all rows of the narrowest class of all are counted.
        states = tables.fold_released(ids, self._count, _merge)
        named = sorted((json.loads(name)[0], name) for name in states)
        read = cache(lambda i, text: read_text(self.known[i], text))
        place = np.full(self.persons.num_rows, -1)
        found: list[ReleasedClass] = []
        for _, name in named:
            kind, key, count = states[name].reshape(-1, 3).T
            persons = key[kind == _PERSON].astype(np.int64)
            persons = persons[place[persons] < 0]
            if len(persons):
                place[persons] = len(found)
                regions = tuple(read(*each) for each in enumerate(json.loads(name)[1]))
                found.append(self._make_class(regions, kind, key, count))
        return found, place

    def _make_class(
        self, regions: tuple[Region, ...], kind: Floats, key: Floats, count: Floats
    ) -> ReleasedClass:
        """A class. kind, key, count: [e]. Its entries."""
        values = []
        for secret in range(len(self.secrets)):
            its = zip(key[kind == secret].tolist(), count[kind == secret].tolist(), strict=True)
            values.append({int(number): int(n) for number, n in its})
        n_rows = sum(values[0].values())
        for counts in values:
            counts.pop(NO_VALUE, None)
        return ReleasedClass(regions, n_rows, tuple(values))

    def _count(self, tables: Iterable[pa.Table]) -> States:
        found: dict[str, Floats] = {}
        for table in join_tables(tables):
            for name, state in self._of_table(table):
                found[name] = _merge("", found[name], state) if name in found else state
        return found

    def _of_table(self, table: pa.Table) -> list[tuple[str, Floats]]:
        """The classes in a table: the name of each, and its entries."""
        columns = [measure_widths(column, self.persons, table) for column in self.known]
        first, tuple_of = find_tuples([each.match for each in columns], table.num_rows)
        holding = self._find_holding([each.match for each in columns], first)
        if not len(holding):
            return []
        chosen, place = np.unique(holding[:, 0], return_inverse=True)
        entries = [_list_entries(place, _PERSON, holding[:, 1])]
        rows = np.flatnonzero(np.isin(tuple_of, chosen))
        its = np.searchsorted(chosen, tuple_of[rows])
        for i, secret in enumerate(self.secrets):
            entries.append(_list_entries(its, i, number_values(secret, table)[rows]))
        every = np.concatenate(entries)
        every = every[np.argsort(every[:, 0], kind="stable")]
        parts = np.split(every[:, 1:], np.searchsorted(every[:, 0], np.arange(1, len(chosen))))
        names = [_encode(columns, row) for row in first[chosen].tolist()]
        return [(name, part.ravel()) for name, part in zip(names, parts, strict=True)]

    def _find_holding(self, columns: Sequence[MatchedColumn], first: Ints) -> Ints:
        """int64[h, 2]. The narrowest tuples that hold persons, and these persons."""
        tree, p = sort_tuples(columns, first), self.persons.num_rows
        found, most = [np.zeros((0, 2), np.int64)], np.full(p, FAR / 2)
        size = max(LEAST_CHUNK, CHUNK // max(len(first), 1))
        for start in range(0, p, size):
            chunk = slice(start, min(p, start + size))
            person, its = find_near(tree, chunk, most[chunk])[1].nonzero()
            found.append(np.column_stack([its, person + start]))
        return np.concatenate(found)


class ReleasedColumn(NamedTuple):
    """A column of a table: how far its released values are from persons, as widths of regions.

    Attributes:
        match: The widths of the d distinct regions, in the form of distances.
        width: float64[d]. The same of persons who are in them.
        texts: The regions as texts.
    """

    match: MatchedColumn
    width: Floats
    texts: list[str]


@dataclass(frozen=True, eq=False)
class RangeWidths(Distances):
    """The widths of ranges that hold a number; FAR of others.

    Attributes:
        value: float64[n]. The numbers; NaN for none.
        low: float64[d]. The lower ends.
        high: float64[d]. The upper ends.
        anything: bool[d]. Whether it holds everything, missing values too.
        width: float64[d]. The widths.
    """

    value: Floats
    low: Floats
    high: Floats
    anything: Bools
    width: Floats

    def squared(self, rows: slice) -> Floats:
        value = self.value[rows, None]
        holds = ((self.low <= value) & (value <= self.high)) | self.anything
        return np.where(holds, self.width, FAR)


@dataclass(frozen=True, eq=False)
class SetWidths(Distances):
    """The widths of sets that hold a value; FAR of others.

    Attributes:
        code: int64[n]. The values.
        among: csr_matrix[c, d]. 1 for the values of each set.
        anything: bool[d]. Whether it holds everything.
        width: float64[d]. The widths.
    """

    code: Ints
    among: Sparse
    anything: Bools
    width: Floats

    def squared(self, rows: slice) -> Floats:
        holds = (self.among[self.code[rows]].toarray() > 0) | self.anything
        return np.where(holds, self.width, FAR)


def measure_widths(column: Column, persons: pa.Table, table: pa.Table) -> ReleasedColumn:
    """The widths of the released values of a column, for persons."""
    points, regions = (
        read_regions(column, rows.column(column.id), released=is_released)
        for rows, is_released in ((persons, False), (table, True))
    )
    if isinstance(points, LineRegions) and isinstance(regions, LineRegions):
        return _measure_ranges(points.low, regions)
    assert isinstance(points, Sets)
    assert isinstance(regions, Sets)
    distances = _measure_sets(points, regions)
    parts: list[Any] = [
        sorted(each, key=lambda t: (t is not None, t or "")) for each in regions.distinct
    ]
    if column.recoder.releases == "node":  # a node may have very many leaves
        first = np.unique(regions.index, return_index=True)[1]
        nodes = table.column(column.id).take(pa.array(first)).to_pylist()
        parts = [{"node": node} for node in nodes]
    return ReleasedColumn(
        MatchedColumn(distances, regions.index), distances.width, [*map(json.dumps, parts)]
    )


def _measure_ranges(value: Floats, regions: LineRegions) -> ReleasedColumn:
    null = np.isnan(regions.low)
    ends = np.column_stack([regions.low, regions.high, null])
    ends[null, :2] = 0.0  # NaN is not equal to itself
    ends, place = np.unique(ends, axis=0, return_inverse=True)
    low, high, anything = ends[:, 0].copy(), ends[:, 1].copy(), ends[:, 2] > 0
    present = np.sort(value[~np.isnan(value)])
    inside = np.searchsorted(present, high, side="right") - np.searchsorted(present, low)
    width = np.where(anything, len(value), inside).astype(np.float64)
    distances = RangeWidths(value, low, high, anything, width)
    pairs = zip(low.tolist(), high.tolist(), anything.tolist(), strict=True)
    texts = [json.dumps([] if null else {"low": low, "high": high}) for low, high, null in pairs]
    return ReleasedColumn(MatchedColumn(distances, place.ravel()), width, texts)


def _measure_sets(points: Sets, regions: Sets) -> SetWidths:
    from scipy.sparse import csr_matrix

    code = {next(iter(each)): i for i, each in enumerate(points.distinct)}
    sets = regions.distinct
    pairs = [(code[text], i) for i, each in enumerate(sets) for text in each if text in code]
    row, place = zip(*pairs, strict=True) if pairs else ((), ())
    among = csr_matrix((np.ones(len(pairs)), (row, place)), (len(code), len(sets)))
    anything = np.array([each == EVERYTHING for each in sets], np.bool_)
    n = np.bincount(points.index, minlength=len(code)).astype(np.float64)
    width = np.where(anything, len(points.index), n @ among)
    return SetWidths(points.index, among, anything, width)


def read_text(column: Column, text: str) -> Region:
    """The region of a column that `ReleasedColumn.texts` has as a text: the ends of a range, the
    values of a set, or the name of a node; no values for a region that says nothing."""
    parts = json.loads(text)
    if isinstance(parts, list):
        return frozenset(parts)
    if "node" not in parts:
        return Range(**parts)
    node = pa.array([parts["node"]], pa.string())
    return read_regions(column, node, released=True).regions()[0]


def _list_entries(place: Ints, kind: int, key: Ints) -> Floats:
    """float64[e, 4]. By class: its different keys and how often each occurs.

    Args:
        place: int64[n]. The class of each key.
        kind: What the keys are.
        key: int64[n].
    """
    pairs, count = np.unique(np.column_stack([place, key]), axis=0, return_counts=True)
    return np.column_stack([pairs[:, 0], np.full(len(pairs), kind), pairs[:, 1], count]).astype(
        np.float64
    )


def _merge(_: str, left: Floats, right: Floats) -> Floats:
    """Merges the entries of a class: counts of equal ones are added up."""
    both = np.concatenate([left, right]).reshape(-1, 3)
    keys, place = np.unique(both[:, :2], axis=0, return_inverse=True)
    count = np.bincount(place.ravel(), both[:, 2], len(keys))
    state: Floats = np.column_stack([keys, count]).ravel()
    return state


def _encode(columns: Sequence[ReleasedColumn], row: int) -> str:
    """The name of a row's class: its width and its regions as texts."""
    places = [int(each.match.place[row]) for each in columns]
    width = sum(float(each.width[i]) for each, i in zip(columns, places, strict=True))
    texts = [each.texts[i] for each, i in zip(columns, places, strict=True)]
    return json.dumps([width, texts])

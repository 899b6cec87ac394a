"""Passes over a release: rows to look at together, and searches that share a pass."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Generic, TypeAlias, TypeVar

import pyarrow as pa

from anonlib.arrays import Floats
from anonlib.measure.states import Count, Merge, States

#: A pass over a release: `AttackTables.fold_released`, or `Case.fold` of a release.
Fold: TypeAlias = Callable[[Sequence[str], Count, Merge], States]

#: A table has a cost of its own, for each predicate or person: few large ones are cheaper.
ROWS = 250_000
#: The most numbers that the states of the searches of a pass may have together, 32 MB: the driver
#: holds those of up to 16 tasks.
MOST_NUMBERS = 2**22


def join_tables(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The rows as tables of at least ROWS rows, but for the last one."""
    waiting: list[pa.Table] = []
    for table in tables:
        waiting.append(table)
        if sum(each.num_rows for each in waiting) >= ROWS:
            yield pa.concat_tables(waiting)
            waiting = []
    if sum(each.num_rows for each in waiting):
        yield pa.concat_tables(waiting)


Found = TypeVar("Found")


class TableSearch(ABC, Generic[Found]):
    """A search of a release for what it tells of some persons.

    Attributes:
        persons: Original rows.
    """

    persons: pa.Table

    @property
    @abstractmethod
    def ids(self) -> Sequence[str]:
        """The columns that it reads."""

    @property
    @abstractmethod
    def most_numbers(self) -> int:
        """The most numbers that a state has."""

    @abstractmethod
    def start(self) -> Floats:
        """The state of no rows."""

    @abstractmethod
    def look(self, table: pa.Table, state: Floats) -> Floats:
        """The state of a table. state: That of the tables before; a search may use it."""

    @abstractmethod
    def merge(self, left: Floats, right: Floats) -> Floats:
        """Merges two states."""

    @abstractmethod
    def read(self, state: Floats) -> Found:
        """What the state of all rows tells."""


def search_release(searches: Sequence[TableSearch[Found]], fold: Fold) -> list[Found]:
    """What each search finds. Cost: one pass for all of them, or for as many as have MOST_NUMBERS
    in their states; without persons, none."""
    found: dict[int, Found] = {}
    waiting: dict[str, TableSearch[Found]] = {}
    for i, search in enumerate(searches):
        if not search.persons.num_rows:
            found[i] = search.read(search.start())
            continue
        n_numbers = sum(each.most_numbers for each in waiting.values()) + search.most_numbers
        if waiting and n_numbers > MOST_NUMBERS:
            found |= _search_once(waiting, fold)
            waiting = {}
        waiting[str(i)] = search
    if waiting:
        found |= _search_once(waiting, fold)
    return [found[i] for i in range(len(searches))]


def _search_once(searches: Mapping[str, TableSearch[Found]], fold: Fold) -> dict[int, Found]:
    """What each search finds, in one pass. searches: By their number."""
    ids = dict.fromkeys(id for search in searches.values() for id in search.ids)

    def count(tables: Iterable[pa.Table]) -> States:
        states = {i: search.start() for i, search in searches.items()}
        for table in join_tables(tables):
            for i, search in searches.items():
                states[i] = search.merge(states[i], search.look(table, states[i]))
        return states

    def merge(i: str, left: Floats, right: Floats) -> Floats:
        return searches[i].merge(left, right)

    states = fold([*ids], count, merge)
    return {int(i): each.read(states.get(i, each.start())) for i, each in searches.items()}

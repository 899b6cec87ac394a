"""Passes over a release: rows to look at together, and searches that share a pass."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, TypeAlias, TypeVar

import pyarrow as pa

from anonlib.arrays import Floats
from anonlib.measure.states import Count, Merge, States

#: A pass over a release: `AttackTables.fold_released`, or `Case.fold` of a release.
Fold: TypeAlias = Callable[[Sequence[str], Count, Merge], States]

#: A table has a cost of its own, for each predicate or person: few large ones are cheaper.
ROWS = 250_000


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

    @abstractmethod
    def start(self) -> Floats:
        """The state of no rows."""

    @abstractmethod
    def look(self, table: pa.Table, state: Floats) -> Floats:
        """The state of a table. state: That of the tables before, which it may make use of."""

    @abstractmethod
    def merge(self, left: Floats, right: Floats) -> Floats:
        """Merges two states."""

    @abstractmethod
    def read(self, state: Floats) -> Found:
        """What the state of all rows tells."""


def search_release(searches: Sequence[TableSearch[Found]], fold: Fold) -> list[Found]:
    """What each search finds. Cost: one pass for all of them; without persons, none."""
    asked = {str(i): search for i, search in enumerate(searches) if search.persons.num_rows}
    ids = dict.fromkeys(name for search in asked.values() for name in search.ids)

    def count(tables: Iterable[pa.Table]) -> States:
        states = {i: search.start() for i, search in asked.items()}
        for table in join_tables(tables):
            for i, search in asked.items():
                states[i] = search.merge(states[i], search.look(table, states[i]))
        return states

    def merge(i: str, left: Floats, right: Floats) -> Floats:
        return asked[i].merge(left, right)

    states = fold([*ids], count, merge) if asked else {}
    return [search.read(states.get(str(i), search.start())) for i, search in enumerate(searches)]

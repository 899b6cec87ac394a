"""Guesses of a column from released rows that are equally near to a person."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonlib.arrays import Bools, Floats, Ints
from anonlib.encode import about
from anonlib.encode.texts import texts
from anonlib.measure.features import as_one_array
from anonlib.table.encoding import to_float
from anonlib.table.schema import Column, Scale, is_number

#: A scipy.sparse.csr_matrix of float64.
Sparse: TypeAlias = Any
#: The most values of a column that are guessed.
MOST_VALUES = 100
#: Numbers are added up in this many steps of their range, so that sums are exact in any order.
N_STEPS = 2**20


class GuessRule(ABC):
    """How a column is guessed."""

    @property
    @abstractmethod
    def width(self) -> int:
        """The numbers that `payload` gives of each row."""

    @abstractmethod
    def payload(self, table: pa.Table) -> Sparse:
        """csr_matrix[n, width]. What the guess needs of n released rows. It is added up."""

    @abstractmethod
    def are_right(self, total: Floats, persons: pa.Table) -> Bools:
        """bool[p]. Whether the value of each person is guessed.

        total: float64[p, width]. The sums over the released rows nearest to each person.
        """


@dataclass(frozen=True)
class NumberGuess(GuessRule):
    """Guesses the mean.

    Attributes:
        column: The column.
        step: Numbers are rounded to multiples of this.
        tolerance: How far a guess may be off, as a share of it.
    """

    column: Column
    step: float
    tolerance: float

    @property
    def width(self) -> int:
        return 2

    def payload(self, table: pa.Table) -> Sparse:
        from scipy.sparse import csr_matrix

        numbers = _to_numbers(self.column, table)
        present = np.isfinite(numbers)
        steps = np.rint(np.where(present, numbers, 0.0) / self.step)
        return csr_matrix(np.column_stack([steps, present.astype(np.float64)]))

    def are_right(self, total: Floats, persons: pa.Table) -> Bools:
        guess = total[:, 0] / np.maximum(total[:, 1], 1) * self.step
        error = np.abs(guess - _to_numbers(self.column, persons))
        # Half a step more, since the guess is rounded.
        near: Bools = (total[:, 1] > 0) & (error <= self.tolerance * np.abs(guess) + self.step / 2)
        return near


@dataclass(frozen=True)
class ValueGuess(GuessRule):
    """Guesses the most frequent value; of equally frequent ones the first.

    Attributes:
        column: The column.
        values: The texts of the values that may be guessed.
    """

    column: Column
    values: tuple[str, ...]

    @property
    def width(self) -> int:
        return len(self.values)

    def payload(self, table: pa.Table) -> Sparse:
        from scipy.sparse import csr_matrix

        place = self._places(table)
        rows = np.flatnonzero(place >= 0)
        ones = np.ones(len(rows))
        return csr_matrix((ones, (rows, place[rows])), (table.num_rows, self.width))

    def are_right(self, total: Floats, persons: pa.Table) -> Bools:
        some = total.max(axis=1, initial=0) > 0
        right: Bools = some & (total.argmax(axis=1) == self._places(persons))
        return right

    def _places(self, table: pa.Table) -> Ints:
        """int64[n]. The place of each row's value among `values`; -1 for others."""
        found = pc.index_in(_to_texts(self.column, table), value_set=pa.array(self.values))
        places: Ints = found.fill_null(-1).to_numpy(zero_copy_only=False)
        return places.astype(np.int64)


def make_guess(column: Column, persons: pa.Table, tolerance: float) -> GuessRule:
    """How to guess a column of some persons, all with a value."""
    if _is_measured(column):
        numbers = _to_numbers(column, persons)
        extent = float(np.ptp(numbers)) if len(numbers) else 0.0
        return NumberGuess(column, extent / N_STEPS or 1.0, tolerance)
    counts = _to_texts(column, persons).value_counts()
    pairs = zip(counts.field("values").to_pylist(), counts.field("counts").to_pylist(), strict=True)
    most = sorted(pairs, key=lambda pair: (-pair[1], pair[0]))[:MOST_VALUES]
    return ValueGuess(column, tuple(sorted(text for text, _ in most)))


def keep_present(column: Column, table: pa.Table) -> pa.Table:
    """The rows with a value in a column."""
    if _is_measured(column):
        return table.filter(pa.array(np.isfinite(_to_numbers(column, table))))
    return table.filter(_to_texts(column, table).is_valid())


def _is_measured(column: Column) -> bool:
    if column.scale is None:
        return is_number(column.type)
    return column.scale is Scale.CONTINUOUS and is_number(column.type)


def _to_numbers(column: Column, table: pa.Table) -> Floats:
    return to_float(as_one_array(table.column(column.id)))


def _to_texts(column: Column, table: pa.Table) -> Any:
    with about(column.name):
        return texts(as_one_array(table.column(column.id)))

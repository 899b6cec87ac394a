"""Guesses of a column from released rows that are equally near to a person."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonlib.arrays import Bools, Floats, Ints, Sparse
from anonlib.encode import about
from anonlib.encode.texts import texts
from anonlib.measure.features import as_one_array
from anonlib.table.encoding import to_float
from anonlib.table.schema import Column, Scale, may_be_continuous

#: The most values of a column that are guessed. A number is frequent if as many could be.
MOST_VALUES = 100
#: A frequent number is guessed if at least this share of the nearest rows has it.
FREQUENT = 0.2
#: Numbers are added up in this many steps of their range, so that sums are exact in any order.
N_STEPS = 2**20


class GuessRule(ABC):
    """How a column is guessed."""

    @property
    @abstractmethod
    def width(self) -> int:
        """The numbers that `payload` gives of each row."""

    @property
    def note(self) -> str:
        """What is said with the figures."""
        return ""

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
    """Guesses the mean; where many of the nearest rows have one frequent number, that number.

    Attributes:
        column: The column.
        step: Numbers are rounded to multiples of this.
        tolerance: How far a guess may be off, as a share of it.
        most: How far a guess may be off at most: numbers of a narrow range, such as years, are all
            near to each other.
        frequent: The frequent numbers.
    """

    column: Column
    step: float
    tolerance: float
    most: float
    frequent: "ValueGuess"

    @property
    def width(self) -> int:
        return 2 + self.frequent.width

    def payload(self, table: pa.Table) -> Sparse:
        from scipy.sparse import csr_matrix, hstack

        numbers = _to_numbers(self.column, table)
        present = np.isfinite(numbers)
        steps = np.rint(np.where(present, numbers, 0.0) / self.step)
        sums = csr_matrix(np.column_stack([steps, present.astype(np.float64)]))
        if not self.frequent.values:
            return sums
        return hstack([sums, self.frequent.payload(table)], format="csr")

    def are_right(self, total: Floats, persons: pa.Table) -> Bools:
        sums, n_rows, counts = total[:, 0], total[:, 1], total[:, 2:]
        guess = sums / np.maximum(n_rows, 1) * self.step
        error = np.abs(guess - _to_numbers(self.column, persons))
        least = np.minimum(self.tolerance * np.abs(guess), self.most)
        near: Bools = (n_rows > 0) & (
            error <= least + self.step / 2
        )  # half a step: the guess is rounded
        if not self.frequent.values:
            return near
        frequent = counts.max(axis=1) >= np.maximum(FREQUENT * n_rows, 1)
        right: Bools = np.where(frequent, self.frequent.are_right(counts, persons), near)
        return right


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

    @property
    def note(self) -> str:
        full = self.width == MOST_VALUES
        return f"of the {MOST_VALUES} most frequent values" if full else ""

    def payload(self, table: pa.Table) -> Sparse:
        from scipy.sparse import csr_matrix

        place = self._places(table)
        rows = np.flatnonzero(place >= 0)
        ones = np.ones(len(rows))
        return csr_matrix((ones, (rows, place[rows])), (table.num_rows, self.width))

    def are_right(self, total: Floats, persons: pa.Table) -> Bools:
        if not len(total):
            return np.zeros(0, np.bool_)
        some = total.max(axis=1, initial=0) > 0
        right: Bools = some & (total.argmax(axis=1) == self._places(persons))
        return right

    def _places(self, table: pa.Table) -> Ints:
        """int64[n]. The place of each row's value among `values`; -1 for others."""
        found = pc.index_in(
            _to_texts(self.column, table), value_set=pa.array(self.values, pa.string())
        )
        places: Ints = found.fill_null(-1).to_numpy(zero_copy_only=False)
        return places.astype(np.int64)


def make_guess(
    column: Column, scale: Scale | None, persons: pa.Table, tolerance: float
) -> GuessRule:
    """How to guess a column of some persons, all with a value. Codes are numbers, too: how a column
    is stored says little.

    scale: The scale that the config gives the column; None if it gives none.
    """
    counts = _count_values(column, persons)
    if _is_of_values(column, scale, [count for _, count in counts]):
        return ValueGuess(column, _in_order(counts))
    numbers = _to_numbers(column, persons)
    extent = float(np.ptp(numbers)) if len(numbers) else 0.0
    least = max(2.0, len(numbers) / MOST_VALUES)
    frequent = ValueGuess(column, _in_order([each for each in counts if each[1] >= least]))
    return NumberGuess(column, extent / N_STEPS or 1.0, tolerance, tolerance * extent, frequent)


def keep_present(column: Column, table: pa.Table) -> pa.Table:
    """The rows with a value in a column."""
    if may_be_continuous(column.type):
        return table.filter(pa.array(np.isfinite(_to_numbers(column, table))))
    return table.filter(_to_texts(column, table).is_valid())


def _is_of_values(column: Column, scale: Scale | None, counts: list[int]) -> bool:
    """Whether a column is guessed as categories: by its scale, else by the counts of its values.
    Few values, which most persons share with others, are categories."""
    if not may_be_continuous(column.type):
        return True
    if scale is not None:
        return scale is not Scale.CONTINUOUS
    shared = sum(count for count in counts if count > 1)
    return len(counts) <= MOST_VALUES and 2 * shared >= sum(counts)


def _count_values(column: Column, persons: pa.Table) -> list[tuple[str, int]]:
    """The texts of the values and their counts, the most frequent first."""
    found = _to_texts(column, persons).value_counts()
    pairs = zip(found.field("values").to_pylist(), found.field("counts").to_pylist(), strict=True)
    return sorted(pairs, key=lambda pair: (-pair[1], pair[0]))


def _in_order(counts: list[tuple[str, int]]) -> tuple[str, ...]:
    """The texts that are guessed, in their order."""
    return tuple(sorted(text for text, _ in counts[:MOST_VALUES]))


def _to_numbers(column: Column, table: pa.Table) -> Floats:
    return to_float(as_one_array(table.column(column.id)))


def _to_texts(column: Column, table: pa.Table) -> Any:
    with about(column.name):
        return texts(as_one_array(table.column(column.id)))

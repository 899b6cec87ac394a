"""Counts of classes in memory, as audit models measure them. They know no engine."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from anonlib.auditing.report import Persons
from anonlib.hierarchy import Hierarchy

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Entries:
    """The values of all classes, each beside the whole table. Missing is a value, the last.

    Attributes:
        place: int64[m]. The class of each entry. No class has two entries of one value.
        rank: int64[m]. Its value, by its rank in `whole`.
        n: int64[m]. The persons of the class that have the value: at least one.
        p: float64[m]. The share of the value in the class.
        q: float64[m]. The share of the value in the whole table.
        whole: float64[v]. The share of every value in the whole table, low to high. A value that
            no person has is there with share 0, except missing.
    """

    place: Ints
    rank: Ints
    n: Ints
    p: Floats
    q: Floats
    whole: Floats


@dataclass(frozen=True, eq=False)
class ValueCounts:
    """Counts of one protected column. A person counts once for each of its values.

    Attributes:
        place: int64[m]. The class of each pair of a class and a present value that persons of the
            class have.
        value: int64[m]. The value of the pair, from 0, in the order of the values.
        n: int64[m]. The persons of the pair: at least one.
        missing: int64[classes]. The persons of each class that have a missing value.
        present: int64[classes]. The persons of each class that have a present value.
        whole: int64[values]. The persons of each value in the whole table.
        whole_missing: The persons of the whole table that have a missing value.
        texts: The values as texts, in their order. They are raw values, so they are there only if
            the column has a hierarchy or an order of texts, and atomic values; else None.
    """

    place: Ints
    value: Ints
    n: Ints
    missing: Ints
    present: Ints
    whole: Ints
    whole_missing: int
    texts: tuple[str, ...] | None

    @property
    def n_classes(self) -> int:
        """The number of classes."""
        return len(self.missing)

    @property
    def n_distinct(self) -> Ints:
        """int64[classes]. The present values of each class."""
        return np.bincount(self.place, minlength=self.n_classes)

    def sums(self, weights: npt.NDArray[np.float64] | Ints) -> Floats:
        """float64[classes]. The sums of the weights of the pairs of each class."""
        return sum_by_class(self.place, weights, self.n_classes)

    def entries(self) -> Entries:
        """The values of all classes, missing included."""
        whole = np.append(self.whole, self.whole_missing or ())
        shares = whole / whole.sum() if whole.sum() else np.zeros(len(whole))
        without = np.flatnonzero(self.missing)
        place = np.append(self.place, without)
        rank = np.append(self.value, np.full(len(without), len(self.whole)))
        n = np.append(self.n, self.missing[without])
        total = sum_by_class(place, n, self.n_classes)
        rank = rank.astype(np.int64)
        return Entries(place, rank, n, n / total[place], shares[rank], shares)


@dataclass(frozen=True, eq=False)
class ClassCounts:
    """Counts of all classes of a table. Models measure them.

    Attributes:
        n_rows: int64[classes]. The rows of each class.
        n_persons: int64[classes]. The persons of each class; its rows, if persons can't be counted.
        persons: How persons are counted.
        columns: By name of a protected column: the counts of its values.
        hierarchies: By name of a protected column: its hierarchy, with folded names.
        orders: By name of a protected column of text: all values, folded, low to high.
    """

    n_rows: Ints
    n_persons: Ints
    persons: Persons
    columns: Mapping[str, ValueCounts]
    hierarchies: Mapping[str, Hierarchy]
    orders: Mapping[str, tuple[str, ...]]


def sum_by_class(place: Ints, weights: npt.NDArray[np.float64] | Ints, n_classes: int) -> Floats:
    """float64[classes]. The sum of the weights of each class."""
    return np.bincount(place, weights, n_classes).astype(np.float64)


def find_largest_by_class(place: Ints, values: npt.NDArray[np.float64], n_classes: int) -> Floats:
    """float64[classes]. The largest value of each class; NaN where there is none."""
    found = np.full(n_classes, -np.inf)
    np.maximum.at(found, place, values)
    found[np.bincount(place, minlength=n_classes) == 0] = np.nan
    return found

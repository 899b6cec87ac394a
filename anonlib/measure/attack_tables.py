"""What attacks see: a release made without some persons, and persons in it and not in it."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa

from anonlib.measure.states import Count, Merge, States

#: The column of released rows with a number of 52 bits: equal rows have the same, others differ.
ROW = "__anonlib_row"
#: The column of original rows with a number of 52 bits: rows of a person have the same, others
#: differ. It is absent if each row is a person.
PERSON = "__anonlib_person"
#: The column of original rows that tells whether the person is held out.
OUT = "__anonlib_out"


class AttackedPersons(NamedTuple):
    """Persons to attack: one original row of each, in a fixed order.

    Attributes:
        members: Persons in the release or suppressed.
        others: Persons who were held out.
    """

    members: pa.Table
    others: pa.Table


class AttackTables(ABC):
    """A release that was made without some persons. Columns are named by id.

    Nothing links released rows to persons. Persons are drawn by hashes, always the same.

    Attributes:
        n_released: Released rows.
    """

    n_released: int

    @abstractmethod
    def persons(self) -> AttackedPersons:
        """The persons to attack. Cost: one pass over the source, and with a unit one more that
        counts persons; once for all attacks."""

    @abstractmethod
    def sample(self, ids: Sequence[str], size: int) -> pa.Table:
        """At most about `size` different released rows, with the column ROW: always the same, in a
        fixed order. Cost: one pass."""

    @abstractmethod
    def fold_released(self, ids: Sequence[str], count: Count, merge: Merge) -> States:
        """Computes states over all released rows, merged by name. Rows have the column ROW. Cost:
        one pass. Arguments as in `Case.fold`."""

    @abstractmethod
    def fold_source(self, ids: Sequence[str], count: Count, merge: Merge) -> States:
        """Computes states over all original rows, merged by name. Rows have the column OUT, and
        PERSON if there is a unit. Cost: one pass."""

"""What attacks see: a release made without some persons, and persons in it and not in it."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import pyarrow as pa

from anonlib.measure.states import Count, Merge, States

#: The column of released rows with a number of 52 bits: equal rows have the same, others differ.
ROW = "__anonlib_row"
#: The column of original rows with a number of 52 bits: rows of a person have the same, others
#: differ. It is absent if each row is a person.
PERSON = "__anonlib_person"
#: The column of original rows that tells whether the person is held out.
OUT = "__anonlib_out"


class AttackTables(ABC):
    """A release that was made without some persons. Columns are named by id.

    Nothing links released rows to persons. Persons are drawn by hashes, always the same.

    Attributes:
        members: One original row of each person to attack, all of them in the release or
            suppressed. In a fixed order.
        others: The same of persons who were held out.
        n_released: Released rows.
    """

    members: pa.Table
    others: pa.Table
    n_released: int

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

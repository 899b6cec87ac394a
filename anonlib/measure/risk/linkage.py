"""An attack on a sample of rows: links each row to the nearest released tuple."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa

from anonlib.arrays import Ints, average_ratio
from anonlib.errors import InputError
from anonlib.measure import Figure, Findings, Measure, Subjects
from anonlib.measure.nearest import Attack, MatchedColumn
from anonlib.measure.risk._compared import match_column

if TYPE_CHECKING:
    from anonlib.measure.case import Case

#: The most distinct released tuples to compare rows with.
MAX_TUPLES = 100_000
#: The most comparisons of a row with a tuple.
MAX_COMPARED = 10**8

NO_PAIRS = "once a release is published, nothing links its rows to the original ones"
FEW = (
    "against the tuples of the sampled rows alone, since there are too many: less to choose from, "
    "so an upper bound"
)


class Linkage(Measure):
    """How often an attacker finds persons by the released tuple that is nearest to theirs.

    Distance-based record linkage: the attacker knows the quasi-identifiers of persons, and links
    each person to the nearest released tuple.

    - `cell`: the share of rows whose nearest tuple is their own. If t tuples are equally near,
      the row counts 1/t.
    - `cell_guess`: `cell` by guessing: one over the number of tuples.
    - `record`: the share of rows found by choosing any row that has the nearest tuple. It is never
      above `record_bound`, 1/k.
    - `record_guess`: `record` by guessing: one over the number of rows.

    The squared distance is the sum over the columns of squared differences:

    - Continuous and ordinal columns: the standardized difference of values, or of ranks. It is 0
      inside an interval, else the difference from the nearer end. A missing value has the mean; if
      only one of the two values is missing, 1 is added to the square.
    - Nominal columns: 0 if the value is equal or in the set, else 1. For released shares: 1 minus
      the share of the value.
    - Nodes: 0 if the value is below the node, else the loss of the lowest common ancestor, as in
      `ncp`.

    Rows are from the private sample (`Case.pairs`). If there are many tuples, fewer rows are
    linked, with at most MAX_COMPARED comparisons. Rows are compared with all tuples of the release;
    if these are more than MAX_TUPLES, with the tuples of the sample only. With a `unit`, rows stand
    for persons: one with several rows of a tuple is found by any of them, more often than `record`.
    Cost: the sample, one aggregate of the release, and the comparisons as Spark tasks.
    Reference: J. Domingo-Ferrer, V. Torra, A quantitative comparison of disclosure control methods
    for microdata, in: Confidentiality, Disclosure and Data Access, 2001. There, the first of
    equally near tuples is taken.
    """

    type: ClassVar[str] = "linkage"
    is_risk: ClassVar[bool] = True
    subjects: ClassVar[Subjects] = "table"
    names: ClassVar[Mapping[str, str]] = {
        "cell": "share of sampled rows whose nearest released tuple is the one that they were "
        "released as; 0 to 1, less is safer",
        "cell_guess": "what `cell` is by guessing, one over the number of tuples; 0 to 1, for "
        "comparison",
        "record": "share of sampled rows found by taking any row that has the nearest tuple; 0 to "
        "1, less is safer",
        "record_guess": "what `record` is by guessing, one over the number of rows; 0 to 1, for "
        "comparison",
        "record_bound": "the most that `record` can be, one over k; 0 to 1, less is safer",
    }
    needs_pairs: ClassVar[bool] = True

    def measure(self, case: "Case") -> Findings:
        if case.pairs is None:
            return self.nothing(NO_PAIRS)
        original, released = case.pairs
        if not original.num_rows:
            return self.nothing("the sample has no rows")
        released = released.select([column.id for column in case.schema.quasi_identifiers])
        tuples, n_rows, note = _tuples(case, released)
        try:
            attack = _attack(case, original, pa.concat_tables([tuples, released]), n_rows)
        except InputError as error:
            return self.nothing(str(error))
        return self._link(case, attack, note)

    def _link(self, case: "Case", attack: Attack, note: str) -> Findings:
        n_tuples = len(attack.n_rows)
        n = min(len(attack.own), max(1, MAX_COMPARED // n_tuples))
        found = case.link(attack, n)
        sample = f"{n} rows, {n_tuples} tuples"
        return Findings(
            (
                Figure("cell", average_ratio(found.own, found.n_tuples, n), note=note or sample),
                Figure("cell_guess", 1 / n_tuples, note=note),
                Figure("record", average_ratio(found.own, found.n_rows, n), note=note or sample),
                Figure("record_guess", 1 / case.n_released),
                Figure("record_bound", 1 / case.k if case.k else None),
            )
        )


def _tuples(case: "Case", released: pa.Table) -> tuple[pa.Table, Ints, str]:
    """The released tuples to compare with, the rows of each, and a note. There are no tuples if the
    release has more than MAX_TUPLES."""
    found = case.tuples(released.column_names, MAX_TUPLES, released=True)
    if found is not None:
        return *found, ""
    return released.slice(0, 0), np.zeros(0, np.int64), FEW


def _attack(case: "Case", original: pa.Table, released: pa.Table, n_rows: Ints) -> Attack:
    """The attack on original rows.

    Args:
        case: The case.
        original: n original rows.
        released: The released tuples, then n rows: the original rows as released.
        n_rows: int64[number of tuples]. The released rows of each tuple. If it is empty, the tuples
            of the n rows are used, each with k rows.
    """
    columns = []
    for column in case.schema.quasi_identifiers:
        values = (table.column(column.id).combine_chunks() for table in (original, released))
        found = match_column(column, case.encodings[column.id], *values)
        columns += [] if found is None else [found]
    places = np.column_stack([*(each.place for each in columns), np.zeros(released.num_rows)])
    tuples, which = np.unique(places.astype(np.int64), axis=0, return_inverse=True)
    which = which.ravel()
    count = np.bincount(which[: len(n_rows)], n_rows, minlength=len(tuples)).astype(np.int64)
    return Attack(
        tuple(MatchedColumn(each.distances, tuples[:, i]) for i, each in enumerate(columns)),
        own=which[len(n_rows) :],
        n_rows=count if len(n_rows) else np.full(len(tuples), max(case.k, 1)),
    )

"""An attack: joins two tables about the same persons by a release."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from pydantic import Field

from anonlib.measure import DeclaredColumn, Findings, Subjects
from anonlib.measure.features import list_predictors
from anonlib.measure.risk._attack import AttackMeasure
from anonlib.measure.risk._passes import search_release
from anonlib.measure.risk._reach import Search
from anonlib.table.schema import Role

if TYPE_CHECKING:
    from anonlib.measure.case import Case


class Linkability(AttackMeasure):
    """How often a release links two halves of what is known of a person.

    An attacker has two tables with different columns of the same persons, and looks for the
    released row that is nearest to each row of both. Where both halves of a person lead to the same
    released row, they are linked. Of equally near rows one is chosen at random: a person counts by
    the probability that it is the same. So the whole class that halves may lead to counts as one
    over its rows.

    The halves are the columns in turns: one table has the first, third, and so on, the other one
    has the rest. Pseudonyms and nested columns are left out. Distances are those of the measure
    `linkage`; of other columns than quasi-identifiers see `_reach.py`.

    Cost: one pass over the release, which compares bounded numbers of persons with its distinct
    rows.
    """

    type: ClassVar[str] = "linkability"
    subjects: ClassVar[Subjects] = "table"
    reference: ClassVar[str] = (
        "M. Giomi et al., A unified framework for quantifying privacy risk in synthetic data, "
        "PoPETs 2023(2), section 5.2; there, the first of equally near rows is taken"
    )
    first_half: tuple[str, ...] = Field(
        default=(), description="columns of the first table; none: every other column"
    )

    @property
    def names_by(self) -> str:
        return "first_half"

    @property
    def named_columns(self) -> Mapping[str, tuple[Role, ...]]:
        roles = (Role.QUASI_IDENTIFIER, Role.SENSITIVE, Role.TARGET, Role.INSENSITIVE)
        return dict.fromkeys(self.first_half, roles)

    def explain_absence(self, figure: str, columns: Mapping[str, DeclaredColumn]) -> str:
        others = set(columns) - set(self.first_half)
        two = others if self.first_half else len(columns) > 1
        return "" if two else "there are no two halves of columns to link"

    def measure(self, case: "Case") -> Findings:
        columns = list_predictors(case.schema, (), "released")
        halves = columns[::2], columns[1::2]
        if self.first_half:
            lacking = set(self.first_half) - {column.name for column in columns}
            if lacking:
                return self.nothing(f"`first_half`: not released: {', '.join(sorted(lacking))}")
            halves = (
                tuple(c for c in columns if c.name in self.first_half),
                tuple(c for c in columns if c.name not in self.first_half),
            )
        if not all(halves):
            return self.nothing("there are no two halves of columns to link")
        tables = self.tables(case)
        persons = self.draw(case, tables, columns)
        if not tables.n_released or not persons.table.num_rows:
            return self.nothing("nothing was released to link by")
        search = Search(persons.table, halves, case.encodings)
        [found] = search_release([search], tables.fold_released)
        linked = found.total[:, 0] / np.prod(found.n_rows, axis=1)
        return Findings(persons.attempts(linked).figures())

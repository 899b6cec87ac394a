"""The base of measures that attack persons in a release, and as a control persons who are not."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
from pydantic import Field

from anonlib.measure import Figure, Findings, Measure
from anonlib.measure.attempts import RISK_NAMES, Attempts
from anonlib.measure.features import list_predictors
from anonlib.table.schema import Role

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from anonlib.arrays import Bools, Floats, Ints
    from anonlib.measure import DeclaredColumn
    from anonlib.measure.attack_tables import AttackTables
    from anonlib.measure.case import Case
    from anonlib.table.schema import Column, Schema

#: The most comparisons of a person with a released tuple, in one attack.
MAX_COMPARED = 2 * 10**8
#: The fewest attempts of each kind, however many tuples there are.
LEAST_ATTEMPTS = 250


class AttackMeasure(Measure):
    """Attacks a release that was made without some persons.

    The same attack is made on persons in it, and on persons who were held out: what succeeds with
    these says nothing of being in the release. The figures are those of Anonymeter (see
    `anonlib/measure/attempts.py`).
    """

    is_risk: ClassVar[bool] = True
    usual: ClassVar[bool] = False
    names: ClassVar["Mapping[str, str]"] = RISK_NAMES
    attempts: int = Field(
        default=2000, ge=10, le=20_000, description="attacks on persons in the release, at most"
    )
    holdout: float = Field(
        default=0.3,
        gt=0,
        lt=1,
        description="the share of persons held out; as in `learning`, whose release is then used",
    )

    def tables(self, case: "Case") -> "AttackTables":
        """The release without the persons held out, and persons of both kinds."""
        return case.attack_tables(self.holdout, self.attempts)

    def affordable(self, case: "Case", n_rows: int, columns: "Sequence[Column]") -> int:
        """The attempts of each kind that compare persons with all tuples of some columns of
        released rows in bounded time. Quasi-identifiers have a tuple for each class, of k rows at
        least; with another column there may be as many tuples as rows."""
        grouped = all(column.role is Role.QUASI_IDENTIFIER for column in columns)
        n_tuples = max(n_rows // (max(case.k, 1) if grouped else 1), 1)
        return min(self.attempts, max(LEAST_ATTEMPTS, MAX_COMPARED // (2 * n_tuples)))

    def draw(
        self,
        case: "Case",
        tables: "AttackTables",
        columns: "Sequence[Column]",
        keep: "Callable[[pa.Table], pa.Table] | None" = None,
        n_more: int = 0,
    ) -> "Victims":
        """As many persons of both kinds as are affordable, the same number of each.

        Args:
            case: The case.
            tables: The release and the persons.
            columns: What persons are compared by.
            keep: Chooses the persons who can be attacked; None for all.
            n_more: The rows of another release that persons are compared with, too.
        """
        members, others = (each if keep is None else keep(each) for each in tables.persons())
        n = min(self.affordable(case, tables.n_released + n_more, columns), members.num_rows)
        # Rates of different numbers of attempts are drawn to a half by different amounts: what
        # always succeeds, in the release or not, would show a risk.
        n = min(n, others.num_rows) if others.num_rows else n
        members, others = _thin(members, n), _thin(others, min(n, others.num_rows))
        return Victims(pa.concat_tables([members, others]), members.num_rows)


def _thin(persons: pa.Table, n: int) -> pa.Table:
    return persons.take(pa.array(place_evenly(persons.num_rows, n)))


def place_evenly(n_persons: int, n: int) -> "Ints":
    """The places of n persons from all over a table of them: equal ones may stand together."""
    places: Ints = np.arange(n) * n_persons // max(n, 1)
    return places


class SecretAttack(AttackMeasure):
    """Attacks that learn the values of secret columns from the quasi-identifiers of a person."""

    def list_subjects(
        self, figure: str, columns: "Mapping[str, DeclaredColumn]"
    ) -> "Sequence[str]":
        return [name for name, column in columns.items() if column.is_secret]

    def measure(self, case: "Case") -> Findings:
        secrets = find_secrets(case.schema)
        if not secrets:
            return self.nothing("no sensitive column is released")
        known = list_predictors(case.schema, (), "quasi_identifiers")
        found = self.attack(case, known, secrets)
        if isinstance(found, str):
            return self.nothing(found, [column.name for column in secrets])
        return Findings(tuple(found))

    @abstractmethod
    def attack(
        self, case: "Case", known: "tuple[Column, ...]", secrets: "tuple[Column, ...]"
    ) -> "Sequence[Figure] | str":
        """The figures of all secret columns, or why there are none.

        Args:
            case: The case.
            known: The quasi-identifiers that the release tells of; there may be none.
            secrets: The columns to learn.
        """


def find_secrets(schema: "Schema") -> "tuple[Column, ...]":
    """The columns whose values are to be learned: the sensitive ones, and the target if it has its
    own privacy model."""
    return tuple(
        column
        for column in list_predictors(schema, (), "released")
        if column.role is Role.SENSITIVE
        or (column.role is Role.TARGET and column.id in schema.protected)
    )


class Victims(NamedTuple):
    """Persons to attack.

    Attributes:
        table: One original row of each: of those in the release, then of those held out.
        n_members: Those in the release.
    """

    table: pa.Table
    n_members: int

    def attempts(self, success: "Bools | Floats") -> Attempts:
        """The attacks on both kinds. success: [n]. The chance that each attack succeeds."""
        inside, outside = (
            round(float(each.sum()), 6) for each in np.split(success, [self.n_members])
        )
        n_others = self.table.num_rows - self.n_members
        return Attempts(self.n_members, inside, n_others, outside)


def list_attempts(
    columns: "Sequence[Column]",
    persons: "Sequence[Victims]",
    success: "Sequence[Bools | Floats]",
    notes: "Sequence[str] | None" = None,
) -> tuple[Figure, ...]:
    """The figures of attacks on several columns.

    Args:
        columns: The columns.
        persons: The persons of each.
        success: [n]. For each column, the chance that each attack succeeds.
        notes: What is said of each; None for nothing.
    """
    figures: list[Figure] = []
    said = notes or [""] * len(columns)
    for column, each, chance, note in zip(columns, persons, success, said, strict=True):
        figures += each.attempts(chance).figures(column.name, note)
    return tuple(figures)

"""An attack: learns from two releases together what neither tells alone."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from pydantic import Field

from anonlib.arrays import Ints
from anonlib.measure import Figure, Subjects
from anonlib.measure.attempts import Attempts
from anonlib.measure.risk._attack import SecretAttack, Victims
from anonlib.measure.risk._candidates import MOST_CANDIDATES, Candidates, Fold, number_values
from anonlib.measure.risk._guesses import keep_present
from anonlib.table.schema import Column, Role

if TYPE_CHECKING:
    from anonlib.measure.attack_tables import AttackTables
    from anonlib.measure.case import Case, OtherRelease


class Differencing(SecretAttack):
    """How often this release and another one tell a sensitive value that neither tells alone.

    For each sensitive column, and for the target if it has its own privacy model: an attacker knows
    the quasi-identifiers of persons and has both releases. Of each, the candidates of a person are
    the different values of the rows that can be the person's, a missing value among them. If all
    quasi-identifiers are released as intervals, sets and nodes, these are the rows that hold the
    person's values; a missing number is in no range. Otherwise they are the nearest rows, by the
    distances of the measure `linkage`. The attack succeeds if each release leaves two candidates or
    more, both have just one candidate in common, and this is the person's own value. What one
    release tells alone is a matter of `inference` and `disclosure`.

    The attack is made on this release itself, not on one without the persons held out, since it
    depends on who shares a class in both. The control is made on persons held out, by the other
    release and one like this without them. So `risk` is what this release adds for the persons in
    it, given that the other one is out. For the same release once more the attack finds nothing.

    The other release must have the sensitive columns as they are here, the quasi-identifiers by the
    same recoders and hierarchies, and no category of an ordinal one that the source lacks; if only
    some are so, name these as `columns`. A person of whom a release leaves more than
    MOST_CANDIDATES candidates counts as a failure, and so does a suppressed person as a rule. Other
    columns that both releases have, such as insensitive ones, are not compared, and neither are
    several sensitive columns together. So the attack finds less than an attacker could.
    Cost: for each column one pass over this release, one over that without the persons held out,
    and one over the other release; each compares bounded numbers of persons with its classes.
    """

    type: ClassVar[str] = "differencing"
    subjects: ClassVar[Subjects] = "columns"
    reference: ClassVar[str] = (
        "S. R. Ganta, S. P. Kasiviswanathan, A. Smith, Composition attacks and auxiliary "
        "information in data privacy, KDD 2008 (intersection attack)"
    )
    source: dict[str, Any] = Field(
        description="the other release, with the fields of the config's `source`"
    )
    columns: tuple[str, ...] = Field(
        default=(),
        description="quasi-identifiers that the other release has in the same form; empty: all",
    )

    @property
    def named_columns(self) -> Mapping[str, tuple[Role, ...]]:
        return dict.fromkeys(self.columns, (Role.QUASI_IDENTIFIER,))

    def attack(
        self, case: "Case", known: tuple[Column, ...], secrets: tuple[Column, ...]
    ) -> list[Figure] | str:
        common = tuple(c for c in known if not self.columns or c.name in self.columns)
        if not common:
            return "there is no quasi-identifier to compare by"
        other = case.open_release(self.source, (*common, *secrets))
        tables = self.tables(case)
        if not tables.n_released or not other.n:
            return "one of both releases has no rows"
        releases = _Releases(case, tables, known, other, common)
        return [figure for secret in secrets for figure in self._attack(releases, secret)]

    def _attack(self, releases: "_Releases", secret: Column) -> tuple[Figure, ...]:
        case, tables, other = releases.case, releases.tables, releases.other
        keep = partial(keep_present, secret)
        persons = self.draw(case, tables, releases.known, keep, n_more=other.n)
        if not persons.table.num_rows:
            return Attempts(0, 0, 0, 0).figures(secret.name)
        ours = releases.find(secret, persons)
        encodings = {
            column.id: replace(case.encodings[column.id], missing=True)  # there may be some
            for column in releases.common
        }
        theirs = Candidates(persons.table, releases.common, secret, encodings).find(other.fold)
        own = number_values(secret, persons.table).tolist()
        right = [are_told(*each) for each in zip(ours, theirs, own, strict=True)]
        return persons.attempts(np.array(right)).figures(secret.name)


class _Releases(NamedTuple):
    """Both releases, and the quasi-identifiers that an attacker compares in each."""

    case: "Case"
    tables: "AttackTables"
    known: tuple[Column, ...]
    other: "OtherRelease"
    common: tuple[Column, ...]

    def find(self, secret: Column, persons: Victims) -> list[Ints]:
        """The candidates of the persons in this release, and of those held out in one without
        them."""
        both = persons.table.slice(0, persons.n_members), persons.table.slice(persons.n_members)
        folds: tuple[Fold, Fold] = (
            partial(self.case.fold, released=True),
            self.tables.fold_released,
        )
        return [
            each
            for table, fold in zip(both, folds, strict=True)
            if table.num_rows
            for each in Candidates(table, self.known, secret, self.case.encodings).find(fold)
        ]


def are_told(ours: Ints, theirs: Ints, own: int) -> bool:
    """Whether two releases together tell the value of a person, and neither does alone.

    ours, theirs: The candidates by each, as `Candidates.find` has them. own: The value.
    """
    if not all(1 < len(each) <= MOST_CANDIDATES for each in (ours, theirs)):
        return False
    return bool(np.array_equal(np.intersect1d(ours, theirs), [own]))

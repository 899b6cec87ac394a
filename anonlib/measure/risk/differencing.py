"""An attack: learns from two releases together what neither tells alone."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
from pydantic import Field

from anonlib.arrays import Ints
from anonlib.measure import Figure, Subjects
from anonlib.measure.risk._attack import SecretAttack, Victims, list_attempts
from anonlib.measure.risk._candidates import MOST_CANDIDATES, Candidates, number_values
from anonlib.measure.risk._guesses import keep_present
from anonlib.measure.risk._passes import Fold, search_release
from anonlib.table.encoding import Encoding
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
    Cost: one pass over this release, one over that without the persons held out, and one over the
    other release. For each column, a bounded number of persons is compared with their classes.
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
        releases = _Releases(case, tables, other, known, common, secrets)
        persons = [
            self.draw(case, tables, known, partial(keep_present, secret), n_more=other.n)
            for secret in secrets
        ]
        ours, theirs = releases.find_ours(persons), releases.find_theirs(persons)
        right = []
        for secret, each, here, there in zip(secrets, persons, ours, theirs, strict=True):
            own = number_values(secret, each.table).tolist()
            told = [are_told(*all_three) for all_three in zip(here, there, own, strict=True)]
            right.append(np.array(told, np.bool_))
        return [*list_attempts(secrets, persons, right)]


class _Releases(NamedTuple):
    """Both releases, and what an attacker compares in each.

    Attributes:
        case: This release.
        tables: This release without the persons held out.
        other: The other release.
        known: The quasi-identifiers of this release.
        common: Those that the other release has in the same form.
        secrets: The columns to learn.
    """

    case: "Case"
    tables: "AttackTables"
    other: "OtherRelease"
    known: tuple[Column, ...]
    common: tuple[Column, ...]
    secrets: tuple[Column, ...]

    def find_ours(self, persons: Sequence[Victims]) -> list[list[Ints]]:
        """The candidates by this release; of persons held out, by the release without them.
        persons: Those of each secret column."""
        members = [each.table.slice(0, each.n_members) for each in persons]
        others = [each.table.slice(each.n_members) for each in persons]
        whole = partial(self.case.fold, released=True)
        inside = self._find(members, self.known, self.case.encodings, whole)
        outside = self._find(others, self.known, self.case.encodings, self.tables.fold_released)
        return [[*one, *more] for one, more in zip(inside, outside, strict=True)]

    def find_theirs(self, persons: Sequence[Victims]) -> list[list[Ints]]:
        """The candidates by the other release."""
        encodings = {
            column.id: replace(self.case.encodings[column.id], missing=True)  # there may be some
            for column in self.common
        }
        return self._find([each.table for each in persons], self.common, encodings, self.other.fold)

    def _find(
        self,
        persons: Sequence[pa.Table],
        known: tuple[Column, ...],
        encodings: Mapping[str, Encoding],
        fold: Fold,
    ) -> list[list[Ints]]:
        searches = [
            Candidates(table, known, secret, encodings)
            for table, secret in zip(persons, self.secrets, strict=True)
        ]
        return search_release(searches, fold)


def are_told(ours: Ints, theirs: Ints, own: int) -> bool:
    """Whether two releases together tell the value of a person, and neither does alone.

    ours, theirs: The candidates by each, as `Candidates.read` gives them. own: The value.
    """
    if not all(1 < len(each) <= MOST_CANDIDATES for each in (ours, theirs)):
        return False
    return bool(np.array_equal(np.intersect1d(ours, theirs), [own]))

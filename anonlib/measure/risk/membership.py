"""An attack: tells who is in the release."""

from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa

from anonlib.arrays import Floats
from anonlib.measure import Findings, Subjects
from anonlib.measure.attempts import Attempts
from anonlib.measure.features import predictors
from anonlib.measure.risk._attack import AttackMeasure
from anonlib.measure.risk._reach import Search

if TYPE_CHECKING:
    from anonlib.measure.case import Case


class Membership(AttackMeasure):
    """How often persons in the release are told from persons who are not.

    An attacker knows all of a person's values that are released, and claims that the person is in
    the release if a released row is near enough. What is near enough is found on every other
    person: the distance at which the claims on persons in the release and on persons held out
    differ most. It is tried on the rest. `attack_rate` is the share of true claims on persons in
    the release, `control_rate` the share of false claims on persons held out.

    Pseudonyms and nested columns are left out. Distances are those of the measure `linkage`; of
    other columns than quasi-identifiers see `_reach.py`. A person who was suppressed counts as one
    in the release.
    Cost: one pass over the release, which compares bounded numbers of persons with its rows.
    """

    type: ClassVar[str] = "membership"
    subjects: ClassVar[Subjects] = "table"
    reference: ClassVar[str] = (
        "S. Yeom et al., Privacy risk in machine learning: analyzing the connection to "
        "overfitting, CSF 2018 (threshold attack, and its advantage over false claims)"
    )

    def measure(self, case: "Case") -> Findings:
        columns = predictors(case.schema, (), "released")
        tables = self.tables(case)
        n = self.affordable(case, tables)
        members, others = (each.slice(0, n) for each in (tables.members, tables.others))
        persons = pa.concat_tables([members, others])
        if not tables.n_released or not columns or not persons.num_rows:
            return self.nothing("nothing was released to compare with")
        distance = Search(persons, (columns,), case.encodings).find(tables).distance[:, 0]
        within, beyond = distance[: members.num_rows], distance[members.num_rows :]
        most = find_threshold(within[::2], beyond[::2])
        within, beyond = within[1::2], beyond[1::2]
        claims, false_claims = (int((each <= most).sum()) for each in (within, beyond))
        return Findings(Attempts(len(within), claims, len(beyond), false_claims).figures())


def find_threshold(within: Floats, beyond: Floats) -> float:
    """The distance up to which the shares of persons in the release and of others differ most; of
    several the least. -1, which is no distance, where no distance tells them apart."""
    found = np.unique(within)
    if not len(found) or not len(beyond):
        return -1.0
    shares = (
        np.searchsorted(np.sort(each), found, side="right") / len(each) for each in (within, beyond)
    )
    gain = next(shares) - next(shares)
    return float(found[gain.argmax()]) if gain.max() > 0 else -1.0

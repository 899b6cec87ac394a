"""An attack: tells who is in the release."""

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from anonlib.arrays import Floats
from anonlib.measure import Findings, Subjects
from anonlib.measure.attempts import Attempts
from anonlib.measure.features import list_predictors
from anonlib.measure.risk._attack import AttackMeasure
from anonlib.measure.risk._passes import search_release
from anonlib.measure.risk._reach import Search

if TYPE_CHECKING:
    from anonlib.measure.case import Case


class Membership(AttackMeasure):
    """How often persons in the release are told from persons who are not.

    An attacker knows all of two persons' values that are released, and that one of them is in the
    release. They name the one to whom the nearest released row is nearer; if both are equally near,
    either one. An attempt succeeds if a person in the release is named, and not a person held out.
    In the control, one person held out is told from another one so: a half of the attempts
    succeeds. So `risk` is 1 if persons are always told apart, and 0 for guessing.

    Pseudonyms and nested columns are left out. Distances are those of the measure `linkage`; of
    other columns than quasi-identifiers see `_reach.py`. A person who was suppressed counts as one
    in the release.
    Cost: one pass over the release, which compares bounded numbers of persons with its rows.
    """

    type: ClassVar[str] = "membership"
    subjects: ClassVar[Subjects] = "table"
    reference: ClassVar[str] = (
        "S. Yeom et al., Privacy risk in machine learning: analyzing the connection to "
        "overfitting, CSF 2018 (membership experiment)"
    )

    def measure(self, case: "Case") -> Findings:
        columns = list_predictors(case.schema, (), "released")
        tables = self.tables(case)
        persons = self.draw(case, tables, columns)
        if not tables.n_released or not columns or not persons.table.num_rows:
            return self.nothing("nothing was released to compare with")
        search = Search(persons.table, (columns,), case.encodings)
        [found] = search_release([search], tables.fold_released)
        inside, outside = np.split(found.distance[:, 0], [persons.n_members])
        if not len(inside) or len(outside) < 2:
            return Findings(Attempts(len(inside), 0, 0, 0).figures())
        # Each person is told from one who is held out, these in turns.
        rivals = np.resize(outside, len(inside))
        attempts = Attempts(
            n=len(inside),
            successes=count_nearer(inside, rivals),
            n_control=len(outside),
            control_successes=count_nearer(outside, np.roll(outside, 1)),
        )
        return Findings(attempts.figures())


def count_nearer(distance: Floats, rival: Floats) -> float:
    """How many distances are less than their rivals. Equal ones count a half."""
    return float((distance < rival).sum() + (distance == rival).sum() / 2)

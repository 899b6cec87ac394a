"""The base of measures that attack persons in a release, and as a control persons who are not."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from anonlib.measure import Figure, Findings, Measure
from anonlib.measure.attempts import RISK_NAMES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from anonlib.measure.attack_tables import AttackTables
    from anonlib.measure.case import Case

#: The most comparisons of a person with a released class, in one attack.
MAX_COMPARED = 2 * 10**8
#: The fewest attempts of each kind, however many classes there are.
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

    def nothing(self, note: str, subjects: Sequence[str] = ("",)) -> Findings:
        """All figures without a value. note: why."""
        return Findings(tuple(Figure(n, None, of, note) for of in subjects for n in self.names))

    def tables(self, case: "Case") -> "AttackTables":
        """The release without the persons held out, and persons of both kinds."""
        return case.attack_tables(self.holdout, self.attempts)

    def affordable(self, case: "Case", tables: "AttackTables") -> int:
        """The attempts of each kind that compare persons with all classes in bounded time."""
        n_classes = tables.n_released // max(case.k, 1)
        return min(self.attempts, max(LEAST_ATTEMPTS, MAX_COMPARED // (2 * max(n_classes, 1))))

"""k-anonymity of a released table."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from anonlib.auditing.class_counts import ClassCounts
from anonlib.auditing.models import AuditModel, Judgement, Measures, Partial
from anonlib.auditing.models._distinct import Distinct
from anonlib.auditing.view import View

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


class KAnonymityAudit(AuditModel):
    """Counts the persons of every class: its rows, or its distinct tokens. A null token is no
    person."""

    type: ClassVar[str] = "k_anonymity"
    k: int = Field(ge=2)

    @property
    def required(self) -> float:
        return self.k

    @property
    def persons(self) -> int:
        return self.k

    @property
    def fails_by_rows(self) -> bool:
        return True

    def _tokens(self, view: View) -> Distinct | None:
        return None if view.token is None else Distinct(view.token, self.k)

    def partial(self, view: View) -> dict[str, Partial]:
        tokens = self._tokens(view)
        return tokens.partial() if tokens else {}

    def judge(self, view: View, part: "Mapping[str, Column]") -> Judgement:
        tokens = self._tokens(view)
        return tokens.judge(part) if tokens else Judgement(part["n_rows"])

    def exact(self, view: View, rows: "DataFrame") -> "DataFrame":
        tokens = self._tokens(view)
        return tokens.exact(view, rows) if tokens else super().exact(view, rows)

    def measure(self, counts: ClassCounts) -> Measures:
        return counts.n_persons

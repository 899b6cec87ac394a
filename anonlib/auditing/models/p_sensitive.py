"""p-sensitive k-anonymity of a released table."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from anonlib.auditing.class_counts import ClassCounts
from anonlib.auditing.models import AuditModel, Judgement, Measures, Partial
from anonlib.auditing.models._distinct import Distinct
from anonlib.auditing.view import View

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


class PSensitiveAudit(AuditModel):
    """Counts the distinct present values of `attribute` in every class."""

    type: ClassVar[str] = "p_sensitive"
    p: int = Field(ge=2)
    attribute: str

    @property
    def fails_by_rows(self) -> bool:
        return True

    @property
    def required(self) -> float:
        return self.p

    @property
    def protected(self) -> tuple[str, ...]:
        return (self.attribute,)

    def _values(self, view: View) -> Distinct:
        return Distinct(view.sensitive[self.attribute], self.p, view.token)

    def partial(self, view: View) -> dict[str, Partial]:
        return self._values(view).partial()

    def judge(self, view: View, part: "Mapping[str, Column]") -> Judgement:
        return self._values(view).judge(part)

    def exact(self, view: View, rows: "DataFrame") -> "DataFrame":
        return self._values(view).exact(view, rows)

    def measure(self, counts: ClassCounts) -> Measures:
        return counts.columns[self.attribute].n_distinct

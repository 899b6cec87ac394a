"""Distinct l-diversity of a released table."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from anonlib.audit.models import AuditModel, Judgement
from anonlib.audit.models._distinct import Distinct
from anonlib.audit.view import View

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


class LDiversityAudit(AuditModel):
    """Counts the distinct present values of `attribute` in every class."""

    type: ClassVar[str] = "l_diversity"
    l: int = Field(ge=2)  # noqa: E741
    attribute: str
    kind: Literal["distinct"] = "distinct"

    @property
    def required(self) -> float:
        return self.l

    @property
    def protected(self) -> tuple[str, ...]:
        return (self.attribute,)

    def _values(self, view: View) -> Distinct:
        return Distinct(view.sensitive[self.attribute], self.l)

    def partial(self, view: View) -> "dict[str, Column]":
        return self._values(view).partial()

    def judge(self, view: View, part: "Mapping[str, Column]") -> Judgement:
        return self._values(view).judge(part)

    def exact(self, view: View, rows: "DataFrame") -> "DataFrame":
        return self._values(view).exact(view, rows)

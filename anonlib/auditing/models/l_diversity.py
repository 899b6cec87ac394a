"""l-diversity of a released table."""

from collections.abc import Mapping
from math import exp
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from anonlib.auditing.class_counts import ClassCounts, ValueCounts
from anonlib.auditing.models import AuditModel, Judgement, Measures, Partial
from anonlib.auditing.models._distinct import Distinct
from anonlib.auditing.models._shares import TOLERANCE, Shares
from anonlib.auditing.view import View

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


class LDiversityAudit(AuditModel):
    """Measures the diversity of the present values of `attribute` in every class.

    - distinct: the number of values.
    - entropy: the exponential of their entropy.
    - recursive: the count of the most frequent value, divided by the count of the l-th and all
      rarer values together. For a class with fewer than l values, nothing is measured, and the
      class fails.
    """

    type: ClassVar[str] = "l_diversity"
    l: int = Field(ge=2)  # noqa: E741
    attribute: str
    kind: Literal["distinct", "entropy", "recursive"] = "distinct"
    c: float | None = None

    @property
    def greater_is_better(self) -> bool:
        return self.kind != "recursive"

    @property
    def required(self) -> float:
        return self.c if self.kind == "recursive" and self.c is not None else self.l

    @property
    def protected(self) -> tuple[str, ...]:
        return (self.attribute,)

    @property
    def fails_by_rows(self) -> bool:
        return self.kind == "distinct"

    def holds(self, value: Any) -> Any:
        if self.kind == "recursive":
            return value < self.required
        return value >= self.required * (exp(-TOLERANCE) if self.kind == "entropy" else 1.0)

    def partial(self, view: View) -> dict[str, Partial]:
        return self._values(view).partial() if self.kind == "distinct" else {}

    def judge(self, view: View, part: "Mapping[str, Column]") -> Judgement:
        from pyspark.sql import functions as F

        if self.kind == "distinct":
            return self._values(view).judge(part)
        return Judgement(F.lit(None).cast("double"), undecided=F.lit(True))

    def exact(self, view: View, rows: "DataFrame") -> "DataFrame":
        from pyspark.sql import functions as F

        if self.kind == "distinct":
            return self._values(view).exact(view, rows)
        shares = Shares(view.sensitive[self.attribute])
        if self.kind == "entropy":
            weighted = F.sum(F.col("n") * F.log("n"))
            found = shares.present(rows, view, weighted=weighted)
            entropy = F.log("total") - F.col("weighted") / F.col("total")
            return found.select("n_rows", F.exp(entropy).alias("value"))
        found = shares.present(rows, view, counts=F.sort_array(F.collect_list("n"), asc=False))
        counts = F.col("counts")
        rest = F.slice(counts, self.l, F.greatest(F.size(counts), F.lit(1)))
        tail = F.aggregate(rest, F.lit(0).cast("long"), lambda total, n: total + n)
        value = F.when(F.size(counts) >= self.l, F.element_at(counts, 1) / tail)
        return found.select("n_rows", value.alias("value"))

    def _values(self, view: View) -> Distinct:
        return Distinct(view.sensitive[self.attribute], self.l, view.token)

    def measure(self, counts: ClassCounts) -> Measures:
        column = counts.columns[self.attribute]
        if self.kind == "distinct":
            return column.n_distinct
        return self._entropy(column) if self.kind == "entropy" else self._recursive(column)

    def _entropy(self, column: ValueCounts) -> Measures:
        total = column.sums(column.n)
        weighted = column.sums(column.n * np.log(column.n))
        values = np.full(column.n_classes, np.nan)
        there = total > 0
        values[there] = np.exp(np.log(total[there]) - weighted[there] / total[there])
        return values

    def _recursive(self, column: ValueCounts) -> Measures:
        order = np.lexsort((-column.n, column.place))
        place, n = column.place[order], column.n[order]
        sizes = column.n_distinct
        first = np.cumsum(sizes) - sizes
        rarer = np.arange(len(n)) - first[place] >= self.l - 1
        tail = np.bincount(place[rarer], n[rarer], column.n_classes)
        values = np.full(column.n_classes, np.nan)
        there = sizes >= self.l
        values[there] = n[first[there]] / tail[there]
        return values

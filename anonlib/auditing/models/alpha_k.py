"""(alpha, k)-anonymity of a released table."""

from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from anonlib.auditing.class_counts import ClassCounts, find_largest_by_class
from anonlib.auditing.models import Measures
from anonlib.auditing.models._shares import Shares, SharesAudit
from anonlib.auditing.view import View

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class AlphaKAudit(SharesAudit):
    """Measures the share of the most frequent value of `attribute` in every class, among the
    persons with a present value."""

    type: ClassVar[str] = "alpha_k"
    alpha: float = Field(gt=0, le=1)

    @property
    def required(self) -> float:
        return self.alpha

    def holds(self, value: Any) -> Any:
        # A share is one division, which rounds to the nearest number, as reading alpha does.
        return value <= self.alpha

    def exact(self, view: View, rows: "DataFrame") -> "DataFrame":
        from pyspark.sql import functions as F

        found = Shares(view.sensitive[self.attribute]).commonest(rows, view)
        # Null where nobody has a present value: such a class fails.
        return found.select("n_rows", F.try_divide("largest", "known").alias("value"))

    def measure(self, counts: ClassCounts) -> Measures:
        column = counts.columns[self.attribute]
        shares = column.n / column.present[column.place]
        return find_largest_by_class(column.place, shares, column.n_classes)

"""delta-disclosure privacy of a released table."""

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from pydantic import Field

from anonlib.auditing.class_counts import ClassCounts, find_largest_by_class
from anonlib.auditing.models import Measures
from anonlib.auditing.models._shares import TOLERANCE, Shares, SharesAudit, find_largest_shares
from anonlib.auditing.view import View

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class DeltaDisclosureAudit(SharesAudit):
    """Measures the largest |log(p / q)| of a value of `attribute` in every class. If a class lacks
    a value of the table, nothing is measured, and the class fails."""

    type: ClassVar[str] = "delta_disclosure"
    delta: float = Field(gt=0)

    @property
    def required(self) -> float:
        return self.delta

    def holds(self, value: Any) -> Any:
        # A logarithm that is just delta can't be told from one that does not reach it.
        return value < self.delta + TOLERANCE

    def exact(self, view: View, rows: "DataFrame") -> "DataFrame":
        from pyspark.sql import functions as F

        found, whole = Shares(view.sensitive[self.attribute]).against(rows, view)
        value = find_largest_shares(F.col("entries"), lambda e: F.abs(F.log(e["p"] / e["q"])))
        complete = F.size("entries") == whole.where("q > 0").count()
        return found.select("n_rows", F.when(complete, value).alias("value"))

    def measure(self, counts: ClassCounts) -> Measures:
        column = counts.columns[self.attribute]
        found = column.entries()
        sizes = np.abs(np.log(found.p / found.q))
        complete = np.bincount(found.place, minlength=column.n_classes) == (found.whole > 0).sum()
        largest_sizes = find_largest_by_class(found.place, sizes, column.n_classes)
        return np.where(complete, largest_sizes, np.nan)

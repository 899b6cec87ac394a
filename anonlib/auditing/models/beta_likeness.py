"""beta-likeness of a released table."""

from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from pydantic import Field

from anonlib.auditing.class_counts import ClassCounts, find_largest_by_class
from anonlib.auditing.models import Measures
from anonlib.auditing.models._shares import Shares, SharesAudit, find_largest_shares
from anonlib.auditing.view import View

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


class BetaLikenessAudit(SharesAudit):
    """Measures the largest gain (p - q) / q of a value of `attribute` in every class. The enhanced
    kind scales gains, so that a gain of min(beta, -log q) counts as beta."""

    type: ClassVar[str] = "beta_likeness"
    beta: float = Field(gt=0)
    kind: Literal["basic", "enhanced"] = "basic"

    @property
    def required(self) -> float:
        return self.beta

    def exact(self, view: View, rows: "DataFrame") -> "DataFrame":
        from pyspark.sql import functions as F

        def gain(e: "Column") -> "Column":
            found = e["p"] / e["q"] - 1
            if self.kind == "enhanced":
                found = found * self.beta / F.least(F.lit(self.beta), -F.log(e["q"]))
            return F.when(e["p"] > e["q"], found).otherwise(F.lit(0.0))

        shares, _ = Shares(view.sensitive[self.attribute]).against(rows, view)
        return shares.select("n_rows", find_largest_shares(F.col("entries"), gain).alias("value"))

    def measure(self, counts: ClassCounts) -> Measures:
        column = counts.columns[self.attribute]
        found = column.entries()
        more = found.p > found.q  # so q is less than 1, and its logarithm is not 0
        p, q = found.p[more], found.q[more]
        gains = np.zeros(len(more))
        gains[more] = p / q - 1
        if self.kind == "enhanced":
            gains[more] *= self.beta / np.minimum(self.beta, -np.log(q))
        return find_largest_by_class(found.place, gains, column.n_classes)

"""t-closeness of a released table."""

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from anonlib.audit.models import UnverifiableError
from anonlib.audit.models._shares import Shares, SharesAudit
from anonlib.audit.models._tree import tree_distances
from anonlib.audit.view import View

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


class TClosenessAudit(SharesAudit):
    """Measures the earth mover's distance of `attribute` in every class from the whole table.

    Cost of the ordered distance: O(classes * values); the hierarchical one needs the hierarchy of
    the column, and counts the rows of a class below every node.
    """

    type: ClassVar[str] = "t_closeness"
    t: float = Field(gt=0, le=1)
    distance: Literal["equal", "ordered", "hierarchical"] = "equal"

    @property
    def required(self) -> float:
        return self.t

    def exact(self, view: View, rows: "DataFrame") -> "DataFrame":
        from pyspark.sql import functions as F

        shares = Shares(view.sensitive[self.attribute])
        if self.distance == "hierarchical":
            if self.attribute not in view.hierarchies:
                raise UnverifiableError(f"the hierarchy of column {self.attribute} is not given")
            return tree_distances(view.hierarchies[self.attribute], shares, rows, view)
        found, n_values = shares.against(rows, view)
        if self.distance == "equal":
            more = F.transform("entries", lambda e: F.greatest(e["p"] - e["q"], F.lit(0.0)))
            value = F.aggregate(more, F.lit(0.0), lambda total, x: total + x)
            return found.select("n_rows", value.alias("value"))
        ranked = shares.reference(view).select("rank", "q").collect()
        whole = [row["q"] for row in sorted(ranked, key=lambda row: row["rank"])]
        text = ",".join(map(repr, whole))  # one literal, exact: an array of many is slow to plan
        shares_of_all = F.split(F.lit(text), ",").cast("array<double>")
        value = _running(shares_of_all) / max(1, n_values - 1)
        return found.select("n_rows", value.alias("value"))


def _running(whole: "Column") -> "Column":
    """The sum of the absolute running differences between a class and the whole table: one walk
    over all values, and along the class's own, sorted."""
    from pyspark.sql import functions as F

    own = F.array_sort(F.transform("entries", lambda e: F.struct(e["rank"], e["p"])))
    start = F.struct(
        F.lit(0).alias("next"),
        F.lit(0.0).alias("running"),
        F.lit(0.0).alias("total"),
        own.alias("own"),
    )

    def step(state: "Column", pair: "Column") -> "Column":
        entry = F.get(state["own"], state["next"])
        here = F.coalesce(entry["rank"] == pair["rank"], F.lit(False))
        running = state["running"] + F.when(here, entry["p"]).otherwise(F.lit(0.0)) - pair["q"]
        return F.struct(
            (state["next"] + here.cast("int")).alias("next"),
            running.alias("running"),
            (state["total"] + F.abs(running)).alias("total"),
            state["own"].alias("own"),
        )

    pairs = F.transform(whole, lambda q, i: F.struct(i.alias("rank"), q.alias("q")))
    return F.aggregate(pairs, start, step)["total"]

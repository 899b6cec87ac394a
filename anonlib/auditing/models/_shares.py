"""Counting how often each value stands in each class, and in the whole table."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from anonlib.auditing.models import AuditModel, Judgement
from anonlib.auditing.view import View

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: What logarithms and sums of shares may be off by.
TOLERANCE = 1e-9


class SharesAudit(AuditModel):
    """A bound on shares. It needs exact counts of every value: all classes are undecided at first,
    and what it measures is the better the smaller it is."""

    attribute: str

    @property
    def greater_is_better(self) -> bool:
        return False

    @property
    def protected(self) -> tuple[str, ...]:
        return (self.attribute,)

    def judge(self, view: View, part: "Mapping[str, Column]") -> Judgement:
        from pyspark.sql import functions as F

        return Judgement(F.lit(None).cast("double"), undecided=F.lit(True))

    def holds(self, value: "Column") -> "Column":
        return value <= self.required + TOLERANCE


@dataclass(frozen=True)
class Shares:
    """The values of a view's `column`, null where missing."""

    column: str

    def present(self, rows: "DataFrame", view: View, **aggregates: "Column") -> "DataFrame":
        """Every class in `rows` with `n_rows`, `known` (its rows with a value) and aggregates over
        `n`, the rows of each of its values."""
        from pyspark.sql import functions as F

        by_value = self._by_value(rows, view)
        n = F.when(F.col(self.column).isNotNull(), F.col("rows")).alias("n")
        by_class = by_value.select(*view.keys, "rows", n).groupBy(*view.keys)
        named = [column.alias(name) for name, column in aggregates.items()]
        return by_class.agg(F.sum("rows").alias("n_rows"), F.sum("n").alias("known"), *named)

    def against(self, rows: "DataFrame", view: View) -> "tuple[DataFrame, int]":
        """Every class in `rows` with `n_rows` and `entries`: for each value it has, missing ones
        as one more, its shares `p` of the class and `q` of the whole table, and its `rank` in
        their order, missing last. And how many values there are."""
        from pyspark.sql import functions as F

        whole = self.reference(view)
        joined = self.ranked(rows, view, whole)
        entry = F.struct("rows", "q", "rank")
        by_class = joined.groupBy(*view.keys).agg(
            F.sum("rows").alias("n_rows"), F.collect_list(entry).alias("entries")
        )
        shares = F.transform(
            "entries",
            lambda e: F.struct(
                (e["rows"] / F.col("n_rows")).alias("p"), e["q"].alias("q"), e["rank"].alias("rank")
            ),
        )
        return by_class.withColumn("entries", shares), whole.count()

    def ranked(self, rows: "DataFrame", view: View, whole: "DataFrame") -> "DataFrame":
        """For every class in `rows` and value it has, missing ones as one more, its `rows`, and
        `q` and `rank` of the reference `whole`."""
        from pyspark.sql import functions as F

        by_value = self._by_value(rows, view)
        same = by_value[self.column].eqNullSafe(whole["value"])
        return by_value.join(F.broadcast(whole), same)

    def reference(self, view: View) -> "DataFrame":
        """`value`, `q` and `rank` (from 0) of all values of the whole table."""
        from pyspark.sql import Window
        from pyspark.sql import functions as F

        value = F.col(self.column).alias("value")
        counted = view.whole.groupBy(value).agg(F.count("*").alias("n"))
        order = Window.orderBy(F.col("value").asc_nulls_last())
        everything = Window.partitionBy()
        return counted.select(
            "value",
            (F.col("n") / F.sum("n").over(everything)).alias("q"),
            (F.row_number().over(order) - 1).alias("rank"),
        )

    def _by_value(self, rows: "DataFrame", view: View) -> "DataFrame":
        from pyspark.sql import functions as F

        return rows.groupBy(*view.keys, self.column).agg(F.count("*").alias("rows"))


def largest(entries: "Column", value: "Callable[[Column], Column]") -> "Column":
    """The largest of a function of the entries of each class."""
    from pyspark.sql import functions as F

    return F.array_max(F.transform(entries, value))

"""Counts how often each value occurs in each class, and in the whole table."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from anonlib.auditing.models import AuditModel, Judgement
from anonlib.auditing.view import View

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: The largest rounding error of logarithms and of sums of shares.
TOLERANCE = 1e-9


class SharesAudit(AuditModel):
    """A model that bounds shares from above.

    It needs exact counts of every value, so all classes are undecided at first. Smaller is better.
    """

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
    """Counts the values of one column.

    Attributes:
        column: The column of the view. Missing values are null.
        order: All values, low to high. By default their own order.
    """

    column: str
    order: tuple[str, ...] = ()

    def present(self, rows: "DataFrame", view: View, **aggregates: "Column") -> "DataFrame":
        """Counts the present values of each class in `rows`.

        Returns:
            By class: `n_rows`; `known`, its rows with a present value; and the given aggregates
            over `n`, the rows of each of its present values.
        """
        from pyspark.sql import functions as F

        by_value = self._by_value(rows, view)
        n = F.when(F.col(self.column).isNotNull(), F.col("rows")).alias("n")
        by_class = by_value.select(*view.keys, "rows", n).groupBy(*view.keys)
        named = [column.alias(name) for name, column in aggregates.items()]
        return by_class.agg(F.sum("rows").alias("n_rows"), F.sum("n").alias("known"), *named)

    def against(self, rows: "DataFrame", view: View) -> "tuple[DataFrame, int]":
        """Compares each class in `rows` with the whole table. Missing counts as a value.

        Returns:
            By class: `n_rows`, and `entries` with one entry per value of the class: its share `p`
            in the class, its share `q` in the whole table, and its `rank` among all values, missing
            last. And the number of values in the whole table.
        """
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
        """By class in `rows` and value of the class: `rows`, and `q` and `rank` of the reference
        `whole`. Missing counts as a value."""
        from pyspark.sql import functions as F

        by_value = self._by_value(rows, view)
        same = by_value[self.column].eqNullSafe(whole["value"])
        return by_value.join(F.broadcast(whole), same)

    def reference(self, view: View) -> "DataFrame":
        """The values of the whole table: `value`, share `q`, and `rank` from 0, missing last."""
        from pyspark.sql import Window
        from pyspark.sql import functions as F

        value = F.col(self.column).alias("value")
        counted = view.whole.groupBy(value).agg(F.count("*").alias("n"))
        key = F.col("value")
        if self.order:
            places = F.from_json(F.lit(json.dumps(self.order)), "array<string>")
            key = F.array_position(places, key)
        order = Window.orderBy(key.asc_nulls_last())
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
    """The largest value of a function over the entries of each class."""
    from pyspark.sql import functions as F

    return F.array_max(F.transform(entries, value))

"""Counts how often each value occurs in each class, and in the whole table."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from anonlib.auditing.models import AuditModel, Judgement, UnverifiableError
from anonlib.auditing.view import View

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: The largest rounding error of logarithms, of sums of shares, and of quotients of shares, which
#: kernels and the audit round in other steps.
TOLERANCE = 1e-9


class SharesAudit(AuditModel):
    """A model that bounds shares from above. Smaller values are better.

    It needs exact counts of every value, so all classes are undecided at first.
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

    def holds(self, value: Any) -> Any:
        return value <= self.required + TOLERANCE


@dataclass(frozen=True)
class Shares:
    """Counts the persons that have the values of one column. A person counts once for each of its
    values. Without tokens each row is a person.

    Attributes:
        column: The column of the view. Missing values are null.
        order: All values, low to high. By default their own order.
    """

    column: str
    order: tuple[str, ...] = ()

    def present(self, rows: "DataFrame", view: View, **aggregates: "Column") -> "DataFrame":
        """Counts the present values of each class in `rows`.

        Returns:
            By class: `n_rows`; and the given aggregates over `n`, the persons of each of its
            present values, with their sum as `total`.
        """
        from pyspark.sql import functions as F

        n = F.when(F.col(self.column).isNotNull() & (F.col("n") > 0), F.col("n")).alias("n")
        by_class = self._by_value(rows, view).select(*view.keys, "rows", n).groupBy(*view.keys)
        named = [column.alias(name) for name, column in aggregates.items()]
        return by_class.agg(F.sum("rows").alias("n_rows"), F.sum("n").alias("total"), *named)

    def commonest(self, rows: "DataFrame", view: View) -> "DataFrame":
        """The most frequent present value of each class in `rows`.

        Returns:
            By class: `n_rows`; `largest`, the persons that have this value; and `known`, those with
            a present value.
        """
        from pyspark.sql import functions as F

        if view.token is None:
            found = self.present(rows, view, largest=F.max("n"))
            return found.withColumnRenamed("total", "known")
        # Each row counts once for its value, and once for all values. So a person with several
        # values counts once in `known`.
        value, there = F.col(self.column), F.col(self.column).isNotNull()
        twice = rows.select(
            *view.keys,
            F.explode(F.array(F.lit(False), F.lit(True))).alias("all"),
            value.alias("value"),
            F.when(there, F.col(view.token)).alias("person"),
        ).withColumn("value", F.when(~F.col("all"), F.col("value")))
        by_value = twice.groupBy(*view.keys, "all", "value").agg(
            F.count("*").alias("rows"), F.count_distinct("person").alias("n")
        )
        own = ~F.col("all")
        return by_value.groupBy(*view.keys).agg(
            F.sum(F.when(own, F.col("rows"))).alias("n_rows"),
            F.max(F.when(own, F.col("n"))).alias("largest"),
            F.max(F.when(~own, F.col("n"))).alias("known"),
        )

    def against(self, rows: "DataFrame", view: View) -> "tuple[DataFrame, DataFrame]":
        """Compares each class in `rows` with the whole table. Missing counts as a value.

        Returns:
            By class: `n_rows`, and `entries` with one entry per value that its persons have: the
            value's share `p` in the class, its share `q` in the whole table, and its `rank` among
            all values, missing last. And the reference, as `reference` gives it.
        """
        from pyspark.sql import functions as F

        whole = self.reference(view)
        joined = self.ranked(rows, view, whole)
        entry = F.when(F.col("n") > 0, F.struct("n", "q", "rank"))
        by_class = joined.groupBy(*view.keys).agg(
            F.sum("rows").alias("n_rows"),
            F.sum("n").alias("total"),
            F.collect_list(entry).alias("entries"),
        )
        shares = F.transform(
            "entries",
            lambda e: F.struct(
                (e["n"] / F.col("total")).alias("p"), e["q"].alias("q"), e["rank"].alias("rank")
            ),
        )
        return by_class.withColumn("entries", shares), whole

    def ranked(self, rows: "DataFrame", view: View, whole: "DataFrame") -> "DataFrame":
        """By class in `rows` and value of the class: `rows`, the persons `n`, and `q` and `rank` of
        the reference `whole`. Missing counts as a value."""
        from pyspark.sql import functions as F

        by_value = self._by_value(rows, view)
        same = by_value[self.column].eqNullSafe(whole["value"])
        return by_value.join(F.broadcast(whole), same, "left")

    def reference(self, view: View) -> "DataFrame":
        """The values of the whole table: `value`, share `q`, and `rank` from 0, missing last.

        A present value that no person has is included, with share 0. Missing is left out if no
        person has it.

        Raises:
            UnverifiableError: Persons can't be counted in the whole table.
        """
        from pyspark.sql import Window
        from pyspark.sql import functions as F

        if view.token is not None and view.token not in view.whole.columns:
            raise UnverifiableError("persons can't be counted in the table that rows are added to")
        value = F.col(self.column).alias("value")
        counted = view.whole.groupBy(value).agg(_persons(view).alias("n"))
        counted = counted.where("n > 0 or value is not null")
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
        """By class and value: the `rows`, and the persons `n`."""
        from pyspark.sql import functions as F

        by_value = rows.groupBy(*view.keys, self.column)
        return by_value.agg(F.count("*").alias("rows"), _persons(view).alias("n"))


def _persons(view: View) -> "Column":
    from pyspark.sql import functions as F

    return F.count("*") if view.token is None else F.count_distinct(view.token)


def find_largest_shares(entries: "Column", value: "Callable[[Column], Column]") -> "Column":
    """The largest value of a function over the entries of each class."""
    from pyspark.sql import functions as F

    return F.array_max(F.transform(entries, value))

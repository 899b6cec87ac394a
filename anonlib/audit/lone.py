"""What released shares of values tell of single rows."""

from typing import TYPE_CHECKING

from anonlib.audit.report import AuditSpec

if TYPE_CHECKING:
    from pyspark.sql import Column

    from anonlib.audit.view import View


def lone(view: "View", spec: AuditSpec) -> dict[str, int]:
    """By column released as shares: the rows that are known to be the only ones of their class with
    their value. Everyone can count a class, so its shares tell how many rows each value has.

    Shares in steps of 1/s tell a range of counts, (share * s - 1, share * s + 1) of s: those rows
    are counted where it has no other number than 1. Costs one more grouping of the table.
    """
    from pyspark.sql import functions as F

    if not spec.shares:
        return {}
    place = {name: f"q{i}" for i, name in enumerate(spec.quasi_identifiers)}
    classes = view.rows.groupBy(*view.keys).agg(F.count("*").alias("n"))
    alone = [F.sum(_alone(place[name], steps)).alias(name) for name, steps in spec.shares.items()]
    row = classes.agg(*alone).collect()[0]
    return {name: int(row[i] or 0) for i, name in enumerate(spec.shares)}


def _alone(key: str, steps: int | None) -> "Column":
    """How many values of a class have one row."""
    from pyspark.sql import functions as F

    n = F.col("n")

    def one(element: "Column") -> "Column":
        share = element.getField("f1")  # as canonical keys name the fields of (node, share)
        if steps is None:
            return F.rint(share * n) == 1
        taken = F.rint(share * steps)
        return ((taken - 1) * n < steps) & ((taken + 1) * n <= 2 * steps)

    return F.size(F.filter(key, one))

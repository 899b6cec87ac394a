"""Suppresses the costliest cells."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anonlib.config.model import PrivacySection
from anonlib.decisions.costs import choose_least_cost
from anonlib.table.columns import COST


def find_least_cost(
    privacy: PrivacySection, staged_rows: DataFrame, n_rows: int, n_planned: int
) -> int | None:
    """The least cost of the cells to suppress: staged rows of a lower COST are released. None to
    suppress no cell.

    Args:
        privacy: How rows are suppressed, and how many may be.
        staged_rows: The staged rows.
        n_rows: Rows of the source.
        n_planned: Rows of the plan: those that it did not suppress itself.
    """
    if privacy.suppress != "costliest":
        return None
    max_suppressed = privacy.may_suppress(n_rows) - (n_rows - n_planned)
    costs = staged_rows.groupBy(COST).count().orderBy(F.col(COST).desc())
    counts = costs.limit(max(max_suppressed, 0)).collect()  # each has a row at least
    return choose_least_cost(((row[COST], row["count"]) for row in counts), max_suppressed)

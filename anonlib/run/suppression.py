"""Which staged rows are released, where the costliest cells are suppressed."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from anonlib.config.model import PrivacySection
from anonlib.table.columns import COST


def find_released(
    privacy: PrivacySection, staged: DataFrame, n_rows: int, n_planned: int
) -> Column | None:
    """The condition of the staged rows that are released; None if all are.

    Args:
        privacy: How rows are suppressed, and how many may be.
        staged: The staged rows.
        n_rows: Rows of the source.
        n_planned: Rows that the plan kept.
    """
    if privacy.suppress != "costliest":
        return None
    allowed = privacy.may_suppress(n_rows) - (n_rows - n_planned)
    cost = _least_cost_suppressed(staged, allowed)
    return None if cost is None else F.col(COST) < cost


def _least_cost_suppressed(staged: DataFrame, allowed: int) -> int | None:
    """The least cost of the cells to suppress: they have at most `allowed` rows together. None to
    suppress no cell. Cells of one cost are suppressed all or not at all."""
    costs = staged.groupBy(COST).count().orderBy(F.col(COST).desc())
    counts = costs.limit(max(allowed, 0) + 1).collect()  # each has a row at least
    found, rows = None, 0
    for row in counts:
        rows += row["count"]
        if rows > allowed or row[COST] == 0:
            break
        found = int(row[COST])
    return found

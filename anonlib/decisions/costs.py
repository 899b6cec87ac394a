"""Which cells are the costliest, and may be suppressed."""

from collections.abc import Iterable


def choose_least_cost(cost_counts: Iterable[tuple[int, int]], max_suppressed: int) -> int | None:
    """The least cost of the cells to suppress; None to suppress no cell.

    Cells of that cost or more have at most `max_suppressed` rows together. Cells of equal cost are
    suppressed all or not at all, and cells that cost nothing never.

    Args:
        cost_counts: Costs, the highest first, and the rows of the cells of each.
        max_suppressed: The most rows to suppress.
    """
    least, n_rows = None, 0
    for cost, n in cost_counts:
        n_rows += n
        if n_rows > max_suppressed or cost == 0:
            break
        least = cost
    return least

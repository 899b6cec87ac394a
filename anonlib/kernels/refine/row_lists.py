"""The arrays of refining: the rows of each cell as lists, and what the cells lose."""

from typing import NamedTuple

from anonlib.arrays import Codes, Floats, Ints
from anonlib.kernels.refine.extents import Extents

#: The group of free cells.
FREE = 2**40


class RefineState(NamedTuple):
    """n rows in at most c cells. A cell without rows is free.

    The rows of a cell are a linked list: first[cell], after[first[cell]], ..., -1.

    Attributes:
        numeric: float64[n, p]. The numeric columns.
        nominal: int32[n, q]. The codes of the nominal columns.
        cell: int64[n]. The cell of each row.
        after: int64[n]. The next row of the same cell; -1 after the last.
        own: float64[n]. The squared distance of each row from the centroid of its cell.
        lean: float64[n]. Scratch: a number for each row and one other cell.
        first: int64[c]. The first row of each cell; -1 without rows.
        rows: int64[c]. The rows of each cell.
        total: float64[c, p]. Sums of the numeric columns.
        mean: float64[c, p]. Means of the numeric columns.
        spread: float64[c]. The sum, over the nominal columns, of (1 + the sum of squared shares)
            / 2.
        radius: float64[c]. The largest `own` in each cell.
        loss: float64[c]. The sum of `own` over each cell.
        last_change: int64[c]. clock[0] at the last change of each cell.
        clock: int64[1]. The number of changes so far.
        group: int64[c]. The group of each cell. Rows move only between cells of one group.
        center: int64[c]. center[g] is the cell around which group g was made.
        tally: int64. Scratch: rows by category. Column h begins at start[h].
        start: int64[q + 1]. See `tally`.
        blur: float64[1]. A bound above the rounding error of a distance from a centroid.
        by_penalty: Whether the loss is the normalized certainty penalty. If so, `own` has what the
            penalty of the cell falls by without the copies of a row, `loss` is that penalty times
            the rows, and `mean`, `spread` and `radius` are not used.
        extents: What cells lose by that penalty. None if `by_penalty` is not set.
    """

    numeric: Floats
    nominal: Codes
    cell: Ints
    after: Ints
    own: Floats
    lean: Floats
    first: Ints
    rows: Ints
    total: Floats
    mean: Floats
    spread: Floats
    radius: Floats
    loss: Floats
    last_change: Ints
    clock: Ints
    group: Ints
    center: Ints
    tally: Ints
    start: Ints
    blur: Floats
    by_penalty: bool
    extents: Extents | None

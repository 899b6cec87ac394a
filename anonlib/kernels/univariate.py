"""Univariate: optimal cells along one column, or along a projection of several."""

from dataclasses import replace
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from anonlib.arrays import GRID, Floats, Ints, snap
from anonlib.kernels import Kernel
from anonlib.kernels.discriminant import measure_classes
from anonlib.kernels.merge import make_writable, merge_failing, require_feasible
from anonlib.table.block import MOST_INDICATORS, Block


class Univariate(Kernel):
    """Optimal microaggregation of one numeric column; of several, along their principal component.

    The way of least loss is a shortest path; k is the block's `min_rows`.
    Of all ways to cut the sorted rows into cells of k rows or more, it takes the one with the least
    sum of squared distances (as for `mdav`) from the centroids. For a single numeric column no
    other cells lose less. Of equally good solutions, the one with the smallest last cell wins,
    then the smallest cell before it, and so on.

    Rows are sorted along `projection`; rows of equal values keep their order:

    - principal: The first principal component of the numeric columns and of the indicators of
      nominal columns with at most 100 categories, scaled by the square root of 1/2. Covariances
      are exact in any order of rows. The weight of largest magnitude (the first of several) is
      positive.
    - first: The first numeric column. Without one: the codes of the first nominal column, so that
      rows of equal codes are neighbours.

    Cells that fail the models are merged with near ones (`merge_failing`).
    """

    type: ClassVar[str] = "univariate"
    cost: ClassVar[str] = "O(n log n + n k d), and for the principal component O(n d^2 + d^3)"
    reference: ClassVar[str] = (
        "S. Hansen, S. Mukherjee, A polynomial algorithm for optimal univariate microaggregation, "
        "IEEE TKDE 15(4), 2003; for several columns as in J. Domingo-Ferrer et al., Efficient "
        "multivariate data-oriented microaggregation, VLDB Journal 15(4), 2006"
    )
    projection: Literal["principal", "first"] = Field(
        "principal", description="what rows are sorted along"
    )

    def cells(self, block: Block) -> Ints:
        if block.n == 0:
            return np.zeros(0, np.int64)
        require_feasible(block)
        from anonlib.kernels._univariate_core import find_shortest_path

        scores = _principal(block) if self.projection == "principal" else _first(block)
        cell_id = find_shortest_path(
            make_writable(block.numeric),
            make_writable(block.nominal),
            make_writable(block.n_categories),
            np.argsort(scores, kind="stable"),
            block.min_rows,
        )
        return merge_failing(block, cell_id)


def _first(block: Block) -> Floats:
    columns = [*block.numeric.T, *block.nominal.T.astype(np.float64)]
    return columns[0] if columns else np.zeros(block.n)


def _principal(block: Block) -> Floats:
    """float64[n] on GRID. The score of each row on the first principal component."""
    weights = iter(_component(block))
    scores = np.zeros(block.n)
    for column in block.numeric.T:
        scores += column * next(weights)
    for codes, width in zip(block.nominal.T, block.n_categories, strict=True):
        if width <= MOST_INDICATORS:
            scores += np.array([next(weights) for _ in range(width)])[codes]
    return snap(scores)


def _component(block: Block) -> Floats:
    """float64[d]. What one unit of each numeric column or indicator adds to the score."""
    from threadpoolctl import threadpool_limits

    # Take all rows as one class. The products are exact integers, in units of GRID.
    moments = measure_classes(replace(block, target=np.zeros(block.n), n_classes=1))
    total = moments.sums[0]
    covariance = (block.n * moments.products - np.outer(total, total)).astype(np.float64)
    d = len(total)
    if d == 0:
        return np.zeros(0)
    unit = np.where(np.arange(d) < block.numeric.shape[1], GRID, np.sqrt(0.5))
    covariance *= np.outer(unit, unit) / block.n**2
    with threadpool_limits(1):  # the rounding would depend on the number of threads
        component = np.linalg.eigh(covariance)[1][:, -1]
    sign = np.sign(component[np.argmax(np.abs(component))])
    return np.asarray(component * sign * np.where(unit == GRID, 1.0, unit), np.float64)

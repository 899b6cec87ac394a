"""LDA-MDAV: MDAV on points stretched along the directions that separate the classes."""

from typing import ClassVar

import numpy as np
from pydantic import Field

from anonlib.arrays import Ints
from anonlib.kernels._augment import with_columns
from anonlib.kernels.mdav import Mdav
from anonlib.table.block import Block


class LdaMdav(Mdav):
    """MDAV with cells that are thin across the border of classes, for a model that learns them.

    It is MDAV after linear discriminant analysis.
    The points (nominal columns as their scaled indicators) are rotated so that the first L - 1 axes
    span the discriminants of L classes. Then these axes are stretched by `alpha`. A rotation keeps
    distances. So the squared distance is that of `mdav` plus (alpha**2 - 1) times the squared
    difference along each of these axes. To compute it, one column for each discriminant is added to
    the original columns: sqrt(alpha**2 - 1) times the score, rounded to GRID. At alpha = 1, or
    without differences between the classes, the cells are those of `mdav`.

    The discriminants are the inverse of the within-class covariance times the differences of the
    class means. A ridge, 1e-6 of the mean total variance, is added to every variance. So the
    covariance is regular even if a column is constant within all classes. Such a column has much
    weight if it tells classes apart, and none if it does not. Nominal columns with more than 100
    categories take no part in the discriminants. Missing values of the target are a class; classes
    without rows are left out. With as many classes as coordinates, the discriminants hardly favour
    any direction.

    If the block has `moments`, all blocks of a table have the same discriminants; otherwise each
    block has its own.
    """

    type: ClassVar[str] = "lda_mdav"
    cost: ClassVar[str] = "O(n^2 d / k + n d^2 + d^3) at worst, d with indicators"
    reference: ClassVar[str] = (
        "A. Rodriguez-Hoyos et al., Preserving empirical data utility in k-anonymous "
        "microaggregation via linear discriminant analysis, Engineering Applications of "
        "Artificial Intelligence 94, 2020"
    )
    alpha: float = Field(
        2.0, ge=1.0, le=1024.0, description="how much the discriminant directions are stretched"
    )

    @property
    def needs_classes(self) -> bool:
        return True

    def cells(self, block: Block) -> Ints:
        from anonlib.kernels.discriminant import score_discriminants

        stretch = np.sqrt(self.alpha * self.alpha - 1.0)
        if stretch == 0.0:
            return super().cells(block)
        return super().cells(with_columns(block, stretch * score_discriminants(block)))

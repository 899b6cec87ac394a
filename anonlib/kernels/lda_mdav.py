"""LDA-MDAV: MDAV on points stretched along the directions that set the classes apart."""

from typing import ClassVar

import numpy as np
from pydantic import Field

from anonlib.arrays import Ints
from anonlib.kernels._augment import with_columns
from anonlib.kernels.mdav import Mdav
from anonlib.table.block import Block


class LdaMdav(Mdav):
    """MDAV after linear discriminant analysis: cells are thin across the border of two classes.

    The points (nominal columns as their scaled indicators) are rotated so that the first axis is
    the discriminant of two classes, or the first L - 1 span those of L, and these are stretched
    by `alpha`. Rotation keeps distances, so the squared distance is that of `mdav` plus
    (alpha**2 - 1) times the squared difference along each of these axes: the columns stay as they
    are, and sqrt(alpha**2 - 1) times each discriminant, on the grid, comes as one column more. At
    alpha = 1, or without differences between the classes, the cells are those of `mdav`.

    The discriminants are the within-class covariance's inverse times the differences of the class
    means. To every variance in that covariance 1e-6 of the mean total variance is added (a ridge):
    with a column that is constant within all classes it is regular, too, and such a column counts
    for much where it tells classes apart, for nothing where it does not. Of the nominal columns
    those of more than 100 categories take no part in the discriminants. A missing class is a class;
    one without rows is none. As many classes as coordinates leave nothing to favour.

    With the block's `moments`, all blocks of a table have the same discriminants; otherwise each
    has its own.
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
        from anonlib.kernels.discriminant import discriminants

        stretch = np.sqrt(self.alpha * self.alpha - 1.0)
        if stretch == 0.0:
            return super().cells(block)
        return super().cells(with_columns(block, stretch * discriminants(block)))

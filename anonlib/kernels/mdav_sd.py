"""MDAV-SD: MDAV that preserves the statistical dependence of a target on the quasi-identifiers."""

from dataclasses import replace
from typing import ClassVar

import numpy as np
from pydantic import ConfigDict, Field

from anonlib.arrays import Floats, Ints
from anonlib.kernels._augment import with_columns
from anonlib.kernels.mdav import Mdav
from anonlib.table.block import Block


class MdavSd(Mdav):
    """MDAV that keeps rows of like targets together, for a model that learns from the release.

    The distortion is (1 - lambda) D_X + lambda D_Y.

    - D_X: the squared distance of `mdav` / the number of columns. Its mean over the rows is an MSE
      per column.
    - D_Y, for a numeric target: the squared difference of the standardized numbers.
    - D_Y, for a target of classes: 1 if the classes differ, which is half the squared distance of
      their indicators.

    At lambda = 1/2 the target weighs as much as all quasi-identifiers together. At 0 the cells are
    those of `mdav`; at 1 the quasi-identifiers do not count.

    The target is appended as further columns, rounded to GRID. Then `mdav`'s squared distance is a
    multiple of the distortion. A numeric target, or one of two classes, is one column, scaled by
    sqrt(lambda d / (1 - lambda)). A target of more classes becomes their indicators, scaled by
    sqrt(lambda d / (1 - lambda) / 2).

    The rows of a cell are alike in the target on purpose. So a cell tells more about a person's
    target than a cell of `mdav`. If that matters, give the target a privacy model.
    """

    model_config = ConfigDict(populate_by_name=True, serialize_by_alias=True)
    type: ClassVar[str] = "mdav_sd"
    cost: ClassVar[str] = "O(n^2 (d + L) / k) at worst for L classes; far less for few columns"
    reference: ClassVar[str] = (
        "D. Rebollo-Monedero, J. Forne, M. Soriano, J. Puiggali Allepuz, k-Anonymous "
        "microaggregation with preservation of statistical dependence, Information Sciences 342, "
        "2016"
    )
    lambda_: float = Field(
        0.2, alias="lambda", ge=0.0, le=1.0, description="weight of the target's distortion"
    )

    @property
    def needs_target(self) -> bool:
        return True

    def cells(self, block: Block) -> Ints:
        return super().cells(_with_target(block, self.lambda_))


def _with_target(block: Block, lambda_: float) -> Block:
    """Appends the target to a block, so that squared distances are a multiple of the distortion."""
    if lambda_ == 1.0:
        none = block.numeric[:, :0], block.nominal[:, :0], block.n_categories[:0]
        bare = replace(block, numeric=none[0], nominal=none[1], n_categories=none[2], trees=())
        return with_columns(bare, _target(block))
    d = block.numeric.shape[1] + block.nominal.shape[1]
    return with_columns(block, np.sqrt(lambda_ * d / (1.0 - lambda_)) * _target(block))


def _target(block: Block) -> Floats:
    """float64[n, 1 or the number of classes]. Squared distances between its rows are D_Y."""
    assert block.target is not None
    if block.n_classes <= 2:
        return block.target[:, None]
    classes = np.unique(block.target)
    indicators: Floats = np.sqrt(0.5) * (block.target[:, None] == classes)
    return indicators

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
    """MDAV by the distortion (1 - lambda) D_X + lambda D_Y.

    D_X: the squared distance of `mdav` over the number of columns, so that its mean over the rows
    is an MSE per column. D_Y, of the target: the squared difference of standardized numbers; of
    classes, 1 where they differ, which is half the squared distance of their indicators.
    lambda = 1/2 gives the target the weight of all quasi-identifiers together; at 0 the cells are
    those of `mdav`, at 1 the quasi-identifiers don't count.

    The distortion is a multiple of a squared distance of `mdav`: with the columns as they are, and
    the target as further ones, scaled by the square root of lambda d / (1 - lambda) and put on the
    grid: itself where it is a number or has two classes, else its indicators, by the square root
    of half of that.

    Cells are alike in the target on purpose, so that they say more about that of a person than
    those of `mdav`: where that matters, the target needs a privacy model.
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
    """The block whose squared distances are a multiple of the distortion."""
    if lambda_ == 1.0:
        none = block.numeric[:, :0], block.nominal[:, :0], block.n_categories[:0]
        bare = replace(block, numeric=none[0], nominal=none[1], n_categories=none[2], trees=())
        return with_columns(bare, _target(block))
    d = block.numeric.shape[1] + block.nominal.shape[1]
    return with_columns(block, np.sqrt(lambda_ * d / (1.0 - lambda_)) * _target(block))


def _target(block: Block) -> Floats:
    """float64[n, 1 or the number of classes]: squared distances of its rows are those of D_Y."""
    assert block.target is not None
    if block.n_classes <= 2:
        return block.target[:, None]
    classes = np.unique(block.target)
    indicators: Floats = np.sqrt(0.5) * (block.target[:, None] == classes)
    return indicators

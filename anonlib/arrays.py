"""Array types by dtype, exact counts, and the grid that makes sums of floats exact in any order."""

from fractions import Fraction
from math import floor

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int32]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.object_]

#: Numeric values are multiples of this, so that sums within 53 bits are exact in any order.
GRID = 2.0**-20

#: The code of a missing sensitive value.
MISSING = -1


def snap(values: Floats) -> Floats:
    """The nearest multiples of GRID, as a C-contiguous array; -0.0 becomes 0.0."""
    return np.ascontiguousarray(np.rint(values / GRID) * GRID + 0.0)


def count_share(share: float, n: int) -> int:
    """The most of n things that are at most a share of them: 29 are 0.29 of 100, where a product of
    floats is below 29."""
    return floor(Fraction(repr(float(share))) * n)

"""Array types by dtype, and the grid that makes sums of floats exact in any order."""

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

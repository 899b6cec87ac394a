"""Array types by dtype, exact counts, and the grid that makes sums of floats exact in any order."""

from decimal import Decimal, localcontext
from fractions import Fraction
from math import floor
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int32]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.object_]
#: A scipy.sparse matrix of float64, in rows (csr_matrix) if nothing else is said.
Sparse: TypeAlias = Any
Array = TypeVar("Array", bound=npt.NDArray[Any])

#: Numeric values are multiples of this, so that sums within 53 bits are exact in any order.
GRID = 2.0**-20

#: The code of a missing sensitive value.
MISSING = -1


def snap(values: Floats) -> Floats:
    """The nearest multiples of GRID, as a C-contiguous array; -0.0 becomes 0.0."""
    return np.ascontiguousarray(np.rint(values / GRID) * GRID + 0.0)


def freeze(array: Array) -> Array:
    """The array, which can't be written to through the result. Nothing is copied."""
    if not array.flags.writeable:
        return array
    view = array.view()
    view.flags.writeable = False
    return view


def freeze_fields(of: object, *names: str) -> None:
    """Freezes the arrays in fields of a frozen dataclass, but for those that are None."""
    for name in names:
        array = getattr(of, name)
        if array is not None and array.flags.writeable:
            object.__setattr__(of, name, freeze(array))


def average_ratio(above: Ints, below: Ints, n: int) -> float:
    """The sum of above / below, divided by n, rounded once: else a mean of 0.15 could come out as
    0.15000000000000002, which a bound of 0.15 would refuse.

    Args:
        above: int64[x].
        below: int64[x]. 1 or more.
        n: What to divide the sum by; 1 or more.
    """
    number, place = np.unique(below, return_inverse=True)
    sums = np.zeros(len(number), np.int64)
    np.add.at(sums, place, above)
    with localcontext(prec=50):  # no double is so near to a sum of fewer than 10^30 fractions
        total = sum(Decimal(a) / b for a, b in zip(sums.tolist(), number.tolist(), strict=True))
        return float(total / n)


def count_share(share: float, n: int) -> int:
    """The most of n things that are at most a share of them: 29 are 0.29 of 100, where a product of
    floats is below 29."""
    return floor(Fraction(repr(float(share))) * n)

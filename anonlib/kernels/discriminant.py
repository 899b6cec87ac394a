"""Linear discriminants of a block's classes, from moments that are exact in any order of rows.

The coordinates are the numeric columns, then the indicators of the categories of each nominal
column, scaled by the square root of 1/2. Columns with more than MOST_INDICATORS categories have no
indicators. Distances between these points are those of `mdav`.
"""

import numpy as np

from anonlib.arrays import GRID, Floats, Integers, Ints, snap
from anonlib.table.block import MOST_INDICATORS, Block, ClassMoments

#: Added to the variance of every coordinate, as a share of the mean variance.
RIDGE = 1e-6
#: A direction is noise if its distance from the span of the earlier ones is below this.
SAME = 1e-3
#: Integers are multiplied in pieces of BITS bits, and summed over ROWS rows at a time. Floats hold
#: such sums exactly.
BITS, ROWS = 17, 1 << 13


def measure_classes(block: Block) -> ClassMoments:
    """The moments of the block's rows. Cost O(n d^2) for d coordinates."""
    assert block.target is not None
    d = block.numeric.shape[1] + int(_indicate(block).sum())
    total = ClassMoments(
        np.zeros(block.n_classes, object),
        np.zeros((block.n_classes, d), object),
        np.zeros((d, d), object),
    )
    for start in range(0, block.n, ROWS):
        rows = slice(start, start + ROWS)
        codes = block.target[rows].astype(np.int64)
        total = total.merge(_moments(_coordinates(block, rows), codes, block.n_classes))
    return total


def _indicate(block: Block) -> Ints:
    """int64[q]. The indicators of each nominal column; 0 with more than MOST_INDICATORS."""
    few = block.n_categories <= MOST_INDICATORS
    return np.where(few, block.n_categories, 0)


def _coordinates(block: Block, rows: slice) -> Ints:
    """int64[rows, d]. The numeric columns in units of GRID, then the indicators."""
    numeric = (block.numeric[rows] / GRID).astype(np.int64)
    found = [numeric]
    for codes, width in zip(block.nominal[rows].T, _indicate(block), strict=True):
        found.append((codes[:, None] == np.arange(width)).astype(np.int64))
    return np.concatenate(found, axis=1)


def _moments(x: Ints, codes: Ints, n_classes: int) -> ClassMoments:
    """The moments of at most ROWS rows."""
    sums = np.zeros((n_classes, x.shape[1]), object)
    products = np.zeros((x.shape[1], x.shape[1]), object)
    pieces = _pieces(x)
    for i, piece in enumerate(pieces):
        by_class = [np.bincount(codes, column, n_classes) for column in piece.T]
        sums += _exact(np.column_stack(by_class), BITS * i)
        for j, other in enumerate(pieces):
            products += _exact(piece.T @ other, BITS * (i + j))
    counts = np.bincount(codes, minlength=n_classes).astype(object)
    return ClassMoments(counts, sums, products)


def _pieces(x: Ints) -> list[Floats]:
    """Splits x into pieces below 2**BITS: x is the sum of pieces[i] * 2**(BITS * i)."""
    sign, rest = np.sign(x), np.abs(x)
    found = []
    while rest.any():
        found.append((sign * (rest & ((1 << BITS) - 1))).astype(np.float64))
        rest = rest >> BITS
    return found


def _exact(values: Floats, shift: int) -> Integers:
    """Integer-valued floats as Python integers, times 2**shift."""
    result: Integers = values.astype(np.int64).astype(object) * (1 << shift)
    return result


def score_discriminants(block: Block) -> Floats:
    """float64[n, r]. The scores of the rows along the r directions that separate the classes.

    r is at most the number of classes - 1. The directions are orthonormal. They span the same space
    as the leading generalized eigenvectors of the between- and the within-class covariance. This is
    the span of an inverse times the class means: the inverse of the within-class covariance, or (as
    here) of the sum of both. It comes from a linear system, which has one solution. An eigenproblem
    would leave open the signs, and the directions for equal eigenvalues.

    Cost O(n d^2 + d^3), or O(n d + d^3) if the block has moments.
    """
    moments = measure_classes(block) if block.moments is None else block.moments
    p = block.numeric.shape[1]
    directions = _directions(moments, p)
    result = np.zeros((block.n, len(directions)))
    for score, weights in zip(result.T, directions, strict=True):
        for column, weight in zip(block.numeric.T, weights, strict=False):
            score += column * weight
        start = p
        for codes, width in zip(block.nominal.T, _indicate(block), strict=True):
            if width > 0:
                score += weights[start : start + width][codes]
            start += width
    return result


def _directions(moments: ClassMoments, p: int) -> Floats:
    """float64[r, d] on GRID. What one unit of each coordinate adds along each direction."""
    covariance, shift = _spread(moments, p)
    d = len(covariance)
    mean_variance = covariance.trace() / max(d, 1)
    if len(shift) < 2 or mean_variance == 0.0:
        return np.zeros((0, d))
    covariance[np.diag_indices(d)] += RIDGE * mean_variance
    directions: list[Floats] = []
    # The last class adds nothing: weighted by their sizes, the classes' means sum to 0.
    for direction in _solve(covariance, shift[:-1].T).T:
        rest = direction.copy()
        for other in [*directions, *directions]:  # twice: the second time removes rounding errors
            rest -= (rest @ other) * other
        length = float(np.linalg.norm(rest))
        if length > SAME * np.linalg.norm(direction):
            directions.append(rest / length)
    return snap(np.array(directions).reshape(-1, d) * _units(d, p, 1.0))


def _spread(moments: ClassMoments, p: int) -> tuple[Floats, Floats]:
    """Returns the covariance of all rows, and the shift of each class from the mean of all rows.

    Both are rounded to floats, then scaled.

    Returns:
        float64[d, d]. The covariance.
        float64[classes with rows, d]. The mean of each class minus the mean of all rows.
    """
    present = moments.counts > 0
    counts, sums = moments.counts[present], moments.sums[present]
    n, total = int(counts.sum()), sums.sum(axis=0)
    d = len(moments.products)
    units = _units(d, p, GRID)
    if n == 0:
        return np.zeros((d, d)), np.zeros((0, d))
    covariance = (n * moments.products - np.outer(total, total)) / (n * n)
    shift = (n * sums - np.outer(counts, total)) / (n * counts)[:, None]
    scale = np.outer(units, units)
    return covariance.astype(np.float64) * scale, shift.astype(np.float64) * units


def _units(d: int, p: int, numeric: float) -> Floats:
    """float64[d]. The length of one unit of each coordinate."""
    return np.where(np.arange(d) < p, numeric, np.sqrt(0.5))


def _solve(matrix: Floats, right: Floats) -> Floats:
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):  # the rounding would depend on the number of threads
        return np.asarray(np.linalg.solve(matrix, right), np.float64)

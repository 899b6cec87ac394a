"""Linear discriminants of a block's classes, from moments that are exact in any order.

Coordinates: the numeric columns, then, scaled by the square root of 1/2, the indicators of the
categories of each nominal column that has at most MOST_INDICATORS: distances of these points are
those of `mdav`.
"""

import numpy as np

from anonlib.arrays import GRID, Floats, Integers, Ints, snap
from anonlib.table.block import MOST_INDICATORS, Block, ClassMoments

#: Added to the variance of every coordinate, as a share of the mean variance.
RIDGE = 1e-6
#: A direction nearer than this to the span of those before it is noise.
SAME = 1e-3
#: Integers are multiplied in pieces of BITS bits, ROWS rows at once, so that floats hold the sums.
BITS, ROWS = 17, 1 << 13


def class_moments(block: Block) -> ClassMoments:
    """The moments of the block's rows. Cost O(n d^2) for d coordinates."""
    assert block.target is not None
    d = block.numeric.shape[1] + int(_indicated(block).sum())
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


def _indicated(block: Block) -> Ints:
    """int64[q]: how many indicators a nominal column has."""
    few = block.n_categories <= MOST_INDICATORS
    return np.where(few, block.n_categories, 0)


def _coordinates(block: Block, rows: slice) -> Ints:
    """int64[rows, d]: numeric columns in units of GRID, and indicators."""
    numeric = (block.numeric[rows] / GRID).astype(np.int64)
    found = [numeric]
    for codes, width in zip(block.nominal[rows].T, _indicated(block), strict=True):
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
    """Parts of x, each below 2**BITS: it is the sum of the i-th times 2**(BITS * i)."""
    sign, rest = np.sign(x), np.abs(x)
    found = []
    while rest.any():
        found.append((sign * (rest & ((1 << BITS) - 1))).astype(np.float64))
        rest = rest >> BITS
    return found


def _exact(values: Floats, shift: int) -> Integers:
    """Whole floats as Python integers, times 2**shift."""
    result: Integers = values.astype(np.int64).astype(object) * (1 << shift)
    return result


def discriminants(block: Block) -> Floats:
    """float64[n, r]: where the rows stand along the directions that set the classes apart, at most
    one less than there are classes. Cost O(n d^2 + d^3), or O(n d + d^3) with moments given.

    The directions are orthonormal. They span what the leading generalized eigenvectors of between-
    and within-class covariance span: the inverse of the latter, or, which spans the same, of their
    sum, times the class means. That is found by solving, without an eigenproblem, so that equal
    eigenvalues and signs leave no choice.
    """
    moments = class_moments(block) if block.moments is None else block.moments
    p = block.numeric.shape[1]
    directions = _directions(moments, p)
    result = np.zeros((block.n, len(directions)))
    for score, weights in zip(result.T, directions, strict=True):
        for column, weight in zip(block.numeric.T, weights, strict=False):
            score += column * weight
        start = p
        for codes, width in zip(block.nominal.T, _indicated(block), strict=True):
            if width > 0:
                score += weights[start : start + width][codes]
            start += width
    return result


def _directions(moments: ClassMoments, p: int) -> Floats:
    """float64[r, d] on GRID: a unit of each coordinate along each direction."""
    covariance, shift = _spread(moments, p)
    d = len(covariance)
    mean_variance = covariance.trace() / max(d, 1)
    if len(shift) < 2 or mean_variance == 0.0:
        return np.zeros((0, d))
    covariance[np.diag_indices(d)] += RIDGE * mean_variance
    found: list[Floats] = []
    # The last class adds nothing: weighted by their sizes, the classes' means sum to 0.
    for direction in _solve(covariance, shift[:-1].T).T:
        rest = direction.copy()
        for other in [*found, *found]:  # again, to take out what rounding left
            rest -= (rest @ other) * other
        length = float(np.linalg.norm(rest))
        if length > SAME * np.linalg.norm(direction):
            found.append(rest / length)
    return snap(np.array(found).reshape(-1, d) * _units(d, p, 1.0))


def _spread(moments: ClassMoments, p: int) -> tuple[Floats, Floats]:
    """The covariance of all rows, and the difference from their mean of that of each class that
    has rows. Figures are rounded to floats, then scaled."""
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
    """float64[d]: how long a unit of each coordinate is."""
    return np.where(np.arange(d) < p, numeric, np.sqrt(0.5))


def _solve(matrix: Floats, right: Floats) -> Floats:
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):  # the rounding would depend on the number of threads
        return np.asarray(np.linalg.solve(matrix, right), np.float64)

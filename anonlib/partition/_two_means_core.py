"""The compiled core of 2-means splits. Sums go row by row, so that they round alike everywhere."""

import numpy as np

from anonlib.arrays import Floats, Ints
from anonlib.compiled import njit


@njit
def measure_squares(x: Floats, row: int) -> Floats:
    """float64[n]. The squared distance of each row from one of them."""
    n, f = x.shape
    squares = np.zeros(n)
    for i in range(n):
        for j in range(f):
            apart = x[i, j] - x[row, j]
            squares[i] += apart * apart
    return squares


@njit
def move_centres(
    x: Floats, weight: Ints, start: Floats, max_iter: int, least_shift: float
) -> Floats:
    """float64[2, f]. The centres after Lloyd's steps, which end with the first short one.

    Args:
        x: float64[n, f]. The rows.
        weight: int64[n]. How many rows each stands for.
        start: float64[2, f]. The first centres.
        max_iter: The most steps.
        least_shift: The steps end once the squared moves of both centres add up to this or less.
    """
    n, f = x.shape
    centres = start.copy()
    for _ in range(max_iter):
        direction, halfway = centres[1] - centres[0], 0.0
        for j in range(f):
            halfway += centres[1, j] * centres[1, j] - centres[0, j] * centres[0, j]
        halfway /= 2
        sums, total = np.zeros((2, f)), np.zeros(2)
        for i in range(n):
            score = 0.0
            for j in range(f):
                score += x[i, j] * direction[j]
            side = 0 if score <= halfway else 1
            total[side] += weight[i]
            for j in range(f):
                sums[side, j] += weight[i] * x[i, j]
        shift = 0.0
        for side in range(2):
            for j in range(f):
                mean = sums[side, j] / total[side]
                shift += (mean - centres[side, j]) ** 2
                centres[side, j] = mean
        if shift <= least_shift:
            break
    return centres

"""The straightforward versions that the benches measure kernels against: compiled, but plain loops
over all remaining rows."""

from typing import Any

import numba
import numpy as np


@numba.njit(cache=True)
def mdav_loop(x: Any, k: int) -> Any:
    """int64[n]: the cells of MDAV (variant figure4) on float64[n, p]; at most k - 1 rows get -1."""
    n, p = x.shape
    cell = np.full(n, -1, np.int64)
    left = np.arange(n)
    m, n_cells = n, 0
    centroid = np.empty(p)
    distance, near = np.empty(k), np.empty(k, np.int64)
    while m >= k:
        for j in range(p):
            total = 0.0
            for i in range(m):
                total += x[left[i], j]
            centroid[j] = total / m
        farthest = -1.0
        center = 0
        for i in range(m):
            d = 0.0
            for j in range(p):
                d += (x[left[i], j] - centroid[j]) ** 2
            if d > farthest:
                farthest, center = d, left[i]
        for _ in range(2 if m >= 2 * k else 1):
            farthest, other, size = -1.0, 0, 0
            for i in range(m):
                d = 0.0
                for j in range(p):
                    d += (x[left[i], j] - x[center, j]) ** 2
                if d > farthest:
                    farthest, other = d, left[i]
                if size < k or d < distance[size - 1]:
                    size = min(size + 1, k)
                    place = size - 1
                    while place > 0 and distance[place - 1] > d:
                        distance[place], near[place] = distance[place - 1], near[place - 1]
                        place -= 1
                    distance[place], near[place] = d, left[i]
            for place in range(k):
                cell[near[place]] = n_cells
            n_cells += 1
            kept = 0
            for i in range(m):
                if cell[left[i]] < 0:
                    left[kept] = left[i]
                    kept += 1
            m = kept
            center = other
    return cell

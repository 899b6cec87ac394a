"""The compiled core of full-domain recoding: the classes at a node of the lattice."""

import numpy as np

from anonlib.arrays import Codes, Ints
from anonlib.compiled import njit

#: Keys are hashed modulo 2^42: a key times the multiplier fits into 63 bits.
MASK = 2**42 - 1
MULTIPLIER = 1_000_003


@njit
def find_equal_tuples(codes: Codes, rows: Ints, node: Ints, start: Ints) -> tuple[Ints, Ints, Ints]:
    """Groups tuples with equal nodes into classes, by a hash table.

    Args:
        codes: int32[m, q]. The codes of each tuple.
        rows: int64[m]. The rows of each tuple.
        node: int64. Code c of column j is generalized to node[start[j] + c].
        start: int64[q]. See `node`.

    Returns:
        int64[m]. The class of each tuple. Classes are numbered by first tuples.
        int64[classes]. The first tuple of each class.
        int64[classes]. The rows of each class.
    """
    m, q = codes.shape
    size = 1
    while size < 2 * m:
        size *= 2
    table = np.full(size, -1, np.int32)
    key_of = np.empty(m, np.int64)
    id, first, total = np.empty(m, np.int64), np.empty(m, np.int64), np.zeros(m, np.int64)
    n = 0
    for i in range(m):
        key = 0
        for j in range(q):
            key = (key * MULTIPLIER + node[start[j] + codes[i, j]]) & MASK
        slot = (key ^ (key >> 21)) & (size - 1)
        while True:
            c = table[slot]
            if c < 0:
                c = n
                table[slot], key_of[c], first[c] = c, key, i
                n += 1
                break
            if key_of[c] == key and _alike(codes[i], codes[first[c]], node, start):
                break
            slot = (slot + 1) & (size - 1)
        id[i] = c
        total[c] += rows[i]
    return id, first[:n].copy(), total[:n].copy()


@njit
def _alike(a: Codes, b: Codes, node: Ints, start: Ints) -> bool:
    unlike = 0
    for j in range(len(start)):
        unlike += node[start[j] + a[j]] != node[start[j] + b[j]]
    return unlike == 0


@njit
def find_bound(nodes: Codes, losses: Ints, heights: Codes) -> int:
    """The greatest loss of the nodes that are at or above a node; 0 if none is.

    Args:
        nodes: int32[n, q]. The heights of each node.
        losses: int64[n]. The loss of each node.
        heights: int32[q]. The heights of the node below.
    """
    n, q = nodes.shape
    bound = 0
    for i in range(n):
        if losses[i] > bound:
            j = 0
            while j < q and nodes[i, j] >= heights[j]:
                j += 1
            if j == q:
                bound = losses[i]
    return bound

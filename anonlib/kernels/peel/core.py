"""The compiled core of peeling: releases classes of the generalization lattice, cheapest first."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from anonlib.arrays import Bools, Codes, Ints
from anonlib.compiled import njit

Bits = npt.NDArray[np.uint64]

#: Tables for keys have so many places at least.
SMALLEST = 64


class Table(NamedTuple):
    """t distinct tuples of d columns, and what a cell must have for sure.

    code: int32[t, d]; weight: int64[t], rows. node: int32[d, h, c], what codes are generalized to,
    by height, each column's topmost height repeated; loss: int64[d, h, c], what is lost, in units
    of 2^-20. k: the fewest rows of a cell. bits: uint64[t, v], sets of the protected values that
    the tuple's rows have; need: int64[a], how many values a cell must have, that are in the words
    start[i] .. start[i + 1] - 1.
    """

    code: Codes
    weight: Ints
    node: Codes
    loss: Ints
    k: int
    bits: Bits
    start: Ints
    need: Ints


class Lattice(NamedTuple):
    """n nodes in the order in which they are tried.

    height: int64[n, d]. key: uint64[d, h, c], random numbers of the table's nodes; combined by
    exclusive or they tell classes apart (two with one key would be one cell, judged as such).
    bound: int64[s + 1], stages: all nodes are tried in each of them, on the tuples that lose from
    bound[s] to below bound[s + 1] there. part: int64[2, n], where these losses stand: that of tuple
    i at node j is left[part[0, j], i] + right[part[1, j], i], and from low[j] to high[j]. With one
    stage none of that is looked at.
    """

    height: Ints
    key: Bits
    bound: Ints
    part: Ints
    left: Codes
    right: Codes
    low: Ints
    high: Ints


class Peeling(NamedTuple):
    """Work in progress. at: stage, node, tuples in the rest, cells, classes at hand, tuples in
    them, and rows in the rest, as of now.

    cell: int64[t], -1 in the rest; rest: int64[t], the tuples without a cell, ascending. Of the
    classes at hand: item: int64[t], the tuples; group: int64[t], which class each is in; rows,
    bits, fits: by class, the last whether it has what a cell must have for sure. table: int64
    [2^x], the class in each place plus 1; mark: uint64[2^x], its key; place: int64[t].
    """

    at: Ints
    cell: Ints
    rest: Ints
    item: Ints
    group: Ints
    rows: Ints
    bits: Bits
    fits: Bools
    table: Ints
    mark: Bits
    place: Ints


def make_peeling(given: Table) -> Peeling:
    t = len(given.code)
    size = max(SMALLEST, 2 ** int(2 * t).bit_length())
    item, group, rows = np.zeros((3, t), np.int64)
    return Peeling(
        np.array([0, 0, t, 0, 0, 0, given.weight.sum()]),
        np.full(t, -1),
        np.arange(t),
        item,
        group,
        rows,
        np.zeros_like(given.bits),
        np.zeros(t, np.bool_),
        np.zeros(size, np.int64),
        np.zeros(size, np.uint64),
        np.zeros(t, np.int64),
    )


@njit
def peel(given: Table, lattice: Lattice, work: Peeling, judged: bool) -> bool:
    """Goes on until all nodes are done (False), or, where cells are judged, there are classes that
    may be cells (True): `place` says which ones are."""
    at = work.at
    n, n_stages = len(lattice.height), len(lattice.bound) - 1
    while at[0] < n_stages:
        while at[1] < n and at[6] >= given.k:
            node = at[1]
            at[1] += 1
            _select(lattice, work, at[0], node)
            classify(given, lattice, work, node)
            if work.fits[: at[4]].any():
                if judged:
                    return True
                place(given, work)
        at[0], at[1] = at[0] + 1, 0
    return False


@njit
def _select(lattice: Lattice, work: Peeling, stage: int, node: int) -> None:
    """Lists the tuples of the rest that are tried at a node."""
    at = work.at
    item, rest = work.item, work.rest
    if len(lattice.bound) == 2:
        item[: at[2]] = rest[: at[2]]
        at[5] = at[2]
        return
    low, high = lattice.bound[stage], lattice.bound[stage + 1]
    if lattice.low[node] >= high or lattice.high[node] < low:
        at[5] = 0
        return
    left, right = lattice.left[lattice.part[0, node]], lattice.right[lattice.part[1, node]]
    n = 0
    for i in range(at[2]):
        t = rest[i]
        loss = left[t] + right[t]
        item[n] = t
        n += low <= loss < high
    at[5] = n


@njit
def classify(given: Table, lattice: Lattice, work: Peeling, node: int) -> None:
    """Groups the listed tuples by what they are at a node, numbered by their first tuples."""
    at, item, group, rows, bits = work.at, work.item, work.group, work.rows, work.bits
    height, d = lattice.height[node], given.code.shape[1]
    size = SMALLEST
    while size < 2 * at[5]:
        size *= 2
    n = 0
    for i in range(at[5]):
        t = item[i]
        key = np.uint64(0)
        for j in range(d):
            key ^= lattice.key[j, height[j], given.code[t, j]]
        spot = np.int64(key & np.uint64(size - 1))
        while work.table[spot] > 0 and work.mark[spot] != key:
            spot = (spot + 1) & (size - 1)
        if work.table[spot] == 0:
            rows[n] = 0
            bits[n] = 0
            n += 1
            work.table[spot], work.mark[spot] = n, key
        g = work.table[spot] - 1
        group[i], work.place[i] = g, spot
        rows[g] += given.weight[t]
        for word in range(bits.shape[1]):
            bits[g, word] |= given.bits[t, word]
    at[4] = n
    for i in range(at[5]):
        work.table[work.place[i]] = 0
    for g in range(n):
        work.fits[g] = rows[g] >= given.k and diverse(given, bits[g])


@njit
def diverse(given: Table, bits: Bits) -> bool:
    """Whether a cell with these values has as many as it needs."""
    for i in range(len(given.need)):
        n = 0
        for word in range(given.start[i], given.start[i + 1]):
            x = bits[word]
            while x > 0:
                x &= x - np.uint64(1)
                n += 1
        if n < given.need[i]:
            return False
    return True


@njit
def place(given: Table, work: Peeling) -> None:
    """Makes cells of the classes that fit."""
    at = work.at
    number = work.rows  # no longer needed
    for g in range(at[4]):
        number[g] = at[3]
        at[3] += work.fits[g]
    for i in range(at[5]):
        if work.fits[work.group[i]]:
            work.cell[work.item[i]] = number[work.group[i]]
    kept = at[6] = 0
    for i in range(at[2]):
        t = work.rest[i]
        if work.cell[t] < 0:
            work.rest[kept] = t
            kept += 1
            at[6] += given.weight[t]
    at[2] = kept

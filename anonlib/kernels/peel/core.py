"""The compiled core of peeling: makes cells of lattice classes, least loss first."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from anonlib.arrays import Bools, Codes, Ints
from anonlib.compiled import njit

Bits = npt.NDArray[np.uint64]

#: The smallest size of a hash table of keys.
SMALLEST = 64

#: The counters of `Peeling.at`: the stage (STAGE), the next node (NODE), tuples in the rest (REST),
#: cells (CELLS), current classes (CLASSES), tuples in these classes (LISTED), and rows in the rest
#: (REST_ROWS).
STAGE, NODE, REST, CELLS, CLASSES, LISTED, REST_ROWS = range(7)


class TupleTable(NamedTuple):
    """t distinct tuples of d columns, and the rows and distinct values that every cell needs.

    Attributes:
        code: int32[t, d]. The codes of each tuple.
        weight: int64[t]. The rows of each tuple.
        node: int32[d, h, c]. The node to which each height generalizes each code. Columns with
            fewer heights repeat the highest one.
        loss: int64[d, h, c]. The loss of that node, in units of 2^-20.
        k: The fewest rows of a cell.
        bits: uint64[t, v]. The protected values of each tuple's rows, as a bit set.
        start: int64[a + 1]. Protected column i has the words start[i]..start[i + 1] - 1 of `bits`.
        need: int64[a]. The fewest distinct values of each protected column in a cell.
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
    """n lattice nodes, in the order in which they are tried.

    The loss of tuple i at node j is left[part[0, j], i] + right[part[1, j], i]. With one stage,
    losses are not used, and the last five arrays are empty.

    Attributes:
        height: int64[n, d]. The height of each node in each column.
        key: uint64[d, h, c]. Random keys of the table's nodes. The key of a class is the exclusive
            or of the keys of its nodes. (Two classes with the same key would become one cell, and
            be judged as one.)
        bound: int64[s + 1]. Stage s tries all nodes, on the tuples whose loss there is at least
            bound[s] and below bound[s + 1].
        part: int64[2, n]. The rows of `left` and `right` that belong to each node.
        left: int32[., t]. Losses in the first columns, for each combination of their heights.
        right: int32[., t]. Losses in the other columns, for each combination of their heights.
        low: int64[n]. A lower bound of the losses of tuples at each node.
        high: int64[n]. An upper bound of these losses.
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
    """The state of peeling: the rest (tuples without a cell), and the classes at the current node.

    Attributes:
        at: int64[7]. Counters, see `STAGE` to `REST_ROWS`.
        cell: int64[t]. The cell of each tuple; -1 in the rest.
        rest: int64[t]. The tuples of the rest, ascending.
        item: int64[t]. The listed tuples: those of the current classes.
        group: int64[t]. The class of each listed tuple.
        rows: int64[t]. The rows of each class.
        bits: uint64[t, v]. The protected values of each class, as a bit set.
        fits: bool[t]. Whether a class has k rows and enough distinct values.
        table: int64[2^x]. A hash table: 1 + the class at each place; 0 if the place is free.
        mark: uint64[2^x]. The key of the class at each place.
        place: int64[t]. The place in the hash table of each listed tuple's class.
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


def make_peeling(table: TupleTable) -> Peeling:
    t = len(table.code)
    size = max(SMALLEST, 2 ** int(2 * t).bit_length())
    item, group, rows = np.zeros((3, t), np.int64)
    return Peeling(
        np.array([0, 0, t, 0, 0, 0, table.weight.sum()]),
        np.full(t, -1),
        np.arange(t),
        item,
        group,
        rows,
        np.zeros_like(table.bits),
        np.zeros(t, np.bool_),
        np.zeros(size, np.int64),
        np.zeros(size, np.uint64),
        np.zeros(t, np.int64),
    )


@njit
def peel(table: TupleTable, lattice: Lattice, work: Peeling, judged: bool) -> bool:
    """Tries nodes until none is left. Then it returns False.

    With `judged`, it returns True at each node with classes that may be cells. The caller then
    judges them, updates `fits`, calls `make_cells`, and calls this function again.
    """
    at = work.at
    n, n_stages = len(lattice.height), len(lattice.bound) - 1
    while at[STAGE] < n_stages:
        while at[NODE] < n and at[REST_ROWS] >= table.k:
            node = at[NODE]
            at[NODE] += 1
            _select(lattice, work, at[STAGE], node)
            classify(table, lattice, work, node)
            if work.fits[: at[CLASSES]].any():
                if judged:
                    return True
                make_cells(table, work)
        at[STAGE], at[NODE] = at[STAGE] + 1, 0
    return False


@njit
def _select(lattice: Lattice, work: Peeling, stage: int, node: int) -> None:
    """Lists the tuples of the rest to try at a node."""
    at = work.at
    item, rest = work.item, work.rest
    if len(lattice.bound) == 2:
        item[: at[REST]] = rest[: at[REST]]
        at[LISTED] = at[REST]
        return
    low, high = lattice.bound[stage], lattice.bound[stage + 1]
    if lattice.low[node] >= high or lattice.high[node] < low:
        at[LISTED] = 0
        return
    left, right = lattice.left[lattice.part[0, node]], lattice.right[lattice.part[1, node]]
    n = 0
    for i in range(at[REST]):
        t = rest[i]
        loss = left[t] + right[t]
        item[n] = t
        n += low <= loss < high
    at[LISTED] = n


@njit
def classify(table: TupleTable, lattice: Lattice, work: Peeling, node: int) -> None:
    """Groups the listed tuples into classes at a node. Classes are numbered by first tuples."""
    at, item, group, rows, bits = work.at, work.item, work.group, work.rows, work.bits
    height, d = lattice.height[node], table.code.shape[1]
    size = SMALLEST
    while size < 2 * at[LISTED]:
        size *= 2
    n = 0
    for i in range(at[LISTED]):
        t = item[i]
        key = np.uint64(0)
        for j in range(d):
            key ^= lattice.key[j, height[j], table.code[t, j]]
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
        rows[g] += table.weight[t]
        for word in range(bits.shape[1]):
            bits[g, word] |= table.bits[t, word]
    at[CLASSES] = n
    for i in range(at[LISTED]):
        work.table[work.place[i]] = 0
    for g in range(n):
        work.fits[g] = rows[g] >= table.k and is_diverse(table, bits[g])


@njit
def is_diverse(table: TupleTable, bits: Bits) -> bool:
    """Whether a cell with these protected values has enough distinct ones."""
    for i in range(len(table.need)):
        n = 0
        for word in range(table.start[i], table.start[i + 1]):
            x = bits[word]
            while x > 0:
                x &= x - np.uint64(1)
                n += 1
        if n < table.need[i]:
            return False
    return True


@njit
def make_cells(table: TupleTable, work: Peeling) -> None:
    """Makes cells of the classes with `fits`, and removes their tuples from the rest."""
    at = work.at
    number = work.rows  # the rows of classes are no longer needed
    for g in range(at[CLASSES]):
        number[g] = at[CELLS]
        at[CELLS] += work.fits[g]
    for i in range(at[LISTED]):
        if work.fits[work.group[i]]:
            work.cell[work.item[i]] = number[work.group[i]]
    kept = at[REST_ROWS] = 0
    for i in range(at[REST]):
        t = work.rest[i]
        if work.cell[t] < 0:
            work.rest[kept] = t
            kept += 1
            at[REST_ROWS] += table.weight[t]
    at[REST] = kept

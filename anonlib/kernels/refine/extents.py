"""Extents: what cells lose by the normalized certainty penalty, and how rows change that.

The penalty of a cell is the sum of those of its columns:

- of numbers: their range in the cell / their range in the whole table;
- of codes with a hierarchy: the loss of the lowest node above all of them;
- of other codes: (distinct codes - 1) / (all codes - 1).

The loss of a cell is its penalty times its rows. Rows that are equal in all columns are copies. The
first copy in a cell leads the others: only leaders are looked at.

A penalty never falls when a row comes, and what a row adds to a cell is the most that it adds to a
larger one. So swaps have a bound that costs nothing.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from anonlib.arrays import Floats, Ints
from anonlib.compiled import njit, njit_in_place
from anonlib.hierarchy.tree import Tree
from anonlib.kernels._trees import join_trees

#: What the penalty of a column is of: numbers, nodes of a hierarchy, or distinct codes.
NUMBERS, NODES, CODES = range(3)
#: The most numbers of a `GrowthTable`: 128 MB.
MOST_GROWTHS = 2**24
#: The places of `Extents.edge`: the least value, the next, the greatest, the next. Each copy counts
#: once: the next is the least if two rows that are no copies have it.
LOW, NEXT_LOW, HIGH, NEXT_HIGH = range(4)


class Extents(NamedTuple):
    """The columns of n rows, and the penalties of c cells. There are d columns that vary: numbers,
    then codes.

    If the loss is another one, there is None in its place. Functions that are called for any loss
    begin with that case, so that the compiler leaves out the rest.

    Attributes:
        value: float64[n, d]. The values.
        column: int64[d, 2]. What the penalty of each column is of; its first node, or the place of
            its first code in `tally`.
        rate: float64[d]. The penalty of a unit of range, or of a distinct code.
        node: int64[nodes, 2]. The parent of each node, and the code after its highest.
        node_loss: float64[nodes]. The loss of each node.
        tuple: int64[n]. The number of each row's tuple: copies have the same.
        share: int64[n]. The copies of each leader in its cell; 0 for other rows.
        onward: int64[n]. The next leader of the same cell, for each leader; -1 after the last. The
            first row of a cell is its first leader.
        copies: int64. Scratch by tuple, 0.
        tally: int64[2, codes]. Scratch by code, 0: distinct tuples of two cells.
        edge: float64[c, d, 4]. The ends of each cell, see `LOW`.
        bits: int64[c, d]. The distinct codes of each cell as bits: code modulo 63.
        penalty: float64[c, d]. The penalty of each column of a cell.
        total: float64[c]. The sum of the penalties of each cell.
    """

    value: Floats
    column: Ints
    rate: Floats
    node: Ints
    node_loss: Floats
    tuple: Ints
    share: Ints
    onward: Ints
    copies: Ints
    tally: Ints
    edge: Floats
    bits: Ints
    penalty: Floats
    total: Floats


def make_extents(
    value: Floats,
    widths: Floats,
    n_categories: Ints,
    trees: Sequence[Tree | None],
    tuples: Ints,
    c: int,
) -> Extents:
    """The columns of some rows, without cells.

    Args:
        value: float64[n, p + q]. Numbers, then codes.
        widths: float64[p]. The range of each numeric column in the whole table.
        n_categories: int64[q]. The categories of each nominal column in the whole table.
        trees: [q]. Their hierarchies; None for columns without one.
        tuples: int64[n]. The number of each row's tuple.
        c: The most cells.
    """
    nodes, first, place = [tree for tree in trees if tree is not None], 0, 0
    column = [(NUMBERS, 0)] * len(widths)
    for tree, size in zip(trees, n_categories.tolist(), strict=True):
        column.append((CODES, place) if tree is None else (NODES, first))
        place += size if tree is None else 0
        first += 0 if tree is None else len(tree.parent)
    whole = join_trees(nodes, [tree.loss for tree in nodes])
    spans = np.concatenate([widths, n_categories - 1])
    varies = np.flatnonzero(spans > 0)
    d, n = len(varies), len(value)
    return Extents(
        np.ascontiguousarray(value[:, varies]),
        np.array(column, np.int64).reshape(-1, 2)[varies],
        1.0 / spans[varies],
        np.stack([whole.parent, whole.high], axis=1),
        whole.loss.astype(np.float64),
        tuples.astype(np.int64),
        np.zeros(n, np.int64),
        np.zeros(n, np.int64),
        np.zeros(int(tuples.max(initial=-1)) + 1, np.int64),
        np.zeros((2, place), np.int64),
        np.zeros((c, d, 4)),
        np.zeros((c, d), np.int64),
        np.zeros((c, d)),
        np.zeros(c),
    )


@njit_in_place
def describe_extents(x: Extents | None, after: Ints, own: Floats, first: int, cell: int) -> float:
    """Describes a cell whose rows begin with `first`. Sets `own` of each row that stands for its
    copies to what the penalty falls by without them, and of others to 0. Returns the penalty."""
    if x is None:
        return 0.0
    _count_copies(x, after, first)
    row = first
    while row >= 0:
        own[row] = 0.0
        row = after[row]
    total = 0.0
    for j in range(x.value.shape[1]):
        if x.column[j, 0] == CODES:
            _describe_codes(x, after, own, first, cell, j)
        else:
            _describe_range(x, own, first, cell, j)
        total += x.penalty[cell, j]
    x.total[cell] = total
    return total


@njit_in_place
def _count_copies(x: Extents, after: Ints, first: int) -> None:
    """Sets `share` of the rows from `first` on, and `onward` of the leaders."""
    row = first
    while row >= 0:
        x.copies[x.tuple[row]] += 1
        row = after[row]
    row = previous = first
    while row >= 0:
        x.share[row] = x.copies[x.tuple[row]]
        if x.share[row] > 0:
            x.copies[x.tuple[row]] = 0
            x.onward[previous] = row
            x.onward[row] = -1
            previous = row
        row = after[row]


@njit_in_place
def _describe_range(x: Extents, own: Floats, first: int, cell: int, j: int) -> None:
    low = next_low = np.inf
    high = next_high = -np.inf
    row = first
    while row >= 0:
        v = x.value[row, j]
        next_low = min(next_low, max(low, v))
        low = min(low, v)
        next_high = max(next_high, min(high, v))
        high = max(high, v)
        row = x.onward[row]
    edge = x.edge[cell, j]
    edge[LOW], edge[NEXT_LOW], edge[HIGH], edge[NEXT_HIGH] = low, next_low, high, next_high
    x.penalty[cell, j] = penalty = penalize_range(x, j, low, high) if first >= 0 else 0.0
    if next_low == np.inf or (next_low == low and next_high == high):
        return
    row = first
    while row >= 0:
        v = x.value[row, j]
        if v in (low, high):
            less = penalize_range(
                x, j, next_low if v == low else low, next_high if v == high else high
            )
            own[row] += penalty - less
        row = x.onward[row]


@njit_in_place
def penalize_range(x: Extents, j: int, low: float, high: float) -> float:
    """The penalty of a column of numbers or nodes whose values are from `low` to `high`."""
    if x.column[j, 0] == NUMBERS:
        return float((high - low) * x.rate[j])
    start, last = x.column[j, 1], int(high)
    node = start + int(low)
    while x.node[node, 1] <= last:
        node = x.node[node, 0]
    return float(x.node_loss[node])


@njit_in_place
def _describe_codes(x: Extents, after: Ints, own: Floats, first: int, cell: int, j: int) -> None:
    tally = x.tally[0]
    n_distinct, bits, start = 0, 0, x.column[j, 1]
    row = first
    while row >= 0:
        code = int(x.value[row, j])
        n_distinct += tally[start + code] == 0
        tally[start + code] += 1
        bits |= 1 << (code % 63)
        row = x.onward[row]
    x.bits[cell, j] = bits
    x.penalty[cell, j] = max(n_distinct - 1, 0) * x.rate[j]
    row = first
    while row >= 0:
        if n_distinct > 1 and tally[start + int(x.value[row, j])] == 1:
            own[row] += x.rate[j]
        row = x.onward[row]
    _clear_codes(x, after, first, j, 0)


@njit_in_place
def _clear_codes(x: Extents, after: Ints, first: int, j: int, side: int) -> None:
    row = first
    while row >= 0:
        x.tally[side, x.column[j, 1] + int(x.value[row, j])] = 0
        row = after[row]


@njit_in_place
def count_codes(x: Extents, first: int, side: int) -> None:
    """Counts the codes of a cell's distinct tuples in a side of `tally`, which must be 0 before."""
    for j in range(x.value.shape[1]):
        if x.column[j, 0] == CODES:
            row = first
            while row >= 0:
                x.tally[side, x.column[j, 1] + int(x.value[row, j])] += 1
                row = x.onward[row]


@njit_in_place
def clear_codes(x: Extents, after: Ints, first: int, side: int) -> None:
    """Resets a side of `tally` to 0 after a cell was counted."""
    for j in range(x.value.shape[1]):
        if x.column[j, 0] == CODES:
            _clear_codes(x, after, first, j, side)


@njit_in_place
def find_row_growth(x: Extents, row: int, cell: int, side: int, most: float) -> float:
    """What the penalty of a cell grows by if a row comes; or any number above `most`, if it is more
    than that.

    side: the side of `tally` in which the codes of the cell are counted; -1 if they are not. Then,
    of more than 63 codes without a hierarchy, some that are new may not be seen.
    """
    growth = 0.0
    for j in range(x.value.shape[1]):
        v = x.value[row, j]
        if x.column[j, 0] == CODES:
            if side >= 0:
                growth += x.rate[j] * (x.tally[side, x.column[j, 1] + int(v)] == 0)
            elif not (x.bits[cell, j] >> (int(v) % 63)) & 1:
                growth += x.rate[j]
        else:
            low, high = x.edge[cell, j, LOW], x.edge[cell, j, HIGH]
            if v < low or v > high:
                growth += penalize_range(x, j, min(low, v), max(high, v)) - x.penalty[cell, j]
        if growth > most:
            break
    return growth


@njit_in_place
def penalize_exchange(
    x: Extents, cell: int, side: int, out: int, all_out: bool, comes: int
) -> float:
    """The penalty of a cell after a row of it has left, and another row has come.

    side: the side of `tally` in which the codes of the cell are counted. all_out: whether all
    copies of the row leave. comes: -1 for none.
    """
    total = 0.0
    for j in range(x.value.shape[1]):
        v = x.value[out, j]
        w = x.value[comes, j] if comes >= 0 else v
        if x.column[j, 0] == CODES:
            total += x.penalty[cell, j]
            tally, start = x.tally[side], x.column[j, 1]
            leaves = all_out and tally[start + int(v)] == 1
            if comes >= 0:
                if leaves and w != v:
                    total -= x.rate[j]
                if tally[start + int(w)] == 0:
                    total += x.rate[j]
            elif leaves:
                total -= x.rate[j]
            continue
        edge = x.edge[cell, j]
        low, high = edge[LOW], edge[HIGH]
        if all_out:
            low = edge[NEXT_LOW] if v == low else low
            high = edge[NEXT_HIGH] if v == high else high
        if comes >= 0:
            low, high = min(low, w), max(high, w)
        if low == edge[LOW] and high == edge[HIGH]:
            total += x.penalty[cell, j]
        else:
            total += penalize_range(x, j, low, high)
    return total


@njit_in_place
def are_copies(x: Extents | None, row: int, other: int) -> bool:
    """Whether two rows are equal in all columns."""
    if x is None:
        return False
    return bool(x.tuple[row] == x.tuple[other])


@njit_in_place
def penalize_pair(x: Extents | None, row: int, other: int) -> float:
    """The penalty of a cell of two rows."""
    if x is None:
        return 0.0
    total = 0.0
    for j in range(x.value.shape[1]):
        v, w = x.value[row, j], x.value[other, j]
        if x.column[j, 0] == CODES:
            total += x.rate[j] * (v != w)
        else:
            total += penalize_range(x, j, min(v, w), max(v, w))
    return total


@njit_in_place
def penalize_part(
    x: Extents | None, after: Ints, mark: Floats, first: int, negative: bool
) -> float:
    """The penalty of the rows of a cell, from `first` on, whose mark is negative, or is not."""
    if x is None:
        return 0.0
    total = 0.0
    for j in range(x.value.shape[1]):
        low, high, n_distinct = np.inf, -np.inf, 0
        row = first
        while row >= 0:
            if (mark[row] < 0.0) == negative:
                v = x.value[row, j]
                low, high = min(low, v), max(high, v)
                if x.column[j, 0] == CODES:
                    place = x.column[j, 1] + int(v)
                    n_distinct += x.tally[0, place] == 0
                    x.tally[0, place] = 1
            row = after[row]
        if x.column[j, 0] == CODES:
            total += max(n_distinct - 1, 0) * x.rate[j]
            _clear_codes(x, after, first, j, 0)
        elif low <= high:
            total += penalize_range(x, j, low, high)
    return total


class GrowthTable(NamedTuple):
    """What the penalties of m cells grow by if a row comes, by column and value.

    Attributes:
        cells: int64[m]. The cells.
        low: float64[d, m]. The least value of each cell.
        high: float64[d, m]. The greatest value.
        start: int64[d]. The place of each column's first code in `growth`; -1 for numbers, and for
            columns with too many codes.
        growth: float64[codes, m]. By code, what the penalty of its column grows by.
    """

    cells: Ints
    low: Floats
    high: Floats
    start: Ints
    growth: Floats


@njit
def make_growth_table(x: Extents, first: Ints, cells: Ints) -> GrowthTable:
    """The growth of some cells. Cost O(m d) for each code."""
    d, m = x.value.shape[1], len(cells)
    start, n_codes = np.full(d, -1), 0
    for j in range(d):
        more = int(x.value[:, j].max()) + 1
        if x.column[j, 0] != NUMBERS and (n_codes + more) * m <= MOST_GROWTHS:
            start[j] = n_codes
            n_codes += more
    growth = np.zeros((n_codes, m))
    table = GrowthTable(cells, np.empty((d, m)), np.empty((d, m)), start, growth)
    for j in range(d):
        for i in range(m):
            table.low[j, i] = x.edge[cells[i], j, LOW]
            table.high[j, i] = x.edge[cells[i], j, HIGH]
        if start[j] >= 0 and x.column[j, 0] == NODES:
            for code in range(int(x.value[:, j].max()) + 1):
                _grow_to_node(x, table, j, float(code), growth[start[j] + code])
        elif start[j] >= 0:
            growth[start[j] : start[j] + int(x.value[:, j].max()) + 1] = x.rate[j]
            for i in range(m):
                row = first[cells[i]]
                while row >= 0:
                    growth[start[j] + int(x.value[row, j]), i] = 0.0
                    row = x.onward[row]
    return table


@njit_in_place
def _grow_to_node(x: Extents, table: GrowthTable, j: int, code: float, growth: Floats) -> None:
    """Adds to `growth` what the penalty of a column with a hierarchy grows by if a code comes."""
    low, high = table.low[j], table.high[j]
    for i in range(len(growth)):
        if code < low[i] or code > high[i]:
            penalty = penalize_range(x, j, min(low[i], code), max(high[i], code))
            growth[i] += penalty - x.penalty[table.cells[i], j]


@njit_in_place
def fill_growth(x: Extents, table: GrowthTable, row: int, growth: Floats) -> None:
    """Sets `growth` to what the penalty of each cell of a table grows by if a row comes."""
    growth[:] = 0.0
    for j in range(x.value.shape[1]):
        v = x.value[row, j]
        if table.start[j] >= 0:
            part = table.growth[table.start[j] + int(v)]
            for i in range(len(growth)):
                growth[i] += part[i]
        elif x.column[j, 0] == NODES:
            _grow_to_node(x, table, j, v, growth)
        elif x.column[j, 0] == CODES:
            for i in range(len(growth)):
                growth[i] += x.rate[j] * (1 - ((x.bits[table.cells[i], j] >> (int(v) % 63)) & 1))
        else:
            low, high, rate = table.low[j], table.high[j], x.rate[j]
            for i in range(len(growth)):
                growth[i] += rate * max(low[i] - v, v - high[i], 0.0)

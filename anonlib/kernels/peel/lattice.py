"""The input of peeling: a block's distinct tuples, and the lattice of its hierarchies."""

import numpy as np

from anonlib.arrays import MISSING, Codes, Ints
from anonlib.kernels._trees import Levels, drop_idle_levels, list_levels
from anonlib.kernels.peel.core import Bits, Lattice, TupleTable
from anonlib.table.block import Block

#: Losses are multiples of 2^-20.
UNIT = 2**20
#: If a lattice has more nodes, only this many nodes of least loss are tried, and a path up to the
#: root.
MOST_NODES = 20_000
#: The most losses in memory. If more are needed, peeling uses `order: node`.
MOST_LOSSES = 2**26
#: A stage of peeling by class covers losses in a range of 1 / STAGES of a column.
STAGES = 16
#: Classes that lose more than LAST columns are in one last stage.
LAST = 4


def make_table(block: Block) -> tuple[TupleTable, list[Levels]]:
    first = block.tuples.first
    columns = [drop_idle_levels(list_levels(block.tree(j))) for j in range(block.nominal.shape[1])]
    height = max((len(each.node) for each in columns), default=1)
    codes = max((each.node.shape[1] for each in columns), default=1)
    node = np.zeros((len(columns), height, codes), np.int32)
    loss = np.zeros(node.shape, np.int64)
    for j, each in enumerate(columns):
        rows = np.minimum(np.arange(height), len(each.node) - 1)
        node[j, :, : each.node.shape[1]] = each.node[rows]
        loss[j, :, : each.node.shape[1]] = np.rint(each.loss[rows] * UNIT)
    bits, start, need = _values(block)
    code = np.ascontiguousarray(block.nominal[first])
    table = TupleTable(code, block.tuples.count, node, loss, block.min_rows, bits, start, need)
    return table, columns


def _values(block: Block) -> tuple[Bits, Ints, Ints]:
    """`bits`, `start` and `need` of a `TupleTable`."""
    least = dict.fromkeys(block.protected, 0)
    for model in block.models:
        if model.column is not None:
            least[model.column] = max(least[model.column], model.min_values)
    parts, start, need = [np.zeros((len(block.tuples.first), 0), np.uint64)], [0], []
    for name, values in least.items():
        if values < 2:
            continue
        codes = block.sensitive[:, block.protected.index(name)]
        present = codes != MISSING
        words = int(codes.max(initial=0)) // 64 + 1
        bits = np.zeros((len(block.tuples.first), words), np.uint64)
        spot = block.tuples.id[present], codes[present] // 64
        np.bitwise_or.at(bits, spot, np.uint64(1) << (codes[present] % 64).astype(np.uint64))
        parts.append(bits)
        start.append(start[-1] + words)
        need.append(values)
    return np.concatenate(parts, axis=1), np.array(start), np.array(need, np.int64)


def make_lattice(table: TupleTable, columns: list[Levels], *, by_class: bool) -> Lattice:
    mean = _mean_losses(table, columns)
    height = _nodes(mean)
    key = _keys(table.node)
    one = np.array([0, 2**62])
    none, nothing = np.zeros((0, 0), np.int32), np.zeros(0, np.int64)
    plain = Lattice(height, key, one, np.zeros((2, 0), np.int64), none, none, nothing, nothing)
    if not by_class or len(mean) < 2:
        return plain
    half = _half([len(each) for each in mean])
    left, left_part = np.unique(height[:, :half], axis=0, return_inverse=True)
    right, right_part = np.unique(height[:, half:], axis=0, return_inverse=True)
    if (len(left) + len(right)) * len(table.code) > MOST_LOSSES:
        return plain
    part = np.stack([left_part.ravel(), right_part.ravel()])
    low, high = _extremes(table, height)
    bound = np.append(np.arange(LAST * STAGES + 1) * (UNIT // STAGES), 2**62)
    return Lattice(
        height,
        key,
        bound,
        part,
        _losses(table, left, 0),
        _losses(table, right, half),
        low,
        high,
    )


def _mean_losses(table: TupleTable, columns: list[Levels]) -> list[Ints]:
    """The mean loss of the rows at each height of each column, in units of 2^-20, rounded down."""
    n_rows = max(int(table.weight.sum()), 1)
    return [
        (table.weight @ table.loss[j, : len(each.node)].T[table.code[:, j]]) // n_rows
        for j, each in enumerate(columns)
    ]


def _nodes(mean: list[Ints]) -> Ints:
    """int64[n, d]. The heights of each node, by ascending sum of squared mean losses. Of equal
    sums, the node that is lower in the first column comes first, then in the second, and so on."""
    total, height = np.zeros(1, np.int64), np.zeros((1, 0), np.int64)
    for losses in mean:
        total = np.add.outer(total, losses**2).ravel()
        here = np.tile(np.arange(len(losses)), len(height))
        height = np.column_stack([np.repeat(height, len(losses), axis=0), here])
        kept = np.argsort(total, kind="stable")[:MOST_NODES]
        # A node that is among the first at the end is among the first here, by its columns so far.
        total, height = total[kept], height[kept]
    if len(height) == np.prod([len(losses) for losses in mean], dtype=object):
        order = np.lexsort([*height.T[::-1], total])
        return height[order]
    return np.concatenate([height, _ascent(mean)])


def _ascent(mean: list[Ints]) -> Ints:
    """int64[., d]. A path of nodes to the root: each raises one column by one height, in order of
    the mean loss of that height."""
    steps = sorted((losses[i], j, i) for j, losses in enumerate(mean) for i in range(len(losses)))
    at = np.zeros(len(mean), np.int64)
    nodes = []
    for _, j, i in steps:
        at[j] = i
        nodes.append(at.copy())
    return np.array(nodes)


def _half(sizes: list[int]) -> int:
    """The number of columns in the first part. Both parts get about as many combinations of
    heights."""
    logs = np.log(sizes)
    return int(np.argmin(np.abs(2 * np.cumsum(logs) - logs.sum()))) + 1


def _losses(table: TupleTable, heights: Ints, first: int) -> Codes:
    """int32[len(heights), t]. The loss of each tuple at these heights, in the columns from `first`
    on."""
    result = np.zeros((len(heights), len(table.code)), np.int32)
    for j, at in enumerate(heights.T, first):
        result += table.loss[j][:, table.code[:, j]].astype(np.int32)[at]
    return result


def _extremes(table: TupleTable, height: Ints) -> tuple[Ints, Ints]:
    """Lower and upper bounds of the losses of tuples at each node: int64[n] each."""
    low, high = np.zeros((2, len(height)), np.int64)
    for j, at in enumerate(height.T):
        here = table.loss[j][:, np.unique(table.code[:, j])]
        low += here.min(axis=1)[at]
        high += here.max(axis=1)[at]
    return low, high


def _keys(node: Codes) -> Bits:
    """Random keys; equal nodes of a column get equal keys."""
    n = int(node.max(initial=0)) + 1
    numbers = np.random.default_rng(0).integers(0, 2**64, (len(node), n), np.uint64)
    return numbers[np.arange(len(node))[:, None, None], node]
